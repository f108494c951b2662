// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_host.cpp: all recurrences of a step, a block of rows at a time.
#include "sparse/kernels/one_reduction.h"

#include <algorithm>

#include "sparse/kernels/host_sums.h"

namespace quadriga::sparse {
namespace {

/// Rows and a column of the vectors of a step.
template <class T>
class RecurrenceStep {
 public:
  RecurrenceStep(const PartArrays<T>& a, const PartVectors<T>& v, const Recurrences<T>& more, T* x)
      : m_(a), v_(v), more_(more), x_(x) {}

  void advance(RowRange rows, std::int64_t column, const ColumnState& state) const {
    const auto alpha = static_cast<Real<T>>(state.alpha);
    const std::int64_t last = rows.last * v_.columns;
    for (std::int64_t at = rows.first * v_.columns + column; at < last; at += v_.columns) {
      if (more_.u) {
        turn_element(more_.am_product[at], v_.q[at], state.beta);
        turn_element(more_.m_product[at], v_.p[at], state.beta);
      }
      turn_element(more_.product[at], more_.u ? more_.w[at] : v_.q[at], state.beta);
      turn_element(more_.direction[at], more_.u ? more_.u[at] : v_.p[at], state.beta);
      x_[at] += more_.direction[at] * alpha;
      v_.r[at] -= more_.product[at] * alpha;
      if (!more_.u) continue;
      more_.u[at] -= more_.m_product[at] * alpha;
      more_.w[at] -= more_.am_product[at] * alpha;
    }
    // M's blocks of rows lie within a block.
    const T* const from = more_.u ? more_.w : v_.r;
    for (std::int64_t row = rows.first; row < rows.last; ++row)
      v_.p[row * v_.columns + column] = m_.times(from, v_.columns, row, column);
  }

  /// `all`: from the sums of one quantity to the next.
  void sum(RowRange rows, std::int64_t column, std::int64_t all, double* out) const {
    out[0] = dot(rows, v_.r, more_.u ? more_.u : v_.p, v_.columns, column);
    out[all] = dot(rows, v_.r, v_.r, v_.columns, column);
    if (more_.u) out[2 * all] = dot(rows, more_.u, more_.w, v_.columns, column);
  }

 private:
  Inverses<T> m_;
  PartVectors<T> v_;
  Recurrences<T> more_;
  T* x_;
};

}  // namespace

template <class T>
void step_with_recurrences(const PartArrays<T>& a, const PartVectors<T>& v,
                           const Recurrences<T>& more, const ColumnState* states, T* x,
                           double* sums) {
  const RecurrenceStep<T> step(a, v, more, x);
  const std::int64_t all = a.shape().blocks * v.columns;
  for (std::int64_t block = 0; block < a.shape().blocks; ++block) {
    const RowRange rows = rows_in(a.shape(), block);
    for (std::int64_t c = 0; c < v.columns; ++c) {
      if (states[c].status != IterationStatus::running) continue;
      step.advance(rows, c, states[c]);
      step.sum(rows, c, all, sums + block * v.columns + c);
    }
  }
}

template <class T>
void copy_rows(const PartArrays<T>& a, const T* from, std::int64_t columns, bool scaled, T* to) {
  if (!scaled) {
    std::copy_n(from, a.shape().rows * columns, to);
    return;
  }
  const Inverses<T> m(a);
  for (std::int64_t row = 0; row < a.shape().rows; ++row)
    for (std::int64_t c = 0; c < columns; ++c)
      to[row * columns + c] = m.times(from, columns, row, c);
}

template <class T>
void sum_products_of(const PartShape& shape, const T* u, const T* w, std::int64_t columns,
                     double* sums) {
  for (std::int64_t block = 0; block < shape.blocks; ++block)
    for (std::int64_t c = 0; c < columns; ++c)
      sums[block * columns + c] = dot(rows_in(shape, block), u, w, columns, c);
}

#define QUADRIGA_INSTANTIATE(T)                                                                \
  template void step_with_recurrences(const PartArrays<T>&, const PartVectors<T>&,             \
                                      const Recurrences<T>&, const ColumnState*, T*, double*); \
  template void copy_rows(const PartArrays<T>&, const T*, std::int64_t, bool, T*);             \
  template void sum_products_of(const PartShape&, const T*, const T*, std::int64_t, double*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse
