// SPDX-License-Identifier: BSD-3-Clause
// bench/models/openmp_target.cpp: conjugate gradients by OpenMP's target directives.
// Target tasks (nowait) with dependences are the two queues. Without devices they run on the host.
#include <omp.h>

#include "model.h"

namespace {

using namespace models;

/// Arrays of one half in a device's memory.
struct OnDevice {
  int device = 0;
  int rows = 0;
  int other_rows = 0;
  struct Matrix {
    int *lengths = nullptr, *columns = nullptr;
    double* values = nullptr;
  } local, remote;
  double *x = nullptr, *r = nullptr, *p = nullptr, *q = nullptr, *other_p = nullptr;
  std::vector<double> staged;  ///< On the host: the half of p on its way.
  char queue = 0;              ///< Dependences: the order of the first queue,
  char made = 0;               ///< this half of p,
  char here = 0;               ///< and the other one, where the second queue has brought it.
};

template <class T>
T* put(const std::vector<T>& from, int device) {
  const std::size_t bytes = from.size() * sizeof(T);
  T* const to = static_cast<T*>(omp_target_alloc(bytes + sizeof(T), device));
  if (!to) {
    std::fprintf(stderr, "the device has no room for %zu bytes\n", bytes);
    std::exit(1);
  }
  omp_target_memcpy(to, from.data(), bytes, 0, 0, device, omp_get_initial_device());
  return to;
}

class OpenMpTarget {
 public:
  OpenMpTarget(const std::vector<Half>& halves, const Options& options)
      : goes_by_host_(options.exchange == "host"), on_(halves.size()) {
    const int devices = omp_get_num_devices();
    for (std::size_t d = 0; d < halves.size(); ++d) {
      OnDevice& on = on_[d];
      on.device = devices > 0 ? static_cast<int>(d) % devices : omp_get_initial_device();
      on.rows = halves[d].rows;
      on.other_rows = halves[d].other_rows;
      on.local = matrix(halves[d].local, on.device);
      on.remote = matrix(halves[d].remote, on.device);
      const std::vector<double> zeros(static_cast<std::size_t>(on.rows));
      on.staged.assign(static_cast<std::size_t>(on.other_rows), 0);
      for (double** each : {&on.x, &on.r, &on.p, &on.q}) *each = put(zeros, on.device);
      on.other_p = put(on.staged, on.device);
    }
  }
  ~OpenMpTarget() {
    for (OnDevice& on : on_) {
      for (void* each :
           {static_cast<void*>(on.x), static_cast<void*>(on.r), static_cast<void*>(on.p),
            static_cast<void*>(on.q), static_cast<void*>(on.other_p)})
        omp_target_free(each, on.device);
      for (const OnDevice::Matrix& a : {on.local, on.remote})
        for (void* each : {static_cast<void*>(a.lengths), static_cast<void*>(a.columns),
                           static_cast<void*>(a.values)})
          omp_target_free(each, on.device);
    }
  }

  std::string where() const {
    const int devices = omp_get_num_devices();
    return devices > 0 ? std::to_string(devices) + " devices" : "the host: no devices";
  }

  void set_vectors(int d, const double* x, const double* r, const double* p) {
    OnDevice& on = at(d);
    const std::size_t bytes = static_cast<std::size_t>(on.rows) * sizeof(double);
    const int host = omp_get_initial_device();
    omp_target_memcpy(on.x, x, bytes, 0, 0, on.device, host);
    omp_target_memcpy(on.r, r, bytes, 0, 0, on.device, host);
    omp_target_memcpy(on.p, p, bytes, 0, 0, on.device, host);
  }

  void send(int) {}

  /// Both ways are a task of the host that copies: before version 5.1 OpenMP has no copies between
  /// devices that are queued (omp_target_memcpy_async).
  void fetch(int d) {
    OnDevice& to = at(d);
    OnDevice& from = at(1 - d);
    const bool goes_by_host = goes_by_host_;
    const std::size_t bytes = static_cast<std::size_t>(from.rows) * sizeof(double);
#pragma omp task depend(in : from.made) depend(out : to.here) shared(to, from)
    {
      const int host = omp_get_initial_device();
      if (goes_by_host) {
        omp_target_memcpy(to.staged.data(), from.p, bytes, 0, 0, host, from.device);
        omp_target_memcpy(to.other_p, to.staged.data(), bytes, 0, 0, to.device, host);
      } else {
        omp_target_memcpy(to.other_p, from.p, bytes, 0, 0, to.device, from.device);
      }
    }
  }

  void multiply_local(int d) {
    OnDevice& on = at(d);
    multiply(on, on.local, on.p, false, &on.made);
  }
  void multiply_remote(int d) {
    OnDevice& on = at(d);
    multiply(on, on.remote, on.other_p, true, &on.here);
  }

  void step(int d, double alpha) {
    OnDevice& on = at(d);
    const int rows = on.rows;
    double *x = on.x, *r = on.r, *p = on.p, *q = on.q;
#pragma omp target teams distribute parallel for nowait device(on.device) \
    is_device_ptr(x, r, p, q) depend(inout                                \
                                     : on.queue)
    for (int i = 0; i < rows; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
  }
  /// Waits until the other device has read p, too.
  void turn(int d, double beta) {
    OnDevice& on = at(d);
    const int rows = on.rows;
    double *r = on.r, *p = on.p;
#pragma omp target teams distribute parallel for nowait device(on.device) is_device_ptr(r, p) \
    depend(inout                                                                              \
           : on.queue, on.made)
    for (int i = 0; i < rows; ++i) p[i] = r[i] + beta * p[i];
  }

  double p_q(int d) { return dot(d, at(d).p, at(d).q); }
  double r_r(int d) { return dot(d, at(d).r, at(d).r); }
  void finish(int) {
#pragma omp taskwait
  }
  void get_x(int d, double* x) {
    finish(d);
    const OnDevice& on = at(d);
    omp_target_memcpy(x, on.x, static_cast<std::size_t>(on.rows) * sizeof(double), 0, 0,
                      omp_get_initial_device(), on.device);
  }

 private:
  OnDevice& at(int d) { return on_[static_cast<std::size_t>(d)]; }

  static OnDevice::Matrix matrix(const EllpackR& a, int device) {
    return {put(a.lengths, device), put(a.columns, device), put(a.values, device)};
  }

  static void multiply(OnDevice& on, const OnDevice::Matrix& a, double* p, bool adds,
                       [[maybe_unused]] const char* needed) {
    const std::size_t rows = static_cast<std::size_t>(on.rows);
    const int *lengths = a.lengths, *columns = a.columns;
    const double* values = a.values;
    double* q = on.q;
#pragma omp target teams distribute parallel for nowait device(on.device)      \
    is_device_ptr(lengths, columns, values, p, q) depend(inout                 \
                                                         : on.queue) depend(in \
                                                                            : *needed)
    for (std::size_t i = 0; i < rows; ++i) {
      double sum = adds ? q[i] : 0;
      for (std::size_t j = 0; j < static_cast<std::size_t>(lengths[i]); ++j)
        sum += values[j * rows + i] * p[columns[j * rows + i]];
      q[i] = sum;
    }
  }

  double dot(int d, double* one, double* other) {
    finish(d);
    const int rows = at(d).rows;
    double sum = 0;
#pragma omp target teams distribute parallel for device(at(d).device) is_device_ptr(one, other) \
    map(tofrom : sum) reduction(+ : sum)
    for (int i = 0; i < rows; ++i) sum += one[i] * other[i];
    return sum;
  }

  bool goes_by_host_;
  std::vector<OnDevice> on_;
};

}  // namespace

int main(int count, char** words) {
  const models::Options options = models::Options::read(count, words);
  int status = 0;
  // Tasks need a team that runs them; one thread makes them.
#pragma omp parallel
#pragma omp single
  status = models::run<OpenMpTarget>("OpenMP target", options);
  return status;
}
