// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/product_host.cpp: q = A*p by blocks of rows, from CSR and from SELL-C-sigma.
//
// SELL-C-sigma: Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014. A row's sum is formed in one
// order, whatever the number of columns: in CSR as four partial sums, which shortens the chain of
// dependent additions; in SELL one element after the other, for its rows are independent chains.
#include <algorithm>
#include <array>

#include "sparse/kernels/dense_product.h"
#include "sparse/kernels/number.h"
#include "sparse/kernels/part_kernels.h"

namespace quadriga::sparse {
namespace {

constexpr int lanes = 4;
constexpr std::int64_t most_columns = 4;  ///< That are summed at once.
constexpr std::int64_t most_slice_rows = 32;

/// The sum of one row for K neighbouring columns.
template <class T, int K>
void csr_row(const T* values, const std::int32_t* columns, std::int64_t count, const T* p,
             std::int64_t stride, T* out) {
  std::array<T, lanes * K> sums{};
  const auto add = [&](std::int64_t at, int lane) {
    const T* const from = p + columns[at] * stride;
    for (int c = 0; c < K; ++c) sums[lane * K + c] += multiplied(values[at], from[c]);
  };
  std::int64_t at = 0;
  for (; at + lanes <= count; at += lanes)
    for (int lane = 0; lane < lanes; ++lane) add(at + lane, lane);
  if (at < count) add(at, 0);
  if (at + 1 < count) add(at + 1, 1);
  if (at + 2 < count) add(at + 2, 2);
  for (int c = 0; c < K; ++c)
    out[c] = (sums[c] + sums[K + c]) + (sums[2 * K + c] + sums[3 * K + c]);
}

template <class T, int K>
void csr_rows(const PartArrays<T>& a, std::int64_t first, std::int64_t last,
              const PartVectors<T>& v, std::int64_t column) {
  const std::int64_t* const offsets = a.offsets();
  for (std::int64_t row = first; row < last; ++row)
    csr_row<T, K>(a.values() + offsets[row], a.columns() + offsets[row],
                  offsets[row + 1] - offsets[row], v.p + column, v.columns,
                  v.q + row * v.columns + column);
}

template <class T, int K>
void sell_slice(const PartArrays<T>& a, std::int64_t slice, const PartVectors<T>& v,
                std::int64_t column) {
  const std::int64_t height = a.shape().slice_rows;
  const std::int32_t* const lengths = a.lengths() + slice * height;
  const std::int32_t* const order = a.order() + slice * height;
  const T* values = a.values() + a.offsets()[slice];
  const std::int32_t* columns = a.columns() + a.offsets()[slice];
  std::array<T, most_slice_rows * K> sums{};
  std::int64_t active = height;
  for (std::int32_t j = 0; j < lengths[0]; ++j, values += height, columns += height) {
    while (lengths[active - 1] <= j) --active;
    for (std::int64_t r = 0; r < active; ++r)
      for (int c = 0; c < K; ++c)
        sums[r * K + c] += multiplied(values[r], v.p[columns[r] * v.columns + column + c]);
  }
  for (std::int64_t r = 0; r < height && order[r] >= 0; ++r)
    for (int c = 0; c < K; ++c) v.q[order[r] * v.columns + column + c] = sums[r * K + c];
}

template <class T, int K>
void rows_of_block(const PartArrays<T>& a, std::int64_t block, const PartVectors<T>& v,
                   std::int64_t column) {
  const PartShape& shape = a.shape();
  if (shape.format == Format::csr) {
    const std::int64_t first = block * shape.block_rows;
    csr_rows<T, K>(a, first, std::min(first + shape.block_rows, shape.rows), v, column);
    return;
  }
  if (shape.format == Format::blocks) return multiply_dense<T, K>(a, block, v, column);
  const std::int64_t slices = slices_of_block(shape);
  const std::int64_t last = std::min((block + 1) * slices, shape.slices);
  for (std::int64_t slice = block * slices; slice < last; ++slice)
    sell_slice<T, K>(a, slice, v, column);
}

}  // namespace

template <class T>
void multiply_block(const PartArrays<T>& a, std::int64_t block, const PartVectors<T>& v) {
  std::int64_t column = 0;
  for (; column + most_columns <= v.columns; column += most_columns)
    rows_of_block<T, most_columns>(a, block, v, column);
  for (; column < v.columns; ++column) rows_of_block<T, 1>(a, block, v, column);
}

template void multiply_block(const PartArrays<float>&, std::int64_t, const PartVectors<float>&);
template void multiply_block(const PartArrays<double>&, std::int64_t, const PartVectors<double>&);
template void multiply_block(const PartArrays<std::complex<float>>&, std::int64_t,
                             const PartVectors<std::complex<float>>&);
template void multiply_block(const PartArrays<std::complex<double>>&, std::int64_t,
                             const PartVectors<std::complex<double>>&);

}  // namespace quadriga::sparse
