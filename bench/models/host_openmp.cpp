// SPDX-License-Identifier: BSD-3-Clause
// bench/models/host_openmp.cpp: conjugate gradients by OpenMP on the host's cores.
// Memory is shared: nothing is copied, and there is nothing to overlap.
#include <omp.h>

#include "model.h"

namespace {

using namespace models;

class HostOpenMp {
 public:
  HostOpenMp(const std::vector<Half>& halves, const Options&) : halves_(halves) {
    for (const Half& half : halves) {
      const auto rows = static_cast<std::size_t>(half.rows);
      vectors_.push_back({std::vector<double>(rows), std::vector<double>(rows),
                          std::vector<double>(rows), std::vector<double>(rows)});
    }
  }

  std::string where() const { return std::to_string(omp_get_max_threads()) + " threads"; }

  void set_vectors(int d, const double* x, const double* r, const double* p) {
    Vectors& v = vectors_[static_cast<std::size_t>(d)];
    const std::size_t rows = v.x.size();
    v.x.assign(x, x + rows);
    v.r.assign(r, r + rows);
    v.p.assign(p, p + rows);
  }
  void send(int) {}
  void fetch(int) {}
  void finish(int) {}

  void multiply_local(int d) {
    Vectors& v = vectors_[static_cast<std::size_t>(d)];
    multiply(halves_[static_cast<std::size_t>(d)].local, v.p.data(), v.q.data(), false);
  }
  void multiply_remote(int d) {
    multiply(halves_[static_cast<std::size_t>(d)].remote,
             vectors_[static_cast<std::size_t>(1 - d)].p.data(),
             vectors_[static_cast<std::size_t>(d)].q.data(), true);
  }

  void step(int d, double alpha) {
    Vectors& v = vectors_[static_cast<std::size_t>(d)];
    const int rows = static_cast<int>(v.x.size());
    double *x = v.x.data(), *r = v.r.data();
    const double *p = v.p.data(), *q = v.q.data();
#pragma omp parallel for simd
    for (int i = 0; i < rows; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
  }
  void turn(int d, double beta) {
    Vectors& v = vectors_[static_cast<std::size_t>(d)];
    const int rows = static_cast<int>(v.x.size());
    double* p = v.p.data();
    const double* r = v.r.data();
#pragma omp parallel for simd
    for (int i = 0; i < rows; ++i) p[i] = r[i] + beta * p[i];
  }

  double p_q(int d) const {
    const Vectors& v = vectors_[static_cast<std::size_t>(d)];
    return dot(v.p, v.q);
  }
  double r_r(int d) const {
    const Vectors& v = vectors_[static_cast<std::size_t>(d)];
    return dot(v.r, v.r);
  }
  void get_x(int d, double* x) const {
    const Vectors& v = vectors_[static_cast<std::size_t>(d)];
    std::memcpy(x, v.x.data(), v.x.size() * sizeof(double));
  }

 private:
  struct Vectors {
    std::vector<double> x, r, p, q;
  };

  static void multiply(const EllpackR& a, const double* p, double* q, bool adds) {
    const int* const lengths = a.lengths.data();
    const int* const columns = a.columns.data();
    const double* const values = a.values.data();
    const std::size_t rows = static_cast<std::size_t>(a.rows);
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < rows; ++i) {
      double sum = adds ? q[i] : 0;
      for (std::size_t j = 0; j < static_cast<std::size_t>(lengths[i]); ++j)
        sum += values[j * rows + i] * p[columns[j * rows + i]];
      q[i] = sum;
    }
  }
  static double dot(const std::vector<double>& a, const std::vector<double>& b) {
    const int rows = static_cast<int>(a.size());
    const double *one = a.data(), *other = b.data();
    double sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
    for (int i = 0; i < rows; ++i) sum += one[i] * other[i];
    return sum;
  }

  const std::vector<Half>& halves_;
  std::vector<Vectors> vectors_;
};

}  // namespace

int main(int count, char** words) {
  models::Options options = models::Options::read(count, words);
  options.exchange = "none";
  return models::run<HostOpenMp>("host OpenMP", options);
}
