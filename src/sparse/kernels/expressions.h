// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/expressions.h: arithmetic of distributed vectors and scalars: what tasks get,
// and what is computed on one part.
//
// Multiplications and additions aren't fused, and sums are taken by blocks of rows in one fixed
// order: the same bits for any cut into parts.
#pragma once

#include <cmath>
#include <cstdint>

namespace quadriga::sparse {

/// A number as a scalar's tile holds it. Real ones have no imaginary part; comparisons give 0 or 1.
struct ScalarValue {
  double real = 0;
  double imag = 0;
};

enum class ScalarOperation : std::int32_t {
  add,
  subtract,
  multiply,
  divide,
  less,
  less_equal,
  square_root,  ///< From here on of one operand, the left one.
  magnitude,
  real_part,
};

/// {out write, left, right}, of these only those that aren't constants.
struct ScalarParams {
  ScalarOperation operation = ScalarOperation::add;
  bool is_complex = false;
  bool has_left = false;  ///< As an operand; else `left` is its value.
  bool has_right = false;
  ScalarValue left;
  ScalarValue right;
};

constexpr ScalarValue product_of(const ScalarValue& x, const ScalarValue& y) noexcept {
  return {x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real};
}

/// Smith's way, which squares nothing: a square may be out of range.
constexpr ScalarValue quotient_of(const ScalarValue& x, const ScalarValue& y) noexcept {
  if (y.imag == 0) return {x.real / y.real, x.imag / y.real};
  const bool is_steep = std::fabs(y.imag) > std::fabs(y.real);
  const double ratio = is_steep ? y.real / y.imag : y.imag / y.real;
  const double below = is_steep ? y.real * ratio + y.imag : y.real + y.imag * ratio;
  if (is_steep) return {(x.real * ratio + x.imag) / below, (x.imag * ratio - x.real) / below};
  return {(x.real + x.imag * ratio) / below, (x.imag - x.real * ratio) / below};
}

/// Real operands don't touch imaginary parts, which infinity times zero would spoil.
constexpr ScalarValue value_of(const ScalarParams& p, const ScalarValue& x,
                               const ScalarValue& y) noexcept {
  switch (p.operation) {
    case ScalarOperation::add:
      return {x.real + y.real, x.imag + y.imag};
    case ScalarOperation::subtract:
      return {x.real - y.real, x.imag - y.imag};
    case ScalarOperation::multiply:
      return p.is_complex ? product_of(x, y) : ScalarValue{x.real * y.real, 0};
    case ScalarOperation::divide:
      return p.is_complex ? quotient_of(x, y) : ScalarValue{x.real / y.real, 0};
    case ScalarOperation::less:
      return {x.real < y.real ? 1.0 : 0.0, 0};
    case ScalarOperation::less_equal:
      return {x.real <= y.real ? 1.0 : 0.0, 0};
    case ScalarOperation::square_root:
      return {std::sqrt(x.real), 0};
    case ScalarOperation::magnitude:
      return {p.is_complex ? std::hypot(x.real, x.imag) : std::fabs(x.real), 0};
    case ScalarOperation::real_part:
      return {x.real, 0};
  }
  return {};
}

/// factor * scalar * vector.
struct Term {
  ScalarValue factor{1, 0};
  std::int32_t scalar = -1;  ///< Of the scalars; -1: none.
  std::int32_t vector = -1;  ///< Of the vectors; -1: what is written, as it was before.
};

inline constexpr int most_terms = 4;

/// {out write or update, vectors, scalars}: out = the sum of these terms, from the first on.
struct CombineParams {
  std::int32_t count = 0;  ///< 0: out = 0.
  std::int32_t vectors = 0;
  Term terms[most_terms];
};

constexpr ScalarValue coefficient_of(const Term& term, const ScalarValue* scalar) noexcept {
  if (!scalar) return term.factor;
  if (term.factor.imag != 0) return product_of(term.factor, *scalar);
  return {term.factor.real * scalar->real, term.factor.real * scalar->imag};
}

/// Rows of one part.
struct BlockedRows {
  std::int64_t rows = 0;
  std::int64_t block_rows = 0;
  std::int64_t blocks = 0;
};

/// The addresses of an operand list of CombineParams.
template <class T>
struct TermArrays {
  std::int64_t rows = 0;
  int count = 0;
  T* out = nullptr;
  const T* vectors[most_terms] = {};
  const ScalarValue* scalars[most_terms] = {};  ///< Null: none.
  Term terms[most_terms] = {};
};

template <class T>
void combine(const TermArrays<T>& terms);

/// out = x*y, element by element.
template <class T>
void multiply_elements(std::int64_t rows, const T* x, const T* y, T* out);

/// Sums of x^H*y by blocks: their real parts, then, of complex numbers, the imaginary ones.
template <class T>
void sum_blocks(const BlockedRows& rows, const T* x, const T* y, double* sums);

}  // namespace quadriga::sparse
