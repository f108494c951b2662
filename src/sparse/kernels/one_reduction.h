// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction.h: what conjugate gradients with one reduction an iteration
// compute on a part beside part_kernels.h.
//
// An iteration is a step, a product and its scalars. v.p and v.q are what the product reads and
// writes: u and w = A*u of single-reduction iterations, m = M*w and n = A*m of pipelined ones,
// which carry u, w, M*A*p and A*M*A*p as recurrences. So their sums don't need the product.
//
// Sources: Chronopoulos and Gear, J. Comput. Appl. Math. 25(2), 1989; Ghysels and Vanroose,
// Parallel Computing 40(7), 2014, algorithm 4.
#pragma once

#include "sparse/kernels/part_kernels.h"

namespace quadriga::sparse {

/// The carried vectors of a part in some memory: p, s = A*p; pipelined also u = M*r, w = A*u,
/// M*s and A*M*s, else null.
template <class T>
struct Recurrences {
  Recurrences(const WorkShape& shape, void* tile) noexcept
      : direction(at<T>(tile, shape.recurrences.direction)),
        product(at<T>(tile, shape.recurrences.product)),
        states(at<ColumnState>(tile, shape.recurrences.states)) {
    if (shape.method != CgMethod::pipelined) return;
    u = at<T>(tile, shape.recurrences.u);
    w = at<T>(tile, shape.recurrences.w);
    m_product = at<T>(tile, shape.recurrences.m_product);
    am_product = at<T>(tile, shape.recurrences.am_product);
  }
  T* direction;
  T* product;
  T* u = nullptr;
  T* w = nullptr;
  T* m_product = nullptr;
  T* am_product = nullptr;
  ColumnState* states;  ///< For the product: it needn't wait for the scalars of the step before.

 private:
  template <class U>
  static U* at(void* tile, std::int64_t offset) noexcept {
    return reinterpret_cast<U*>(static_cast<std::byte*>(tile) + offset);
  }
};

/// One of a part's vectors.
enum class PartVector : std::uint8_t {
  in,   ///< The product's: v.p.
  out,  ///< The product's: v.q.
  residual,
  direction,
  product,
  u,
  w,
  m_product,
  am_product,
};

template <class T>
T* vector_of(const PartVectors<T>& v, const Recurrences<T>& more, PartVector which) noexcept {
  switch (which) {
    case PartVector::in:
      return v.p;
    case PartVector::out:
      return v.q;
    case PartVector::residual:
      return v.r;
    case PartVector::direction:
      return more.direction;
    case PartVector::product:
      return more.product;
    case PartVector::u:
      return more.u;
    case PartVector::w:
      return more.w;
    case PartVector::m_product:
      return more.m_product;
    case PartVector::am_product:
      return more.am_product;
  }
  return nullptr;
}

/// Vectors that a method carries beside p, q and r.
constexpr std::int64_t carried_vectors(CgMethod method) noexcept {
  if (method == CgMethod::pipelined) return 6;
  return method == CgMethod::single_reduction ? 2 : 0;
}

/// Vectors that a step reads or writes.
constexpr double step_passes(CgMethod method) noexcept {
  return method == CgMethod::pipelined ? 19 : 11;
}

/// All recurrences, x and r, in columns that run; v.p becomes the next product's. Sums of r^H*M*r,
/// then of ||r||^2, pipelined then of Re(u^H*w): a block and column each.
template <class T>
void step_with_recurrences(const PartArrays<T>& a, const PartVectors<T>& v,
                           const Recurrences<T>& more, const ColumnState* states, T* x,
                           double* sums);

/// to = from, or M*from.
template <class T>
void copy_rows(const PartArrays<T>& a, const T* from, std::int64_t columns, bool scaled, T* to);

/// Sums of Re(u^H*w): a block and column each.
template <class T>
void sum_products_of(const PartShape& shape, const T* u, const T* w, std::int64_t columns,
                     double* sums);

}  // namespace quadriga::sparse
