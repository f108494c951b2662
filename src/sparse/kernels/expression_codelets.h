// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/expression_codelets.h: the kernels of expressions.h as codelets.
#pragma once

#include <quadriga/codelet.h>

#include <array>
#include <cstdint>
#include <vector>

#include "sparse/kernels/expressions.h"

namespace quadriga::sparse {

/// Those of vectors of a type, in parts of so many blocks of rows. They outlive their tasks.
class ExpressionCodelets {
 public:
  ExpressionCodelets(DType dtype, std::vector<std::int64_t> blocks);
  ExpressionCodelets(const ExpressionCodelets&) = delete;
  ExpressionCodelets& operator=(const ExpressionCodelets&) = delete;

  /// {out write, or update, vectors, scalars}. CombineParams.
  const Codelet& combine(bool updates, std::size_t vectors, std::size_t scalars) const {
    return combine_.at(updates).at(vectors).at(scalars);
  }
  /// {out write, x, y}: by elements.
  const Codelet& multiply() const noexcept { return multiply_; }
  /// {sums write, x, y}. BlockedRows.
  const Codelet& sum_blocks() const noexcept { return sum_blocks_; }
  /// {scalar write, sums of each part}: block by block, from the first to the last of the matrix.
  const Codelet& total() const noexcept { return total_; }
  /// {scalar write, as many scalars}. ScalarParams.
  const Codelet& scalar(std::size_t operands) const { return scalar_.at(operands); }

 private:
  using ByScalars = std::array<Codelet, most_terms + 1>;
  std::array<std::array<ByScalars, most_terms + 1>, 2> combine_;
  Codelet multiply_;
  Codelet sum_blocks_;
  Codelet total_;
  std::array<Codelet, 3> scalar_;
};

/// The addresses of a task of `combine`.
template <class T>
TermArrays<T> term_arrays(const Arguments& a) {
  const auto params = a.param<CombineParams>();
  TermArrays<T> arrays;
  // The caller's memory is registered as bytes.
  arrays.rows = static_cast<std::int64_t>(bytes_of(a.operands[0]) / sizeof(T));
  arrays.count = params.count;
  arrays.out = a.operands[0].as<T>();
  for (int i = 0; i < params.count; ++i) {
    const Term& term = params.terms[i];
    arrays.terms[i] = term;
    arrays.vectors[i] = a.operands[static_cast<std::size_t>(1 + term.vector)].template as<T>();
    if (term.scalar >= 0)
      arrays.scalars[i] = a.operands[static_cast<std::size_t>(1 + params.vectors + term.scalar)]
                              .template as<const ScalarValue>();
  }
  return arrays;
}

}  // namespace quadriga::sparse
