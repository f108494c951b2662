// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/solve_cuda.h: triangular systems of a few columns, by substitution on a
// device.
#pragma once

#include <cuda_runtime_api.h>

#include "linalg/kernels/tile.h"

namespace quadriga::kernels::cuda {

/// The largest order that solve_by_substitution() takes on the current device: a power of two, or 0
/// where it has too little shared memory for any.
template <class T>
int most_substituted();

/// B = op(A)^-1*B (side left) or B*op(A)^-1 (side right), A triangular of an order of at most
/// most_substituted(). Backward stable as substitution is. What happens to a right-hand side
/// doesn't depend on the others.
///
/// Async:   returns once queued.
template <class T>
void solve_by_substitution(cudaStream_t stream, Side side, Uplo uplo, Op op, Diag diag, Input<T> a,
                           KernelTile<T> b);

}  // namespace quadriga::kernels::cuda
