// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/part_kernels.h: what is computed on one part: products, directions, steps.
//
// Vectors of k columns lie row by row. Sums go to `sums` by block of rows, each in one fixed order.
// Multiplications and additions aren't fused: a neighbour computes the same elements of a
// direction, and must get the same bits.
#pragma once

#include <complex>
#include <span>

#include "sparse/kernels/part_shape.h"
#include "sparse/kernels/scalars.h"

namespace quadriga::sparse {

/// The arrays of a part in some memory.
template <class T>
class PartArrays {
 public:
  PartArrays(const PartShape& shape, const void* tile) noexcept
      : shape_(shape), tile_(static_cast<const std::byte*>(tile)) {}
  const PartShape& shape() const noexcept { return shape_; }
  const std::int64_t* offsets() const noexcept { return at<std::int64_t>(shape_.offsets); }
  const std::int32_t* lengths() const noexcept { return at<std::int32_t>(shape_.lengths); }
  const std::int32_t* order() const noexcept { return at<std::int32_t>(shape_.order); }
  const std::int32_t* block_order() const noexcept { return at<std::int32_t>(shape_.block_order); }
  const std::int32_t* send_rows() const noexcept { return at<std::int32_t>(shape_.send_rows); }
  const std::int32_t* columns() const noexcept { return at<std::int32_t>(shape_.columns); }
  const std::int32_t* bases() const noexcept { return at<std::int32_t>(shape_.bases); }
  const std::uint16_t* steps() const noexcept { return at<std::uint16_t>(shape_.columns); }
  const T* values() const noexcept { return at<T>(shape_.values); }
  /// M, inverse_rows elements for each row; null if it is the identity.
  const T* inverses() const noexcept {
    return shape_.inverse_rows > 0 ? at<T>(shape_.inverses) : nullptr;
  }

 private:
  template <class U>
  const U* at(std::int64_t offset) const noexcept {
    return reinterpret_cast<const U*>(tile_ + offset);
  }
  const PartShape& shape_;
  const std::byte* tile_;
};

/// The vectors of a part in some memory.
template <class T>
struct PartVectors {
  PartVectors(const WorkShape& shape, void* tile) noexcept
      : columns(shape.columns),
        p(reinterpret_cast<T*>(static_cast<std::byte*>(tile) + shape.p)),
        q(reinterpret_cast<T*>(static_cast<std::byte*>(tile) + shape.q)),
        r(reinterpret_cast<T*>(static_cast<std::byte*>(tile) + shape.r)) {
    if (shape.partial)
      partial = reinterpret_cast<T*>(static_cast<std::byte*>(tile) + shape.partial);
    if (!shape.has_levels) return;
    z = reinterpret_cast<T*>(static_cast<std::byte*>(tile) + shape.z);
    d = reinterpret_cast<T*>(static_cast<std::byte*>(tile) + shape.d);
    s = reinterpret_cast<T*>(static_cast<std::byte*>(tile) + shape.s);
  }
  std::int64_t columns;
  T* p;
  T* q;
  T* r;
  T* z = nullptr;  ///< M*r where M is several tasks, which have d and s.
  T* d = nullptr;
  T* s = nullptr;
  T* partial = nullptr;  ///< Where products are split by columns.
};

/// Some of the blocks in a part's `block_order`.
struct BlockRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// q = A*p for the rows of one block.
template <class T>
void multiply_block(const PartArrays<T>& a, std::int64_t block, const PartVectors<T>& v);

/// q = A*p for the rows of some blocks; with sums, those of p^H*q: one a block and column.
template <class T>
void multiply(const PartArrays<T>& a, BlockRange range, const PartVectors<T>& v, double* sums);

/// q += partial; with sums, those of p^H*q as of multiply().
template <class T>
void add_partial(const PartShape& shape, const PartVectors<T>& v, double* sums);

/// p = M*r + beta*p for the part's rows, in columns that run. Where M is several tasks M*r is z.
template <class T>
void turn(const PartArrays<T>& a, const PartVectors<T>& v, const ColumnState* states);

/// The same for `count` rows of the halo from `first` on, whose M*r has arrived.
template <class T>
void turn_halo(const PartShape& shape, const PartVectors<T>& v, const ColumnState* states,
               const T* arrived, std::int64_t first, std::int64_t count);

/// x += alpha*p, r -= alpha*q in columns that run. Sums of r^H*M*r, then of ||r||^2: a block and
/// column each. Where M is several tasks the first sums say nothing.
template <class T>
void step(const PartArrays<T>& a, const PartVectors<T>& v, const ColumnState* states, T* x,
          double* sums);

/// r = b - q, or b where q is null. Sums of r^H*M*r, ||r||^2, then ||b||^2.
template <class T>
void residual(const PartArrays<T>& a, const PartVectors<T>& v, const T* q, const T* b,
              double* sums);

/// One step of a smoother on a level, of what is known of it.
struct Relaxation {
  bool subtracts = false;  ///< s -= q, where q = A*d; d is what was added to z last.
  bool smooths = false;    ///< d = weight*M*s + momentum*d, with the part's inverses for M; z += d.
  bool is_first = false;   ///< z and d were zero.
  double momentum = 0;
  double weight = 0;
};

template <class T>
void relax(const PartArrays<T>& a, const PartVectors<T>& v, const Relaxation& relaxation);

/// z += d for so many rows.
template <class T>
void correct(std::int64_t rows, const PartVectors<T>& v);

/// Sums of r^H*z: a block and column each.
template <class T>
void sum_products(const PartShape& shape, const PartVectors<T>& v, double* sums);

/// Copies rows of a vector that go to one part, `count` from place `first` of send_rows on;
/// `scaled`: of M times the vector.
template <class T>
void gather(const PartArrays<T>& a, const T* vector, std::int64_t columns, std::int64_t first,
            std::int64_t count, bool scaled, T* out);

}  // namespace quadriga::sparse
