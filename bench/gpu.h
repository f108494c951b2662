// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu.h: what the benchmarks on GPUs share: pinned matrices, errors of results, references.
#pragma once

#include <quadriga/engine.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace quadriga::bench {

/// A square matrix of doubles in the host's memory, column by column; pinned, or as it comes.
class HostMatrix {
 public:
  HostMatrix(std::int64_t order, bool pinned);
  /// One of at most the same order in another's memory.
  HostMatrix(const HostMatrix& lender, std::int64_t order);
  ~HostMatrix();
  HostMatrix(const HostMatrix&) = delete;
  HostMatrix& operator=(const HostMatrix&) = delete;
  double* data() const noexcept { return data_; }
  std::int64_t order() const noexcept { return order_; }

 private:
  std::int64_t order_;
  bool pinned_ = false;
  bool lent_ = false;
  double* data_ = nullptr;
};

/// Full-entropy random elements, made by the engine's devices; SPD: the order on the diagonal.
void fill(Engine& engine, const HostMatrix& matrix, std::uint64_t seed, bool positive);

/// ||C*x - A*(B*x)|| / (||A||*||B||*||x||) in the infinity norm for a random x.
double product_error(const HostMatrix& a, const HostMatrix& b, const HostMatrix& c);
/// The largest element of L*L^T*x - A*x over norm(A) and the largest of x, for a random x; sums are
/// in long double.
class FactorCheck {
 public:
  /// A may be overwritten afterwards.
  explicit FactorCheck(const HostMatrix& a);
  double error(const HostMatrix& factor) const;

 private:
  std::vector<double> x_;
  std::vector<long double> expected_;
};

/// Flops a second of cuBLAS on resident tiles, all GPUs at once, for some seconds.
double resident_gemm(int gpus, int tile, double seconds);
/// The same product by cuBLASXt, host to host: seconds of the best of `repeat` runs.
double xt_gemm(int gpus, int block, const HostMatrix& a, const HostMatrix& b, const HostMatrix& c,
               int repeat);
/// Cholesky by cuSOLVERMg with the data on the devices: seconds of the best of `repeat` runs.
double mg_potrf(int gpus, int block, std::int64_t order, int repeat);
/// Cholesky by cuSOLVER with the data on one device.
double resident_potrf(std::int64_t order, int repeat);
/// Seconds of a copy of so many bytes from pinned memory by the runtime alone.
double plain_copy(bool in, std::size_t bytes, int repeat);
/// The same from the first device to the second.
double plain_peer_copy(std::size_t bytes, int repeat);
/// Copying in, one call of cuBLAS or cuSOLVER, copying out: seconds of the best run.
double one_call_gemm(const HostMatrix& a, const HostMatrix& b, const HostMatrix& c, int repeat);
double one_call_potrf(const HostMatrix& a, const HostMatrix& c, int repeat);
/// Nanoseconds of a launch of a tiny kernel, one after the other on one stream.
double bare_launch(int count);

}  // namespace quadriga::bench
