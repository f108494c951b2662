// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/gemm.h: the product of tiles.
#pragma once

#include "linalg/kernels/kernel_spec.h"
#include "linalg/kernels/tile.h"

namespace quadriga::kernels {

struct GemmParams {
  Coefficient alpha{1, 0};
  Coefficient beta{};  ///< Ignored where C is written only.
  Op op_a = Op::none;
  Op op_b = Op::none;
  bool allow_tf32 = false;  ///< A GPU may round float32 and complex64 factors to TF32.
  bool fine = false;
  /// Where A's columns begin among the rows of op(B), of which it has as many or fewer; -1: it has
  /// as many.
  std::int32_t inner = -1;
};

inline constexpr Names gemm_names{"sgemm", "dgemm", "cgemm", "zgemm"};

/// {A read, B read, C update}: C = alpha*op(A)*op(B) + beta*C; of op(B) the rows that
/// GemmParams::inner says. Parameters: GemmParams.
const Codelet& gemm_codelet(DType type);
/// {A read, B read, C write}: C = alpha*op(A)*op(B), whatever C held.
const Codelet& gemm_write_codelet(DType type);

std::span<const KernelSpec> gemm_kernels();

/// C = alpha*op(A)*op(B) + beta*C; with beta 0, C isn't read.
///
/// Shapes:  op(A) is m x k, op(B) is k x n, C is m x n and overlaps neither.
/// Errors:  invalid_argument if the shapes disagree.
/// Cost:    2mnk flops.
template <class T>
void gemm(Op op_a, Op op_b, Value<T> alpha, Input<T> a, Input<T> b, Value<T> beta, KernelTile<T> c);

/// The same on a stream. With `allow_tf32`, float32 and complex64 factors may be rounded to TF32.
template <class T>
void queue_gemm(StreamBlas<T>& on, Op op_a, Op op_b, Value<T> alpha, Input<T> a, Input<T> b,
                Value<T> beta, KernelTile<T> c, bool allow_tf32 = false);

}  // namespace quadriga::kernels
