// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/trsm.h: triangular systems of tiles.
#pragma once

#include "linalg/kernels/kernel_spec.h"
#include "linalg/kernels/tile.h"

namespace quadriga::kernels {

struct TrsmParams {
  Coefficient alpha{1, 0};
  Side side = Side::left;
  Uplo uplo = Uplo::lower;
  Op op = Op::none;
  Diag diag = Diag::non_unit;
  bool fine = false;
};

inline constexpr Names trsm_names{"strsm", "dtrsm", "ctrsm", "ztrsm"};

/// {T read, B update}: B = alpha*op(T)^-1*B or alpha*B*op(T)^-1. Parameters: TrsmParams.
const Codelet& trsm_codelet(DType type);

std::span<const KernelSpec> trsm_kernels();

/// B = alpha*op(A)^-1*B (side left) or alpha*B*op(A)^-1 (side right), A triangular.
///
/// Shapes:  B is m x n, A m x m (left) or n x n (right); the other triangle of A isn't read.
/// Errors:  invalid_argument if the shapes disagree. A zero on the diagonal gives infinities.
/// Cost:    m^2 n (left) or m n^2 (right) flops.
template <class T>
void trsm(Side side, Uplo uplo, Op op, Diag diag, Value<T> alpha, Input<T> a, KernelTile<T> b);

}  // namespace quadriga::kernels
