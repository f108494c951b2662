// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/stream_blas.h: what variants of tile kernels call on a device's stream: its
// libraries for products, solves and factorizations, element-wise kernels, scratch.
//
// Operations are queued in the order of the calls, on tiles in the device's memory. Scalars, host
// scratch and parameters are read before a call returns. Shapes are checked by those who call, and
// no tile is empty. CUDA's is in stream_blas_cuda.cpp; tests compute on the host.
#pragma once

#include "linalg/kernels/elements.h"
#include "linalg/kernels/tile_elements.h"

#include <complex>
#include <cstddef>
#include <memory>
#include <span>

namespace quadriga::kernels {

/// Words of the host that a device writes, read once the operation has ended.
class ResultWords {
 public:
  virtual ~ResultWords() = default;
  /// Never none: as many can be in use at once as operations can be queued on a stream.
  virtual int* take() = 0;
  virtual void give_back(int* word) = 0;
};

/// Element-wise kernels: those of tile_elements.h, tile_measure.h and covariance.h.
template <class T>
class StreamElements {
 public:
  virtual ~StreamElements() = default;

  virtual void copy(Op op, KernelTile<const T> a, KernelTile<T> c, TileRegion region) = 0;
  virtual void scale(T alpha, KernelTile<T> c, TileRegion region) = 0;
  virtual void axpby(Op op, T alpha, KernelTile<const T> a, T beta, KernelTile<T> c,
                     TileRegion region) = 0;
  virtual void set(T value, T on_diagonal, KernelTile<T> c, TileRegion region) = 0;
  virtual void add_diagonal(T value, KernelTile<T> c, std::int64_t diagonal) = 0;
  virtual void mirror(Uplo stored, Op op, KernelTile<T> c) = 0;
  virtual void fill_random(const RandomMatrix& random, KernelTile<T> c) = 0;
  /// float32 and float64 only.
  virtual void covariance(const CovarianceTile& place, KernelTile<T> c) = 0;
  virtual void measure(Measure what, TileRegion region, KernelTile<const T> a,
                       KernelTile<double> out) = 0;
  /// Takes the imaginary parts off the diagonal of a square tile; complex types only.
  virtual void make_diagonal_real(KernelTile<T> c) = 0;
};

template <class T>
class StreamBlas : public StreamElements<T> {
 public:
  using Real = decltype(std::real(T{}));

  // The BLAS, as in gemm.h, syrk.h and trsm.h.
  virtual void gemm(Op op_a, Op op_b, T alpha, KernelTile<const T> a, KernelTile<const T> b, T beta,
                    KernelTile<T> c, bool allow_tf32) = 0;
  virtual void syrk(Uplo uplo, Op op, T alpha, KernelTile<const T> a, T beta, KernelTile<T> c,
                    bool allow_tf32) = 0;
  virtual void herk(Uplo uplo, Op op, Real alpha, KernelTile<const T> a, Real beta, KernelTile<T> c,
                    bool allow_tf32) = 0;
  virtual void trsm(Side side, Uplo uplo, Op op, Diag diag, T alpha, KernelTile<const T> a,
                    KernelTile<T> b) = 0;
  /// The largest order that substitute() takes: a power of two, or 0 if it takes none.
  virtual int most_substituted() = 0;
  /// trsm of a triangle of a small order, with alpha 1.
  virtual void substitute(Side side, Uplo uplo, Op op, Diag diag, KernelTile<const T> a,
                          KernelTile<T> b) = 0;

  // LAPACK's potrf with the workspaces that potrf_bytes() asks for; `*info` is on the device.
  struct Bytes {
    std::size_t device = 0;
    std::size_t host = 0;
  };
  virtual Bytes potrf_bytes(Uplo uplo, KernelTile<T> a) = 0;
  virtual void potrf(Uplo uplo, KernelTile<T> a, std::span<std::byte> device,
                     std::span<std::byte> host, int* info) = 0;
  /// Writes to `*info`, in host memory that the device can write, the smaller of the minor in
  /// `*found` and that of the first NaN on the diagonal; 0 for neither.
  virtual void report_minor(KernelTile<const T> a, const int* found, int* info) = 0;

  /// Device memory that the next kernel on the stream may overwrite; null if there is none left.
  virtual std::byte* try_scratch(std::size_t bytes) = 0;
  /// The same for a call of LAPACK that needs more than the task's workspace, out of the libraries'
  /// own where that is large enough.
  /// Errors: DeviceFull.
  virtual std::byte* solver_scratch(std::size_t bytes) = 0;
  /// The same on the host, for calls that use it before they return.
  virtual std::byte* host_scratch(std::size_t bytes) = 0;
  virtual std::shared_ptr<ResultWords> words() = 0;
};

}  // namespace quadriga::kernels
