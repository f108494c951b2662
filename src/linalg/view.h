// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/view.h: views of the caller's memory: layouts, overlap, and passes over their
// elements.
#pragma once

#include <quadriga/linalg.h>

namespace quadriga::linalg {

/// How a view lies in memory.
enum class ViewKind : std::uint8_t {
  columns,  ///< Its columns are contiguous: tiles of it are tiles of the engine.
  rows,     ///< Its rows are: its transpose is `columns`.
  strided,  ///< Neither, or the engine can't take it: elements are gathered.
};

ViewKind layout_of(const MatrixView& view) noexcept;
/// Of a view with contiguous columns.
std::int64_t leading_dimension(const MatrixView& view) noexcept;
bool is_complex(DType dtype) noexcept;
bool empty(const MatrixView& view) noexcept;
/// The functions below that touch elements are for the host's memory; resident.h has those for
/// a device's.
inline bool on_device(const MatrixView& view) noexcept { return view.device != no_device; }
/// Address of element (i, j).
std::byte* at(const MatrixView& view, std::int64_t i, std::int64_t j) noexcept;
/// As data of the engine, whose home is where the view lies, and which nobody else finds there; its
/// columns are contiguous.
Data register_tile(Engine& engine, const MatrixView& tile, DataOptions options = {});
/// Rows i to i+rows, columns j to j+cols.
MatrixView part(const MatrixView& view, std::int64_t i, std::int64_t j, std::int64_t rows,
                std::int64_t cols) noexcept;
/// Of the columns (or rows) first to first+length of a square matrix, what lies in the triangle
/// that isn't `uplo`, beside the block on the diagonal.
MatrixView beside_diagonal(const MatrixView& view, Uplo uplo, std::int64_t first,
                           std::int64_t length) noexcept;
/// Whether two views may share an element; exact where strides agree, else by addresses.
bool overlap(const MatrixView& a, const MatrixView& b) noexcept;
/// The same elements in the same places.
bool same(const MatrixView& a, const MatrixView& b) noexcept;

/// to = from, conjugated if asked; shapes and types agree.
void copy(const MatrixView& from, const MatrixView& to, bool conjugate = false);
/// C = factor*C; with factor 0, C isn't read.
void scale(Coefficient factor, const MatrixView& c);
/// The same for a triangle with its diagonal.
void scale_triangle(Coefficient factor, const MatrixView& c, Uplo uplo);
/// C = conj(C).
void conjugate(const MatrixView& c);
/// Sets the strict triangle to zero.
void clear_triangle(const MatrixView& c, Uplo which);
/// Whether a view of one element holds zero.
bool is_zero(const MatrixView& element);
/// Whether every element is finite.
bool finite(const MatrixView& view);

}  // namespace quadriga::linalg
