// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/host_sums.h: sums over a block of rows on the host, and M by its blocks.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "sparse/kernels/number.h"
#include "sparse/kernels/part_kernels.h"

namespace quadriga::sparse {

/// A number of columns that is known when compiling: elements of a vector are neighbours.
using One = std::integral_constant<std::int64_t, 1>;

/// Calls `work(columns)` with One where it is 1.
template <class Work>
void with_columns(std::int64_t columns, const Work& work) {
  if (columns == 1)
    work(One{});
  else
    work(columns);
}

struct RowRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

inline RowRange rows_in(const PartShape& shape, std::int64_t block) noexcept {
  const std::int64_t first = block * shape.block_rows;
  return {first, std::min(first + shape.block_rows, shape.rows)};
}

/// Sums with `term(row, part)` over rows and parts of elements, in eight lanes: one fixed order,
/// which compilers find vectors in.
template <class T, class Term>
double sum_over(RowRange rows, Term term) {
  constexpr std::int64_t lanes = 8;
  constexpr std::int64_t parts = parts_of<T>;
  constexpr std::int64_t step_rows = lanes / parts;
  std::array<double, lanes> sums{};
  std::int64_t row = rows.first;
  const auto add = [&](std::int64_t at, std::int64_t lane) {
    for (std::int64_t part = 0; part < parts; ++part) sums[lane + part] += term(at, part);
  };
  for (; row + step_rows <= rows.last; row += step_rows)
    for (std::int64_t i = 0; i < step_rows; ++i) add(row + i, i * parts);
  for (std::int64_t i = 0; row < rows.last; ++row, ++i) add(row, i * parts);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

/// Re(x^H*y) of one column of a block. `columns`: a number, or One.
template <class T, class Columns>
double dot(RowRange rows, const T* x, const T* y, Columns columns, std::int64_t column) {
  constexpr std::int64_t parts = parts_of<T>;
  const Real<T>* const left = as_reals(x + column);
  const Real<T>* const right = as_reals(y + column);
  const auto stride = columns * parts;
  return sum_over<T>(rows, [=](std::int64_t row, std::int64_t part) {
    return static_cast<double>(left[row * stride + part]) *
           static_cast<double>(right[row * stride + part]);
  });
}

/// p = z + beta*p for one row and column; p may be anything where beta is zero.
template <class T>
void turn_element(T& p, const T& z, double beta) noexcept {
  p = beta == 0 ? z : z + p * static_cast<Real<T>>(beta);
}

/// M by its blocks, each row's elements one after the other.
template <class T>
class Inverses {
 public:
  explicit Inverses(const PartArrays<T>& a) noexcept
      : elements_(a.inverses()), size_(a.shape().inverse_rows) {}
  bool is_identity() const noexcept { return elements_ == nullptr; }
  /// An element of M*r, for any row: a neighbour computes the same bits.
  T times(const T* r, std::int64_t columns, std::int64_t row, std::int64_t column) const noexcept {
    if (size_ == 0) return r[row * columns + column];
    if (size_ == 1) return multiplied(elements_[row], r[row * columns + column]);
    const T* const line = elements_ + row * size_;
    const T* const from = r + row / size_ * size_ * columns + column;
    T sum = multiplied(line[0], from[0]);
    for (std::int64_t j = 1; j < size_; ++j) sum += multiplied(line[j], from[j * columns]);
    return sum;
  }

 private:
  const T* elements_;
  std::int64_t size_;
};

/// M where it is a diagonal.
template <class T>
class InverseDiagonal {
 public:
  explicit InverseDiagonal(const PartArrays<T>& a) noexcept : elements_(a.inverses()) {}
  static constexpr bool is_identity() noexcept { return false; }
  T times(const T* r, std::int64_t columns, std::int64_t row, std::int64_t column) const noexcept {
    return multiplied(elements_[row], r[row * columns + column]);
  }

 private:
  const T* elements_;
};

/// Calls `work(m)`, where `m` has the same bits as Inverses.
template <class T, class Work>
void with_inverses(const PartArrays<T>& a, const Work& work) {
  if (a.shape().inverse_rows == 1)
    work(InverseDiagonal<T>(a));
  else
    work(Inverses<T>(a));
}

}  // namespace quadriga::sparse
