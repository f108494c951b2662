// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_matrices.cpp: pinned matrices, and how wrong a result is.
#include <cblas.h>
#include <cuda_runtime_api.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/random.h"
#include "device/cuda/cuda_check.h"
#include "gpu.h"
#include "linalg/kernels/blas_threads.h"
#include "linalg/kernels/codelets.h"

namespace quadriga::bench {
namespace {

using Vector = std::vector<double>;

Vector random_vector(std::int64_t count) {
  Random random(7);
  Vector result(static_cast<std::size_t>(count));
  for (double& value : result) value = random.uniform() - 0.5;
  return result;
}

double largest(const Vector& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

double largest_difference(const Vector& x, const Vector& y) {
  double result = 0;
  // A NaN must not pass.
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(std::abs(x[i] - y[i]) <= result)) result = std::abs(x[i] - y[i]);
  return result;
}

Vector times(const HostMatrix& a, const Vector& x) {
  const auto n = static_cast<blasint>(a.order());
  Vector y(x.size());
  cblas_dgemv(CblasColMajor, CblasNoTrans, n, n, 1, a.data(), n, x.data(), 1, 0, y.data(), 1);
  return y;
}

// Sums in double are off by more than a factorization is: the diagonal outweighs all else.
using Wide = std::vector<long double>;

/// Calls part(first, last) for shares of `count` on all cores.
template <class Part>
void share_out(std::int64_t count, Part part) {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::int64_t k = 0; k < cores; ++k)
    threads.emplace_back([=] { part(count * k / cores, count * (k + 1) / cores); });
}

/// A*x, or L*x with L the lower triangle.
Wide sweep(const HostMatrix& a, const Wide& x, bool lower) {
  const std::int64_t n = a.order();
  Wide y(x.size(), 0);
  share_out(n, [&, n](std::int64_t first, std::int64_t last) {
    for (std::int64_t j = 0; j < (lower ? last : n); ++j)
      for (std::int64_t i = lower ? std::max(first, j) : first; i < last; ++i)
        y[static_cast<std::size_t>(i)] += a.data()[i + j * n] * x[static_cast<std::size_t>(j)];
  });
  return y;
}

/// L^T*x.
Wide dots(const HostMatrix& factor, const Wide& x) {
  const std::int64_t n = factor.order();
  Wide y(x.size(), 0);
  share_out(n, [&, n](std::int64_t first, std::int64_t last) {
    for (std::int64_t j = first; j < last; ++j)
      for (std::int64_t i = j; i < n; ++i)
        y[static_cast<std::size_t>(j)] += factor.data()[i + j * n] * x[static_cast<std::size_t>(i)];
  });
  return y;
}

/// Of random elements in [-0.5, 0.5), nearly.
double norm_of_random(std::int64_t order) { return 0.25 * static_cast<double>(order); }

constexpr int blas_threads = 16;

}  // namespace

HostMatrix::HostMatrix(std::int64_t order, bool pinned) : order_(order), pinned_(pinned) {
  void* memory = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(order * order) * sizeof(double);
  if (pinned)
    cuda::check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "allocating pinned memory");
  else
    memory = ::operator new(bytes);
  data_ = static_cast<double*>(memory);
}

HostMatrix::HostMatrix(const HostMatrix& lender, std::int64_t order)
    : order_(order), lent_(true), data_(lender.data_) {
  require(order <= lender.order_, "a matrix is larger than the memory that it is lent");
}

HostMatrix::~HostMatrix() {
  if (lent_) return;
  if (pinned_)
    cudaFreeHost(data_);
  else
    ::operator delete(data_);
}

void fill(Engine& engine, const HostMatrix& matrix, std::uint64_t seed, bool positive) {
  constexpr std::int64_t tile = 4096;
  const std::int64_t n = matrix.order();
  std::vector<Data> tiles;
  for (std::int64_t j = 0; j < n; j += tile) {
    for (std::int64_t i = 0; i < n; i += tile) {
      tiles.push_back(engine.data(matrix.data() + i + j * n, std::min(tile, n - i),
                                  std::min(tile, n - j), n, DType::float64));
      kernels::RandomMatrix random{.seed = seed, .first_row = i, .first_col = j};
      random.hermitian = positive;
      random.on_diagonal = positive ? static_cast<double>(n) : 0;
      engine.submit(kernels::random_codelet(DType::float64), {{tiles.back(), Access::write}},
                    random);
      engine.final(tiles.back());
    }
  }
  engine.wait();
  engine.remove(tiles);
}

double product_error(const HostMatrix& a, const HostMatrix& b, const HostMatrix& c) {
  const kernels::BlasThreads threads(blas_threads);
  const Vector x = random_vector(a.order());
  const double norm = norm_of_random(a.order());
  return largest_difference(times(c, x), times(a, times(b, x))) / (norm * norm * largest(x));
}

FactorCheck::FactorCheck(const HostMatrix& a) : x_(random_vector(a.order())) {
  expected_ = sweep(a, Wide(x_.begin(), x_.end()), false);
}

double FactorCheck::error(const HostMatrix& factor) const {
  const Wide actual = sweep(factor, dots(factor, Wide(x_.begin(), x_.end())), true);
  long double worst = 0;
  for (std::size_t i = 0; i < x_.size(); ++i)
    if (!(std::abs(actual[i] - expected_[i]) <= worst)) worst = std::abs(actual[i] - expected_[i]);
  const double norm = norm_of_random(factor.order()) + static_cast<double>(factor.order());
  return static_cast<double>(worst) / (norm * largest(x_));
}

}  // namespace quadriga::bench
