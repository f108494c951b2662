// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/inverses.h: inverses of small dense matrices.
#pragma once

#include <complex>

namespace quadriga::sparse {

/// The inverse in place of a matrix of at most 4 x 4 elements, row by row, computed in double
/// precision with row pivots. False if it is singular or not finite; the matrix is unspecified
/// then.
bool invert(float* matrix, int size) noexcept;
bool invert(double* matrix, int size) noexcept;
bool invert(std::complex<float>* matrix, int size) noexcept;
bool invert(std::complex<double>* matrix, int size) noexcept;

}  // namespace quadriga::sparse
