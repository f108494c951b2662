// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/resident.h: passes over matrices wherever they lie: on the host's memory at once, on a
// device's by tasks there, so that nothing moves.
#pragma once

#include "linalg/kernels/tile_elements.h"
#include "linalg/run.h"

#include <initializer_list>

namespace quadriga::linalg {

/// The device in whose own memory all of them lie; no_device if there is none.
DeviceId common_device(const Engine& engine,
                       std::initializer_list<const Matrix*> matrices) noexcept;

/// Submits tasks that set part of a view on a device to zero: `part` is meant of the view, whose
/// columns or rows are contiguous. What is submitted later sees it.
void submit_clear(Run& run, const MatrixView& view, kernels::Part part, std::int64_t tile);

/// What isn't in a triangle with its diagonal.
constexpr kernels::Part strict_other(Uplo uplo) noexcept {
  return uplo == Uplo::lower ? kernels::Part::strict_upper : kernels::Part::strict_lower;
}

/// C = factor*C, or its triangle with the diagonal; with factor 0, C isn't read. Returns when done.
void scale_anywhere(Engine& engine, Coefficient factor, const MatrixView& c);
void scale_triangle_anywhere(Engine& engine, Coefficient factor, const MatrixView& c, Uplo uplo);

/// Whether every element is finite.
bool finite_anywhere(Engine& engine, const MatrixView& view);
/// The first zero on the diagonal of a square matrix on a device; -1 if there is none.
std::int64_t zero_on_diagonal(Engine& engine, const MatrixView& a);

}  // namespace quadriga::linalg
