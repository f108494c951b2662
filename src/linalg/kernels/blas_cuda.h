// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/blas_cuda.h: the matrix kernels of tile.h on a stream, by cuBLAS and cuSOLVER.
//
// As in tile.h, with tiles in the memory of the stream's device; they return once queued. Products
// that may use TF32 round float32 and complex64 factors to it, and add in float32.
#pragma once

#include "linalg/kernels/handles_cuda.h"
#include "linalg/kernels/tile.h"

namespace quadriga::kernels::cuda {

template <class T>
void gemm(Handles& on, Op op_a, Op op_b, Value<T> alpha, Input<T> a, Input<T> b, Value<T> beta,
          KernelTile<T> c, bool allow_tf32 = false);
template <class T>
void syrk(Handles& on, Uplo uplo, Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c,
          bool allow_tf32 = false);
template <class T>
void herk(Handles& on, Uplo uplo, Op op, double alpha, Input<T> a, double beta, KernelTile<T> c,
          bool allow_tf32 = false);
template <class T>
void trsm(Handles& on, Side side, Uplo uplo, Op op, Diag diag, Value<T> alpha, Input<T> a,
          KernelTile<T> b);
/// Writes what tile.h's potrf returns to `*info`, in host memory that the device can write.
template <class T>
void potrf(Handles& on, Uplo uplo, KernelTile<T> a, int* info);

}  // namespace quadriga::kernels::cuda
