// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/view.cpp: passes over strided elements, in blocks that stay in cache.
#include "linalg/view.h"

#include "base/number_type.h"
#include "engine/engine_access.h"

#include <cmath>
#include <complex>
#include <cstdlib>
#include <utility>

namespace quadriga::linalg {
namespace {

template <class T>
T multiply(Coefficient factor, const T& value) noexcept {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(factor.real) * value;
  } else {
    using Real = typename T::value_type;
    const auto re = static_cast<Real>(factor.real);
    const auto im = static_cast<Real>(factor.imag);
    return {re * value.real() - im * value.imag(), re * value.imag() + im * value.real()};
  }
}

template <class T>
T conjugated(const T& value) noexcept {
  if constexpr (std::is_floating_point_v<T>)
    return value;
  else
    return std::conj(value);
}

template <class T>
T* pointer(const MatrixView& view) noexcept {
  return static_cast<T*>(view.data);
}

/// Calls visit(i, j) for every element, the direction with the smaller step innermost, in blocks.
template <class Visit>
void for_each(const MatrixView& view, Visit&& visit) {
  constexpr std::int64_t block = 64;
  const bool columns = std::abs(view.row_stride) <= std::abs(view.col_stride);
  for (std::int64_t j0 = 0; j0 < view.cols; j0 += block) {
    for (std::int64_t i0 = 0; i0 < view.rows; i0 += block) {
      const std::int64_t i1 = std::min(i0 + block, view.rows);
      const std::int64_t j1 = std::min(j0 + block, view.cols);
      if (columns)
        for (std::int64_t j = j0; j < j1; ++j)
          for (std::int64_t i = i0; i < i1; ++i) visit(i, j);
      else
        for (std::int64_t i = i0; i < i1; ++i)
          for (std::int64_t j = j0; j < j1; ++j) visit(i, j);
    }
  }
}

struct Span {
  std::int64_t first = 0;  ///< In bytes.
  std::int64_t last = 0;   ///< The last element's end.
};

Span addresses(const MatrixView& view) noexcept {
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  const auto base = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(view.data));
  const std::int64_t down = (view.rows - 1) * view.row_stride * size;
  const std::int64_t right = (view.cols - 1) * view.col_stride * size;
  return {base + std::min<std::int64_t>(0, down) + std::min<std::int64_t>(0, right),
          base + std::max<std::int64_t>(0, down) + std::max<std::int64_t>(0, right) + size};
}

/// Views with the same positive strides, one of them contiguous, cut from one matrix.
bool disjoint_rectangles(const MatrixView& a, const MatrixView& b) noexcept {
  const bool rows_inside = a.row_stride < a.col_stride;
  const std::int64_t small = rows_inside ? a.row_stride : a.col_stride;
  const std::int64_t large = rows_inside ? a.col_stride : a.row_stride;
  const auto size = static_cast<std::int64_t>(size_of(a.dtype));
  const std::int64_t bytes = static_cast<std::byte*>(b.data) - static_cast<std::byte*>(a.data);
  if (small <= 0 || bytes % size != 0) return false;
  const std::int64_t a_inner = rows_inside ? a.rows : a.cols;
  const std::int64_t b_inner = rows_inside ? b.rows : b.cols;
  std::int64_t along = bytes / size % large;
  if (along < 0) along += large;
  // Element x of a at x*small, of b at along + y*small; b may begin left of a in the next line.
  if (along % small != 0 && large % small == 0) return true;
  const bool right_of_a = along > (a_inner - 1) * small;
  const bool left_again = along + (b_inner - 1) * small < large;
  return right_of_a && left_again;
}

}  // namespace

bool is_complex(DType dtype) noexcept {
  return dtype == DType::complex64 || dtype == DType::complex128;
}

bool empty(const MatrixView& view) noexcept { return view.rows == 0 || view.cols == 0; }

ViewKind layout_of(const MatrixView& view) noexcept {
  const auto contiguous = [](std::int64_t inner, std::int64_t outer, std::int64_t inner_stride,
                             std::int64_t outer_stride) {
    return (inner_stride == 1 || inner == 1) && (outer_stride >= inner || outer == 1);
  };
  if (empty(view) || contiguous(view.rows, view.cols, view.row_stride, view.col_stride))
    return ViewKind::columns;
  if (contiguous(view.cols, view.rows, view.col_stride, view.row_stride)) return ViewKind::rows;
  return ViewKind::strided;
}

std::int64_t leading_dimension(const MatrixView& view) noexcept {
  return view.cols == 1 ? std::max<std::int64_t>(1, view.rows)
                        : std::max(view.col_stride, std::max<std::int64_t>(1, view.rows));
}

std::byte* at(const MatrixView& view, std::int64_t i, std::int64_t j) noexcept {
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  return static_cast<std::byte*>(view.data) + (i * view.row_stride + j * view.col_stride) * size;
}

Data register_tile(Engine& engine, const MatrixView& tile, DataOptions options) {
  const std::int64_t ld = leading_dimension(tile);
  return EngineAccess::add(engine, tile.device, {tile.data, tile.rows, tile.cols, ld, tile.dtype},
                           options, true);
}

MatrixView part(const MatrixView& view, std::int64_t i, std::int64_t j, std::int64_t rows,
                std::int64_t cols) noexcept {
  return {at(view, i, j), rows, cols, view.row_stride, view.col_stride, view.dtype, view.device};
}

MatrixView beside_diagonal(const MatrixView& view, Uplo uplo, std::int64_t first,
                           std::int64_t length) noexcept {
  const std::int64_t rest = view.rows - first - length;
  return uplo == Uplo::lower ? part(view, first, first + length, length, rest)
                             : part(view, first + length, first, rest, length);
}

bool overlap(const MatrixView& a, const MatrixView& b) noexcept {
  if (empty(a) || empty(b)) return false;
  const Span first = addresses(a);
  const Span second = addresses(b);
  if (first.last <= second.first || second.last <= first.first) return false;
  const bool alike =
      a.dtype == b.dtype && a.row_stride == b.row_stride && a.col_stride == b.col_stride;
  return !alike || !disjoint_rectangles(a, b);
}

bool same(const MatrixView& a, const MatrixView& b) noexcept {
  return a.data == b.data && a.rows == b.rows && a.cols == b.cols && a.dtype == b.dtype &&
         (a.row_stride == b.row_stride || a.rows <= 1) &&
         (a.col_stride == b.col_stride || a.cols <= 1);
}

void copy(const MatrixView& from, const MatrixView& to, bool conjugate) {
  with_number_type(from.dtype, [&]<class T>() {
    const T* const source = pointer<T>(from);
    T* const target = pointer<T>(to);
    if (conjugate && is_complex(from.dtype)) {
      for_each(from, [&](std::int64_t i, std::int64_t j) {
        target[i * to.row_stride + j * to.col_stride] =
            conjugated(source[i * from.row_stride + j * from.col_stride]);
      });
    } else {
      for_each(from, [&](std::int64_t i, std::int64_t j) {
        target[i * to.row_stride + j * to.col_stride] =
            source[i * from.row_stride + j * from.col_stride];
      });
    }
  });
}

void scale(Coefficient factor, const MatrixView& c) {
  if (factor == Coefficient(1)) return;
  with_number_type(c.dtype, [&]<class T>() {
    T* const elements = pointer<T>(c);
    const bool clear = factor == Coefficient(0);
    for_each(c, [&](std::int64_t i, std::int64_t j) {
      T& element = elements[i * c.row_stride + j * c.col_stride];
      element = clear ? T{} : multiply(factor, element);
    });
  });
}

void scale_triangle(Coefficient factor, const MatrixView& c, Uplo uplo) {
  for (std::int64_t j = 0; j < c.cols; ++j) {
    const std::int64_t first = uplo == Uplo::lower ? j : 0;
    const std::int64_t end = uplo == Uplo::lower ? c.rows : j + 1;
    scale(factor, part(c, first, j, end - first, 1));
  }
}

void conjugate(const MatrixView& c) {
  if (is_complex(c.dtype)) copy(c, c, true);
}

void clear_triangle(const MatrixView& c, Uplo which) {
  with_number_type(c.dtype, [&]<class T>() {
    T* const elements = pointer<T>(c);
    for_each(c, [&](std::int64_t i, std::int64_t j) {
      if (which == Uplo::lower ? i > j : i < j) elements[i * c.row_stride + j * c.col_stride] = T{};
    });
  });
}

bool is_zero(const MatrixView& element) {
  bool zero = false;
  with_number_type(element.dtype, [&]<class T>() { zero = *pointer<T>(element) == T{}; });
  return zero;
}

bool finite(const MatrixView& view) {
  bool all = true;
  with_number_type(view.dtype, [&]<class T>() {
    const T* const elements = pointer<T>(view);
    for_each(view, [&](std::int64_t i, std::int64_t j) {
      const T& value = elements[i * view.row_stride + j * view.col_stride];
      all &= std::isfinite(std::real(value)) && std::isfinite(std::imag(value));
    });
  });
  return all;
}

}  // namespace quadriga::linalg
