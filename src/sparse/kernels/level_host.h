// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/level_host.h: what LevelBodies computes with on the host.
#pragma once

#include <algorithm>

#include "sparse/kernels/level_bodies.h"

namespace quadriga::sparse {

template <class T>
struct OnHost {
  static bool runs(const ColumnState* states, std::int64_t columns) noexcept {
    return !states || std::any_of(states, states + columns, [](const ColumnState& each) {
      return each.status == IterationStatus::running;
    });
  }
  static void multiply(const Arguments&, const PartArrays<T>& a, const PartVectors<T>& v,
                       const ColumnState*) {
    sparse::multiply<T>(a, {0, a.shape().blocks}, v, nullptr);
  }
  static void relax(const Arguments&, const PartArrays<T>& a, const PartVectors<T>& v,
                    const Relaxation& relaxation, const ColumnState*) {
    sparse::relax(a, v, relaxation);
  }
  static void correct(const Arguments&, std::int64_t rows, const PartVectors<T>& v,
                      const ColumnState*) {
    sparse::correct(rows, v);
  }
  static void sum_products(const Arguments&, const PartArrays<T>& a, const PartVectors<T>& v,
                           double* sums, const ColumnState*) {
    sparse::sum_products(a.shape(), v, sums);
  }
  static void gather(const Arguments&, const PartArrays<T>& a, const T* vector,
                     std::int64_t columns, std::int64_t first, std::int64_t count, T* out) {
    sparse::gather(a, vector, columns, first, count, false, out);
  }
  static void copy(const Arguments&, T* to, const T* from, std::int64_t count) {
    std::copy_n(from, count, to);
  }
};

}  // namespace quadriga::sparse
