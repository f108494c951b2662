// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/vectors_host.cpp: what conjugate gradients do with vectors, a block of rows at
// a time so that a sum finds its block in the cache.
#include <algorithm>

#include "sparse/kernels/host_sums.h"
#include "sparse/kernels/wide_vectors.h"

namespace quadriga::sparse {
namespace {

/// r^H*M*r of one column of a block.
template <class T, class M, class Columns>
double dot_scaled(RowRange rows, const T* r, const M& m, Columns columns, std::int64_t column) {
  return sum_over<T>(rows, [=](std::int64_t row, std::int64_t part) {
    const T value = r[row * columns + column];
    const T scaled = m.times(r, columns, row, column);
    return static_cast<double>(as_reals(&value)[part]) *
           static_cast<double>(as_reals(&scaled)[part]);
  });
}

bool any_runs(const ColumnState* states, std::int64_t columns) noexcept {
  return std::any_of(states, states + columns, [](const ColumnState& each) {
    return each.status == IterationStatus::running;
  });
}

/// r^H*M*r and ||r||^2 of a block.
template <class T, class M, class Columns>
void sum_residual(const PartShape& shape, const PartVectors<T>& v, const M& m, Columns columns,
                  std::int64_t block, double* sums) {
  const RowRange rows = rows_in(shape, block);
  const std::int64_t all = shape.blocks * columns;
  for (std::int64_t c = 0; c < columns; ++c) {
    double* const out = sums + block * columns + c;
    out[all] = dot(rows, v.r, v.r, columns, c);
    out[0] = m.is_identity() || v.z ? out[all] : dot_scaled(rows, v.r, m, columns, c);
  }
}

template <class T, class M, class Columns>
void turn_rows(std::int64_t rows, const PartVectors<T>& v, const M& m, Columns columns,
               const ColumnState* states) {
  for (std::int64_t c = 0; c < columns; ++c) {
    if (states[c].status != IterationStatus::running) continue;
    const double beta = states[c].beta;
    T* const p = v.p;
    if (const T* const z = v.z)
      for (std::int64_t at = c; at < rows * columns; at += columns)
        turn_element(p[at], z[at], beta);
    else
      for (std::int64_t row = 0; row < rows; ++row)
        turn_element(p[row * columns + c], m.times(v.r, columns, row, c), beta);
  }
}

template <class T, class M, class Columns>
void step_rows(const PartShape& shape, const PartVectors<T>& v, const M& m, Columns columns,
               const ColumnState* states, T* x, double* sums) {
  for (std::int64_t block = 0; block < shape.blocks; ++block) {
    const RowRange rows = rows_in(shape, block);
    for (std::int64_t c = 0; c < columns; ++c) {
      if (states[c].status != IterationStatus::running) continue;
      const auto alpha = static_cast<Real<T>>(states[c].alpha);
      for (std::int64_t at = rows.first * columns + c; at < rows.last * columns; at += columns) {
        x[at] += v.p[at] * alpha;
        v.r[at] -= v.q[at] * alpha;
      }
    }
    sum_residual(shape, v, m, columns, block, sums);
  }
}

template <class T, class M, class Columns>
void residual_rows(const PartShape& shape, const PartVectors<T>& v, const M& m, Columns columns,
                   const T* q, const T* b, double* sums) {
  const std::int64_t all = shape.blocks * columns;
  for (std::int64_t block = 0; block < shape.blocks; ++block) {
    const RowRange rows = rows_in(shape, block);
    for (std::int64_t at = rows.first * columns; at < rows.last * columns; ++at)
      v.r[at] = q ? b[at] - q[at] : b[at];
    sum_residual(shape, v, m, columns, block, sums);
    for (std::int64_t c = 0; c < columns; ++c)
      sums[2 * all + block * columns + c] = dot(rows, b, b, columns, c);
  }
}

/// Calls `work(m, columns)` as fits the part and its vectors.
template <class T, class Work>
void with_kinds(const PartArrays<T>& a, std::int64_t columns, const Work& work) {
  in_wide_vectors<T>([&] {
    with_inverses(
        a, [&](const auto& m) { with_columns(columns, [&](auto count) { work(m, count); }); });
  });
}

}  // namespace

template <class T>
void multiply(const PartArrays<T>& a, BlockRange range, const PartVectors<T>& v, double* sums) {
  for (std::int64_t at = range.first; at < range.last; ++at) {
    const std::int64_t block = a.block_order()[at];
    multiply_block(a, block, v);
    if (!sums) continue;
    in_wide_vectors<T>([&] {
      with_columns(v.columns, [&](auto columns) {
        for (std::int64_t c = 0; c < columns; ++c)
          sums[block * columns + c] = dot(rows_in(a.shape(), block), v.p, v.q, columns, c);
      });
    });
  }
}

template <class T>
void add_partial(const PartShape& shape, const PartVectors<T>& v, double* sums) {
  in_wide_vectors<T>([&] {
    with_columns(v.columns, [&](auto columns) {
      for (std::int64_t block = 0; block < shape.blocks; ++block) {
        const RowRange rows = rows_in(shape, block);
        for (std::int64_t at = rows.first * columns; at < rows.last * columns; ++at)
          v.q[at] += v.partial[at];
        for (std::int64_t c = 0; sums && c < columns; ++c)
          sums[block * columns + c] = dot(rows, v.p, v.q, columns, c);
      }
    });
  });
}

template <class T>
void turn(const PartArrays<T>& a, const PartVectors<T>& v, const ColumnState* states) {
  with_kinds(a, v.columns, [&](const auto& m, auto columns) {
    turn_rows(a.shape().rows, v, m, columns, states);
  });
}

template <class T>
void turn_halo(const PartShape& shape, const PartVectors<T>& v, const ColumnState* states,
               const T* arrived, std::int64_t first, std::int64_t count) {
  T* const halo = v.p + (shape.own_columns + first) * v.columns;
  for (std::int64_t row = 0; row < count; ++row)
    for (std::int64_t c = 0; c < v.columns; ++c)
      if (states[c].status == IterationStatus::running)
        turn_element(halo[row * v.columns + c], arrived[row * v.columns + c], states[c].beta);
}

template <class T>
void step(const PartArrays<T>& a, const PartVectors<T>& v, const ColumnState* states, T* x,
          double* sums) {
  if (!any_runs(states, v.columns)) return;
  with_kinds(a, v.columns, [&](const auto& m, auto columns) {
    step_rows(a.shape(), v, m, columns, states, x, sums);
  });
}

template <class T>
void residual(const PartArrays<T>& a, const PartVectors<T>& v, const T* q, const T* b,
              double* sums) {
  with_kinds(a, v.columns, [&](const auto& m, auto columns) {
    residual_rows(a.shape(), v, m, columns, q, b, sums);
  });
}

template <class T>
void gather(const PartArrays<T>& a, const T* vector, std::int64_t columns, std::int64_t first,
            std::int64_t count, bool scaled, T* out) {
  const std::int32_t* const rows = a.send_rows() + first;
  const Inverses<T> m(a);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t c = 0; c < columns; ++c)
      out[i * columns + c] =
          scaled ? m.times(vector, columns, rows[i], c) : vector[rows[i] * columns + c];
}

#define QUADRIGA_INSTANTIATE(T)                                                                  \
  template void multiply(const PartArrays<T>&, BlockRange, const PartVectors<T>&, double*);      \
  template void add_partial(const PartShape&, const PartVectors<T>&, double*);                   \
  template void turn(const PartArrays<T>&, const PartVectors<T>&, const ColumnState*);           \
  template void turn_halo(const PartShape&, const PartVectors<T>&, const ColumnState*, const T*, \
                          std::int64_t, std::int64_t);                                           \
  template void step(const PartArrays<T>&, const PartVectors<T>&, const ColumnState*, T*,        \
                     double*);                                                                   \
  template void residual(const PartArrays<T>&, const PartVectors<T>&, const T*, const T*,        \
                         double*);                                                               \
  template void gather(const PartArrays<T>&, const T*, std::int64_t, std::int64_t, std::int64_t, \
                       bool, T*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse
