// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/stream_blas_cuda.cpp: StreamBlas on CUDA's streams by cuBLAS and cuSOLVER, and
// the CUDA variants of all kernels.
#include "linalg/kernels/stream_blas.h"

#include <quadriga/error.h>

#include <type_traits>

#include "device/preparation.h"
#include "linalg/kernels/cuda_variants.h"
#include "linalg/kernels/elements_cuda.h"
#include "linalg/kernels/handles_cuda.h"
#include "linalg/kernels/library_cuda.h"
#include "linalg/kernels/products_cuda.h"
#include "linalg/kernels/solve_cuda.h"

namespace quadriga::kernels {
namespace cuda {
namespace {

template <class T>
struct Blas;
template <>
struct Blas<float> {
  using Native = float;
  static constexpr cudaDataType type = CUDA_R_32F;
  static constinit inline auto gemm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasSgemm_64);
  static constinit inline auto syrk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasSsyrk_64);
  static constinit inline auto& herk = syrk;
  static constinit inline auto trsm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasStrsm_64);
};
template <>
struct Blas<double> {
  using Native = double;
  static constexpr cudaDataType type = CUDA_R_64F;
  static constinit inline auto gemm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDgemm_64);
  static constinit inline auto syrk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDsyrk_64);
  static constinit inline auto& herk = syrk;
  static constinit inline auto trsm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDtrsm_64);
};
template <>
struct Blas<std::complex<float>> {
  using Native = cuComplex;
  static constexpr cudaDataType type = CUDA_C_32F;
  static constinit inline auto gemm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCgemm_64);
  static constinit inline auto syrk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCsyrk_64);
  static constinit inline auto herk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCherk_64);
  static constinit inline auto trsm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCtrsm_64);
};
template <>
struct Blas<std::complex<double>> {
  using Native = cuDoubleComplex;
  static constexpr cudaDataType type = CUDA_C_64F;
  static constinit inline auto gemm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasZgemm_64);
  static constinit inline auto syrk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasZsyrk_64);
  static constinit inline auto herk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasZherk_64);
  static constinit inline auto trsm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasZtrsm_64);
};

constinit auto potrf_buffer_size =
    QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnXpotrf_bufferSize);
constinit auto solver_potrf = QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnXpotrf);

template <class T>
const typename Blas<T>::Native* native(const T* value) noexcept {
  return reinterpret_cast<const typename Blas<T>::Native*>(value);
}
template <class T>
typename Blas<T>::Native* native(T* value) noexcept {
  return reinterpret_cast<typename Blas<T>::Native*>(value);
}

/// A scalar as cuBLAS reads it: its complex types are aligned more strictly than std::complex.
template <class T>
struct TypedFactor {
  explicit TypedFactor(T given) : value(given) {}
  const typename Blas<T>::Native* get() const noexcept { return native(&value); }
  alignas(typename Blas<T>::Native) T value;
};

cublasOperation_t blas(Op op) {
  if (op == Op::none) return CUBLAS_OP_N;
  return op == Op::transpose ? CUBLAS_OP_T : CUBLAS_OP_C;
}
cublasFillMode_t blas(Uplo uplo) {
  return uplo == Uplo::lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}
cublasSideMode_t blas(Side side) {
  return side == Side::left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}
cublasDiagType_t blas(Diag diag) {
  return diag == Diag::unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}

/// Those of one call of a variant; handles are made when the first library is called.
template <class T>
class CudaBlas final : public StreamBlas<T> {
 public:
  using typename StreamBlas<T>::Bytes;
  using typename StreamBlas<T>::Real;

  explicit CudaBlas(const Arguments& arguments) : arguments_(arguments) {}

  void copy(Op op, KernelTile<const T> a, KernelTile<T> c, TileRegion region) override {
    cuda::copy<T>(stream(), op, a, c, region);
  }
  void scale(T alpha, KernelTile<T> c, TileRegion region) override {
    cuda::scale<T>(stream(), alpha, c, region);
  }
  void axpby(Op op, T alpha, KernelTile<const T> a, T beta, KernelTile<T> c,
             TileRegion region) override {
    cuda::axpby<T>(stream(), op, alpha, a, beta, c, region);
  }
  void set(T value, T on_diagonal, KernelTile<T> c, TileRegion region) override {
    cuda::set<T>(stream(), value, on_diagonal, c, region);
  }
  void add_diagonal(T value, KernelTile<T> c, std::int64_t diagonal) override {
    cuda::add_diagonal<T>(stream(), value, c, diagonal);
  }
  void mirror(Uplo stored, Op op, KernelTile<T> c) override {
    cuda::mirror<T>(stream(), stored, op, c);
  }
  void fill_random(const RandomMatrix& random, KernelTile<T> c) override {
    cuda::fill_random<T>(stream(), random, c);
  }
  void covariance(const CovarianceTile& place, KernelTile<T> c) override {
    if constexpr (std::is_floating_point_v<T>)
      cuda::covariance<T>(stream(), *place.covariance, place.first_row, place.first_col, c);
  }
  void measure(Measure what, TileRegion region, KernelTile<const T> a,
               KernelTile<double> out) override {
    cuda::measure<T>(stream(), what, region, a, out);
  }
  void make_diagonal_real(KernelTile<T> c) override {
    if constexpr (!std::is_floating_point_v<T>) cuda::make_diagonal_real(stream(), c);
  }

  void gemm(Op op_a, Op op_b, T alpha, KernelTile<const T> a, KernelTile<const T> b, T beta,
            KernelTile<T> c, bool allow_tf32) override {
    const TypedFactor<T> of_a(alpha), of_c(beta);
    const int k = op_a == Op::none ? a.cols : a.rows;
    const ProductShape shape{Blas<T>::type,
                             allow_tf32,
                             blas(op_a),
                             blas(op_b),
                             c.rows,
                             c.cols,
                             k,
                             a.ld,
                             b.ld,
                             c.ld,
                             alignment_of(a.data),
                             alignment_of(b.data),
                             alignment_of(c.data)};
    Handles& on = handles();
    if (on.products().multiply(shape, of_a.get(), a.data, b.data, of_c.get(), c.data)) return;
    check(
        Blas<T>::gemm(on.blas(allow_tf32), blas(op_a), blas(op_b), c.rows, c.cols, k, of_a.get(),
                      native(a.data), a.ld, native(b.data), b.ld, of_c.get(), native(c.data), c.ld),
        "gemm");
  }
  void syrk(Uplo uplo, Op op, T alpha, KernelTile<const T> a, T beta, KernelTile<T> c,
            bool allow_tf32) override {
    const TypedFactor<T> of_a(alpha), of_c(beta);
    check(Blas<T>::syrk(handles().blas(allow_tf32), blas(uplo), blas(op), c.rows, inner(op, a),
                        of_a.get(), native(a.data), a.ld, of_c.get(), native(c.data), c.ld),
          "syrk");
  }
  void herk(Uplo uplo, Op op, Real alpha, KernelTile<const T> a, Real beta, KernelTile<T> c,
            bool allow_tf32) override {
    check(Blas<T>::herk(handles().blas(allow_tf32), blas(uplo), blas(op), c.rows, inner(op, a),
                        &alpha, native(a.data), a.ld, &beta, native(c.data), c.ld),
          "herk");
  }
  void trsm(Side side, Uplo uplo, Op op, Diag diag, T alpha, KernelTile<const T> a,
            KernelTile<T> b) override {
    const TypedFactor<T> of_b(alpha);
    check(Blas<T>::trsm(handles().blas(), blas(side), blas(uplo), blas(op), blas(diag), b.rows,
                        b.cols, of_b.get(), native(a.data), a.ld, native(b.data), b.ld),
          "trsm");
  }
  int most_substituted() override { return cuda::most_substituted<T>(); }
  void substitute(Side side, Uplo uplo, Op op, Diag diag, KernelTile<const T> a,
                  KernelTile<T> b) override {
    solve_by_substitution<T>(stream(), side, uplo, op, diag, a, b);
  }

  Bytes potrf_bytes(Uplo uplo, KernelTile<T> a) override {
    constexpr cudaDataType type = Blas<T>::type;
    const cusolverDnHandle_t solver = handles().solver();
    Bytes bytes;
    check(potrf_buffer_size(solver, handles().solver_params(), blas(uplo), a.rows, type, a.data,
                            a.ld, type, &bytes.device, &bytes.host),
          "asking for potrf's workspace");
    return bytes;
  }
  void potrf(Uplo uplo, KernelTile<T> a, std::span<std::byte> device, std::span<std::byte> host,
             int* info) override {
    constexpr cudaDataType type = Blas<T>::type;
    const cusolverDnHandle_t solver = handles().solver();
    check(solver_potrf(solver, handles().solver_params(), blas(uplo), a.rows, type, a.data, a.ld,
                       type, device.data(), device.size(), host.data(), host.size(), info),
          "potrf");
  }
  void report_minor(KernelTile<const T> a, const int* found, int* info) override {
    cuda::report_minor(stream(), a, found, info);
  }

  std::byte* try_scratch(std::size_t bytes) override {
    return static_cast<std::byte*>(handles().try_scratch(bytes));
  }
  std::byte* solver_scratch(std::size_t bytes) override {
    return static_cast<std::byte*>(handles().solver_scratch(bytes));
  }
  std::byte* host_scratch(std::size_t bytes) override {
    return static_cast<std::byte*>(handles().host_scratch(bytes));
  }
  std::shared_ptr<ResultWords> words() override {
    Words& of_stream = handles().words();
    return {handles_, &of_stream};
  }

 private:
  static int inner(Op op, const KernelTile<const T>& a) { return op == Op::none ? a.cols : a.rows; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(arguments_.stream); }
  Handles& handles() {
    if (!handles_) handles_ = handles_of(arguments_);
    return *handles_;
  }

  const Arguments& arguments_;
  std::shared_ptr<Handles> handles_;
};

template <class T>
Kernel variant_of(const StreamVariants& variants) {
  return [variant = std::get<StreamVariant<T>>(variants)](const Arguments& arguments) {
    CudaBlas<T> on(arguments);
    variant(arguments, on);
  };
}

const bool is_prepared = (set_preparation(DeviceKind::cuda, prepare), true);

}  // namespace
}  // namespace cuda

Kernel cuda_variant(const KernelSpec& spec, DType type) {
  switch (type_index(type)) {
    case 0:
      return cuda::variant_of<float>(spec.stream);
    case 1:
      return cuda::variant_of<double>(spec.stream);
    case 2:
      return cuda::variant_of<std::complex<float>>(spec.stream);
    default:
      return cuda::variant_of<std::complex<double>>(spec.stream);
  }
}

}  // namespace quadriga::kernels
