// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/potrf.h: the Cholesky factor of a tile.
#pragma once

#include "linalg/kernels/kernel_spec.h"
#include "linalg/kernels/tile.h"

namespace quadriga::kernels {

struct PotrfParams {
  std::int64_t first = 0;  ///< The tile's first row in the matrix; offset of a reported minor.
  Uplo uplo = Uplo::lower;
  bool fine = false;
};

inline constexpr Names potrf_names{"spotrf", "dpotrf", "cpotrf", "zpotrf"};

/// {A update}: A's Cholesky factor. Parameters: PotrfParams. The variant throws NotPositiveDefinite
/// with the minor of the whole matrix.
const Codelet& potrf_codelet(DType type);

std::span<const KernelSpec> potrf_kernels();

/// A = L*L^H (lower) or U^H*U (upper) in its triangle `uplo`; the other is neither read
/// nor written.
///
/// Returns 0, or the order of the leading minor that isn't positive definite (or holds a NaN); the
/// triangle's content is unspecified then.
/// Errors:  invalid_argument if A isn't square.
/// Cost:    n^3/3 flops.
template <class T>
int potrf(Uplo uplo, KernelTile<T> a);

}  // namespace quadriga::kernels
