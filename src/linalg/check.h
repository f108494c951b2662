// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/check.h: refuses inputs that don't fit together, naming what was given.
#pragma once

#include <quadriga/linalg.h>

#include <string_view>

namespace quadriga::linalg {

/// "alpha * A (3 x 4)" and the like.
std::string shape_of(std::int64_t rows, std::int64_t cols);

/// Sizes aren't negative, and there is memory where there are elements.
void check_matrix(std::string_view name, const Matrix& matrix);
/// A view that is written: no two elements are the same.
void check_output(std::string_view name, const MatrixView& view);
void check_square(std::string_view name, const Matrix& matrix);
void check_types(std::string_view a_name, DType a, std::string_view b_name, DType b);
void check_no_overlap(std::string_view a_name, const Matrix& a, std::string_view b_name,
                      const MatrixView& b);
void check_options(const Options& options);
/// Whether GPUs may round the factors of products of this type to TF32.
bool allow_tf32(const Options& options, DType dtype);
/// Whether tiles are chosen as for a single device.
bool reproducible(const Engine& engine, const Options& options);
/// Whether kernels may compute on a finer grid on cores, see kernels/divisions.h.
bool divides(const Engine& engine, const Options& options);
/// With Options::check_finite; sources are checked when they are read.
void check_finite(Engine& engine, const Options& options, std::string_view name,
                  const Matrix& matrix);
/// The tiles of a triangle that has no memory of its own fit all devices and host buffers together.
/// Errors:  too_large with the figures.
void check_room(const Engine& engine, std::string_view name, std::int64_t order, DType dtype);

}  // namespace quadriga::linalg
