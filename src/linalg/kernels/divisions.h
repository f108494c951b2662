// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/divisions.h: how the tile kernels divide: the same kernels on a finer grid.
//
// The grid follows from the tile's shape alone, so the bits don't depend on how many cores take
// part. Products and rank updates keep their inner dimension whole, solves their triangle: parts of
// what they write don't wait for each other. Only a factorization's fine tasks follow each other.
#pragma once

#include <quadriga/division.h>

namespace quadriga::kernels {

/// Rows or columns of a fine tile of `length` ones; `length` if it isn't divided.
std::int64_t fine_length(std::int64_t length) noexcept;

// Each adds the fine tasks of a task of its codelet's; none if its parameters don't say `fine`, or
// if its tile is too small.
void divide_gemm(const Arguments& arguments, Division& division);
void divide_syrk(const Arguments& arguments, Division& division);
void divide_herk(const Arguments& arguments, Division& division);
void divide_trsm(const Arguments& arguments, Division& division);
void divide_potrf(const Arguments& arguments, Division& division);

}  // namespace quadriga::kernels
