// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/solve_cuda.h: triangular systems of a few columns, by substitution on a
// device.
#pragma once

#include <cuda_runtime_api.h>

#include "linalg/kernels/tile.h"

namespace quadriga::kernels::cuda {

/// The largest order that solve_by_substitution() takes.
template <class T>
constexpr int most_substituted = sizeof(T) <= 8 ? 128 : 64;

/// Whether the stream's device has the shared memory that it takes.
template <class T>
bool can_substitute();

/// B = op(A)^-1*B (side left) or B*op(A)^-1 (side right), A triangular of an order of at most
/// most_substituted. Backward stable as substitution is. What happens to a right-hand side doesn't
/// depend on the others.
///
/// Async:   returns once queued.
template <class T>
void solve_by_substitution(cudaStream_t stream, Side side, Uplo uplo, Op op, Diag diag, Input<T> a,
                           Tile<T> b);

}  // namespace quadriga::kernels::cuda
