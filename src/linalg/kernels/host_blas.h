// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/host_blas.h: how kernels call CBLAS: its flags and scalars, a function by
// type.
#pragma once

#include "linalg/kernels/region.h"

#include <cblas.h>

namespace quadriga::kernels {

/// The one of four functions that is T's.
template <class T, class S, class D, class C, class Z>
constexpr auto of_type(S* s, D* d, C* c, Z* z) noexcept {
  if constexpr (std::is_same_v<T, float>)
    return s;
  else if constexpr (std::is_same_v<T, double>)
    return d;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return c;
  else
    return z;
}

/// CBLAS takes real scalars by value and complex ones by address.
template <class T>
auto scalar(const T& value) {
  if constexpr (is_complex<T>)
    return static_cast<const void*>(&value);
  else
    return value;
}

inline CBLAS_TRANSPOSE blas(Op op) {
  if (op == Op::none) return CblasNoTrans;
  return op == Op::transpose ? CblasTrans : CblasConjTrans;
}
inline CBLAS_UPLO blas(Uplo uplo) { return uplo == Uplo::lower ? CblasLower : CblasUpper; }
inline CBLAS_SIDE blas(Side side) { return side == Side::left ? CblasLeft : CblasRight; }
inline CBLAS_DIAG blas(Diag diag) { return diag == Diag::unit ? CblasUnit : CblasNonUnit; }

}  // namespace quadriga::kernels
