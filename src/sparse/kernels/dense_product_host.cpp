// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/dense_product_host.cpp: q = A*p from SELL-C-sigma of dense blocks.
//
// A row's sum is formed of one partial sum for each column of its blocks, whatever the height of
// slices: with slices of one row, as cores have them, those of a block are independent chains.
#include "sparse/kernels/dense_product.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "sparse/kernels/number.h"
#include "sparse/kernels/wide_vectors.h"

namespace quadriga::sparse {
namespace {

/// Rows that one row of blocks of a slice has: D of them, K columns each.
template <class T, int D, int K>
void dense_row(const T* values, const std::int32_t* columns, std::int64_t count,
               std::int64_t height, const T* p, std::int64_t stride, T* q) {
  std::array<T, D * D * K> sums{};
  for (std::int64_t j = 0; j < count; ++j) {
    const T* const from = p + std::int64_t{D} * columns[j * height] * stride;
    for (int c = 0; c < D; ++c) {
      const T* const line = values + (j * D + c) * height * D;
      for (int i = 0; i < D; ++i)
        for (int k = 0; k < K; ++k)
          sums[(c * D + i) * K + k] += multiplied(line[i], from[c * stride + k]);
    }
  }
  for (int i = 0; i < D; ++i)
    for (int k = 0; k < K; ++k) {
      T sum = sums[i * K + k];
      for (int c = 1; c < D; ++c) sum += sums[(c * D + i) * K + k];
      q[i * stride + k] = sum;
    }
}

/// Of slices of one row and one column of vectors: columns of a block lie one after the other, and
/// each is a vector of D lanes, or of four of which the last one says nothing.
template <class T, int D>
void dense_row_alone(const T* values, const std::int32_t* columns, std::int64_t count, const T* p,
                     std::int64_t stride, T* q) {
  constexpr int lanes = D == 3 ? 4 : D;
  using Lanes [[gnu::vector_size(lanes * sizeof(T))]] = T;
  Lanes sums[D] = {};
  const auto add = [&](std::int64_t j, bool is_last) {
    const T* const from = p + std::int64_t{D} * columns[j] * stride;
    for (int c = 0; c < D; ++c) {
      Lanes line{};
      const T* const at = values + (j * D + c) * D;
      // Beyond the last block there may be nothing.
      std::memcpy(&line, at, (is_last && c == D - 1 ? D : lanes) * sizeof(T));
      sums[c] += line * from[c * stride];
    }
  };
  for (std::int64_t j = 0; j + 1 < count; ++j) add(j, false);
  if (count > 0) add(count - 1, true);
  for (int c = 1; c < D; ++c) sums[0] += sums[c];
  for (int i = 0; i < D; ++i) q[i * stride] = sums[0][i];
}

template <class T, int D, int K>
void dense_rows(const PartArrays<T>& a, std::int64_t block, const PartVectors<T>& v,
                std::int64_t column) {
  const PartShape& shape = a.shape();
  const std::int64_t height = shape.slice_rows;
  const std::int64_t slices = slices_of_block(shape);
  const std::int64_t last = std::min((block + 1) * slices, shape.slices);
  for (std::int64_t slice = block * slices; slice < last; ++slice) {
    const std::int64_t first = a.offsets()[slice];
    for (std::int64_t r = 0; r < height; ++r) {
      const std::int64_t row = a.order()[slice * height + r];
      if (row < 0) break;
      if constexpr (K == 1 && !is_complex<T>) {
        if (height == 1) {
          dense_row_alone<T, D>(a.values() + first * D * D, a.columns() + first, a.lengths()[slice],
                                v.p + column, v.columns, v.q + row * D * v.columns + column);
          break;
        }
      }
      dense_row<T, D, K>(a.values() + (first * D + r) * D, a.columns() + first + r,
                         a.lengths()[slice * height + r], height, v.p + column, v.columns,
                         v.q + row * D * v.columns + column);
    }
  }
}

}  // namespace

template <class T, int K>
void multiply_dense(const PartArrays<T>& a, std::int64_t block, const PartVectors<T>& v,
                    std::int64_t column) {
  const auto multiply = [&]<int D>(std::integral_constant<int, D>) {
    in_wide_vectors<T>([&] { dense_rows<T, D, K>(a, block, v, column); });
  };
  if (a.shape().dense_rows == 2) return multiply(std::integral_constant<int, 2>{});
  if (a.shape().dense_rows == 3) return multiply(std::integral_constant<int, 3>{});
  multiply(std::integral_constant<int, 4>{});
}

#define QUADRIGA_INSTANTIATE(T)                                                                 \
  template void multiply_dense<T, 1>(const PartArrays<T>&, std::int64_t, const PartVectors<T>&, \
                                     std::int64_t);                                             \
  template void multiply_dense<T, 4>(const PartArrays<T>&, std::int64_t, const PartVectors<T>&, \
                                     std::int64_t);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse
