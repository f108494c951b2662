// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/tile_host.cpp: products, solves and Cholesky of tiles on OpenBLAS.
#include "linalg/kernels/region.h"

#include <cblas.h>
#include <quadriga/error.h>

#include <cmath>

// The Fortran LAPACK inside OpenBLAS, which ships no header for it in Debian.
extern "C" {
void spotrf_(const char* uplo, const blasint* n, float* a, const blasint* lda, blasint* info);
void dpotrf_(const char* uplo, const blasint* n, double* a, const blasint* lda, blasint* info);
void cpotrf_(const char* uplo, const blasint* n, std::complex<float>* a, const blasint* lda,
             blasint* info);
void zpotrf_(const char* uplo, const blasint* n, std::complex<double>* a, const blasint* lda,
             blasint* info);
}

namespace quadriga::kernels {
namespace {

template <class T>
struct Blas;
template <>
struct Blas<float> {
  static constexpr auto gemm = cblas_sgemm;
  static constexpr auto syrk = cblas_ssyrk;
  static constexpr auto herk = cblas_ssyrk;
  static constexpr auto trsm = cblas_strsm;
  static constexpr auto potrf = spotrf_;
};
template <>
struct Blas<double> {
  static constexpr auto gemm = cblas_dgemm;
  static constexpr auto syrk = cblas_dsyrk;
  static constexpr auto herk = cblas_dsyrk;
  static constexpr auto trsm = cblas_dtrsm;
  static constexpr auto potrf = dpotrf_;
};
template <>
struct Blas<std::complex<float>> {
  static constexpr auto gemm = cblas_cgemm;
  static constexpr auto syrk = cblas_csyrk;
  static constexpr auto herk = cblas_cherk;
  static constexpr auto trsm = cblas_ctrsm;
  static constexpr auto potrf = cpotrf_;
};
template <>
struct Blas<std::complex<double>> {
  static constexpr auto gemm = cblas_zgemm;
  static constexpr auto syrk = cblas_zsyrk;
  static constexpr auto herk = cblas_zherk;
  static constexpr auto trsm = cblas_ztrsm;
  static constexpr auto potrf = zpotrf_;
};

template <class T>
using RealPart = decltype(std::real(T{}));

/// CBLAS takes real scalars by value and complex ones by address.
template <class T>
auto scalar(const T& value) {
  if constexpr (is_complex<T>)
    return static_cast<const void*>(&value);
  else
    return value;
}

CBLAS_TRANSPOSE blas(Op op) {
  if (op == Op::none) return CblasNoTrans;
  return op == Op::transpose ? CblasTrans : CblasConjTrans;
}
CBLAS_UPLO blas(Uplo uplo) { return uplo == Uplo::lower ? CblasLower : CblasUpper; }
CBLAS_SIDE blas(Side side) { return side == Side::left ? CblasLeft : CblasRight; }
CBLAS_DIAG blas(Diag diag) { return diag == Diag::unit ? CblasUnit : CblasNonUnit; }

TileRegion triangle(Uplo uplo) { return {uplo == Uplo::lower ? Part::lower : Part::upper, 0}; }

/// OpenBLAS doesn't notice a NaN on the diagonal, and reports success.
template <class T>
int first_nan_on_diagonal(KernelTile<T> a) {
  for (int i = 0; i < a.rows; ++i)
    if (std::isnan(std::real(a(i, i)))) return i + 1;
  return 0;
}

}  // namespace

template <class T>
void gemm(Op op_a, Op op_b, Value<T> alpha, Input<T> a, Input<T> b, Value<T> beta,
          KernelTile<T> c) {
  const int m = op_a == Op::none ? a.rows : a.cols;
  const int k = op_a == Op::none ? a.cols : a.rows;
  const int k_of_b = op_b == Op::none ? b.rows : b.cols;
  const int n = op_b == Op::none ? b.cols : b.rows;
  require(m == c.rows && n == c.cols && k == k_of_b, "gemm: the shapes of A, B and C disagree");
  if (c.empty()) return;
  if (k == 0) return scale(beta, c);
  Blas<T>::gemm(CblasColMajor, blas(op_a), blas(op_b), m, n, k, scalar(alpha), a.data, a.ld, b.data,
                b.ld, scalar(beta), c.data, c.ld);
}

template <class T>
void syrk(Uplo uplo, Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c) {
  if (!is_complex<T> && op == Op::conjugate) op = Op::transpose;
  require(op != Op::conjugate, "syrk: op must be none or transpose; use herk for the adjoint");
  const int n = op == Op::none ? a.rows : a.cols;
  const int k = op == Op::none ? a.cols : a.rows;
  require(n == c.rows && n == c.cols, "syrk: the shapes of A and C disagree");
  if (n == 0) return;
  // Not every version of the BLAS ignores what C holds when beta is 0.
  if (k == 0 || beta == T{}) scale(beta, c, triangle(uplo));
  if (k == 0) return;
  Blas<T>::syrk(CblasColMajor, blas(uplo), blas(op), n, k, scalar(alpha), a.data, a.ld,
                scalar(beta), c.data, c.ld);
}

template <class T>
void herk(Uplo uplo, Op op, double alpha, Input<T> a, double beta, KernelTile<T> c) {
  if constexpr (!is_complex<T>) {
    return syrk(uplo, op, static_cast<T>(alpha), a, static_cast<T>(beta), c);
  } else {
    require(op != Op::transpose, "herk: op must be none or adjoint; use syrk for the transpose");
    const int n = op == Op::none ? a.rows : a.cols;
    const int k = op == Op::none ? a.cols : a.rows;
    require(n == c.rows && n == c.cols, "herk: the shapes of A and C disagree");
    if (n == 0) return;
    using Real = RealPart<T>;
    if (k == 0 || beta == 0) scale(static_cast<Real>(beta), c, triangle(uplo));
    if (k != 0)
      Blas<T>::herk(CblasColMajor, blas(uplo), blas(op), n, k, static_cast<Real>(alpha), a.data,
                    a.ld, static_cast<Real>(beta), c.data, c.ld);
    // The BLAS may return early (alpha 0, beta 1) and leave imaginary parts on the diagonal.
    for (int i = 0; i < n; ++i) c(i, i) = std::real(c(i, i));
  }
}

template <class T>
void trsm(Side side, Uplo uplo, Op op, Diag diag, Value<T> alpha, Input<T> a, KernelTile<T> b) {
  const int order = side == Side::left ? b.rows : b.cols;
  require(a.rows == order && a.cols == order, "trsm: the shapes of A and B disagree");
  if (b.empty()) return;
  if (alpha == T{}) return scale(alpha, b);
  Blas<T>::trsm(CblasColMajor, blas(side), blas(uplo), blas(op), blas(diag), b.rows, b.cols,
                scalar(alpha), a.data, a.ld, b.data, b.ld);
}

template <class T>
int potrf(Uplo uplo, KernelTile<T> a) {
  require(a.rows == a.cols, "potrf: A must be square");
  if (a.rows == 0) return 0;
  const char letter = uplo == Uplo::lower ? 'L' : 'U';
  const blasint n = a.rows;
  const blasint ld = a.ld;
  blasint info = 0;
  Blas<T>::potrf(&letter, &n, a.data, &ld, &info);
  const int nan = first_nan_on_diagonal(a);
  if (nan == 0) return info;
  return info == 0 || nan < info ? nan : info;
}

#define QUADRIGA_INSTANTIATE(T)                                                                 \
  template void gemm<T>(Op, Op, T, KernelTile<const T>, KernelTile<const T>, T, KernelTile<T>); \
  template void syrk<T>(Uplo, Op, T, KernelTile<const T>, T, KernelTile<T>);                    \
  template void herk<T>(Uplo, Op, double, KernelTile<const T>, double, KernelTile<T>);          \
  template void trsm<T>(Side, Uplo, Op, Diag, T, KernelTile<const T>, KernelTile<T>);           \
  template int potrf<T>(Uplo, KernelTile<T>);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels
