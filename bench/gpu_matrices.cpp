// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_matrices.cpp: pinned matrices, and how wrong a result is.
#include <cblas.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "device/cuda/check.h"
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

Vector times(const PinnedMatrix& a, const Vector& x) {
  const auto n = static_cast<blasint>(a.order());
  Vector y(x.size());
  cblas_dgemv(CblasColMajor, CblasNoTrans, n, n, 1, a.data(), n, x.data(), 1, 0, y.data(), 1);
  return y;
}

/// Of random elements in [-0.5, 0.5), nearly.
double norm_of_random(std::int64_t order) { return 0.25 * static_cast<double>(order); }

constexpr int blas_threads = 16;

}  // namespace

PinnedMatrix::PinnedMatrix(std::int64_t order) : order_(order) {
  void* memory = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(order * order) * sizeof(double);
  cuda::check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "allocating pinned memory");
  data_ = static_cast<double*>(memory);
}

PinnedMatrix::~PinnedMatrix() { cudaFreeHost(data_); }

void fill(Engine& engine, const PinnedMatrix& matrix, std::uint64_t seed, bool positive) {
  constexpr std::int64_t tile = 4096;
  const std::int64_t n = matrix.order();
  std::vector<Data> tiles;
  for (std::int64_t j = 0; j < n; j += tile) {
    for (std::int64_t i = 0; i < n; i += tile) {
      tiles.push_back(engine.add(matrix.data() + i + j * n, std::min(tile, n - i),
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

double product_error(const PinnedMatrix& a, const PinnedMatrix& b, const PinnedMatrix& c) {
  const kernels::BlasThreads threads(blas_threads);
  const Vector x = random_vector(a.order());
  const double norm = norm_of_random(a.order());
  return largest_difference(times(c, x), times(a, times(b, x))) / (norm * norm * largest(x));
}

double factor_error(const PinnedMatrix& a, const PinnedMatrix& factor) {
  const kernels::BlasThreads threads(blas_threads);
  const auto n = static_cast<blasint>(a.order());
  const Vector x = random_vector(a.order());
  Vector expected(x.size());
  cblas_dsymv(CblasColMajor, CblasLower, n, 1, a.data(), n, x.data(), 1, 0, expected.data(), 1);
  Vector y = x;
  for (const CBLAS_TRANSPOSE op : {CblasTrans, CblasNoTrans})
    cblas_dtrmv(CblasColMajor, CblasLower, op, CblasNonUnit, n, factor.data(), n, y.data(), 1);
  const double norm = norm_of_random(a.order()) + static_cast<double>(n);
  return largest_difference(y, expected) / (norm * largest(x));
}

}  // namespace quadriga::bench
