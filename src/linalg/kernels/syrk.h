// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/syrk.h: rank updates of symmetric and Hermitian tiles.
#pragma once

#include "linalg/kernels/kernel_spec.h"
#include "linalg/kernels/tile.h"

namespace quadriga::kernels {

struct SyrkParams {
  Coefficient alpha{1, 0};  ///< herk takes the real parts only.
  Coefficient beta{};       ///< Ignored where C is written only.
  Uplo uplo = Uplo::lower;
  Op op = Op::none;
  bool allow_tf32 = false;  ///< As in GemmParams.
  bool fine = false;
};

/// Of herk, too.
inline constexpr Names syrk_names{"ssyrk", "dsyrk", "csyrk", "zsyrk"};

/// {A read, C update}: a triangle of C = alpha*op(A)*op(A)^T + beta*C. Parameters: SyrkParams.
const Codelet& syrk_codelet(DType type);
/// {A read, C write}: the same without beta*C; the other triangle is set to zero.
const Codelet& syrk_write_codelet(DType type);
/// As syrk with the conjugate transpose.
const Codelet& herk_codelet(DType type);
const Codelet& herk_write_codelet(DType type);

std::span<const KernelSpec> syrk_kernels();

/// The triangle `uplo` of C = alpha*op(A)*op(A)^T + beta*C; the other is left alone.
///
/// Shapes:  op(A) is n x k, C is n x n. `op` is none or transpose.
/// Errors:  invalid_argument if the shapes disagree, or for conjugate of a complex type.
/// Cost:    n^2 k flops.
template <class T>
void syrk(Uplo uplo, Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c);

/// The triangle `uplo` of C = alpha*op(A)*op(A)^H + beta*C; the diagonal becomes real. For real
/// types the same as syrk. `op` is none or conjugate (for real types transpose means the same).
template <class T>
void herk(Uplo uplo, Op op, double alpha, Input<T> a, double beta, KernelTile<T> c);

}  // namespace quadriga::kernels
