// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/elements_cuda.h: the kernels of tile_elements.h and tile_measure.h on a
// stream.
//
// As there, with tiles in the memory of the stream's device; they return once queued. Those of
// tile_elements.h and covariances give the host's values to the bit.
#pragma once

#include <cuda_runtime_api.h>

#include "linalg/kernels/codelets.h"
#include "linalg/kernels/tile_elements.h"

namespace quadriga::kernels::cuda {

template <class T>
void copy(cudaStream_t stream, Op op, Input<T> a, KernelTile<T> c, TileRegion region = {});
template <class T>
void scale(cudaStream_t stream, Value<T> alpha, KernelTile<T> c, TileRegion region = {});
template <class T>
void axpby(cudaStream_t stream, Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c,
           TileRegion region = {});
template <class T>
void set(cudaStream_t stream, Value<T> value, Value<T> on_diagonal, KernelTile<T> c,
         TileRegion region = {});
template <class T>
void add_diagonal(cudaStream_t stream, Value<T> value, KernelTile<T> c, std::int64_t diagonal = 0);
template <class T>
void mirror(cudaStream_t stream, Uplo stored, Op op, KernelTile<T> c);
template <class T>
void fill_random(cudaStream_t stream, const RandomMatrix& random, KernelTile<T> c);

/// Takes the imaginary parts off the diagonal of a square tile; complex types only.
template <class T>
void make_diagonal_real(cudaStream_t stream, KernelTile<T> c);

/// After a Cholesky factorization: writes to `*info`, in host memory that the device can write, the
/// smaller of the minor in `*found` and that of the first NaN on the diagonal; 0 for neither.
template <class T>
void report_minor(cudaStream_t stream, KernelTile<const T> a, const int* found, int* info);

/// Sets `out` to the measure. Sums are formed in one fixed order, another one than the host's.
template <class T>
void measure(cudaStream_t stream, Measure what, TileRegion region, Input<T> a,
             KernelTile<double> out);

/// As Covariance::fill. Copies the points to the device the first time.
template <class T>
void covariance(cudaStream_t stream, const Covariance& covariance, std::int64_t first_row,
                std::int64_t first_col, KernelTile<T> out);

}  // namespace quadriga::kernels::cuda
