// SPDX-License-Identifier: BSD-3-Clause
// bench/matrices.h: large random matrices, and how far a result is from what it should be.
#pragma once

#include <cstdint>
#include <memory>

#include "linalg/kernels/tile_elements.h"

namespace quadriga::bench {

/// A square matrix of doubles in columns, on pages of its own.
class Matrix {
 public:
  explicit Matrix(std::int64_t order);
  double* data() const noexcept { return elements_.get(); }
  std::int64_t order() const noexcept { return order_; }
  /// Every bit of the mantissas is drawn.
  void fill(const kernels::RandomMatrix& random);
  void copy_from(const Matrix& other);
  /// Of all elements.
  double frobenius_norm() const;

 private:
  struct Free {
    void operator()(double* memory) const noexcept;
  };
  std::int64_t order_;
  std::unique_ptr<double[], Free> elements_;
};

/// |C*x - (A*B + C0)*x| / ((|A| |B| + |C0|) |x|) for a random x.
double product_error(const Matrix& a, const Matrix& b, const Matrix& before, const Matrix& c);

/// |L*L^T*x - A*x| / (|A| |x|) for a random x; L is the lower triangle of `factor`.
double factor_error(const Matrix& a, const Matrix& factor);

}  // namespace quadriga::bench
