// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/product_host.cpp: q = A*p by blocks of rows, from CSR and from SELL-C-sigma.
//
// SELL-C-sigma: Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014. A row's sum is formed in one
// order, whatever the number of columns: in CSR as four partial sums, which shortens the chain of
// dependent additions; in SELL one element after the other, for its rows are independent chains.
#include <algorithm>
#include <array>
#include <type_traits>

#include "sparse/kernels/dense_product.h"
#include "sparse/kernels/number.h"
#include "sparse/kernels/part_kernels.h"
#include "sparse/kernels/wide_vectors.h"

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

/// Of element j of a slice's rows; `at`: its first one's place.
class WideColumns {
 public:
  template <class T>
  WideColumns(const PartArrays<T>& a, std::int64_t at) noexcept : columns_(a.columns() + at) {}
  std::int64_t operator()(std::int64_t r) const noexcept { return columns_[r]; }
  const std::int32_t* at(std::int64_t r) const noexcept { return columns_ + r; }
  void advance(std::int64_t height) noexcept { columns_ += height; }

 private:
  const std::int32_t* columns_;
};
class NarrowColumns {
 public:
  template <class T>
  NarrowColumns(const PartArrays<T>& a, std::int64_t at) noexcept
      : steps_(a.steps() + at), base_(a.bases() + at / a.shape().slice_rows) {}
  std::int64_t operator()(std::int64_t r) const noexcept { return *base_ + steps_[r]; }
  const std::uint16_t* at(std::int64_t r) const noexcept { return steps_ + r; }
  std::int32_t base() const noexcept { return *base_; }
  void advance(std::int64_t height) noexcept {
    steps_ += height;
    ++base_;
  }

 private:
  const std::uint16_t* steps_;
  const std::int32_t* base_;
};

#if defined(__x86_64__)
/// The columns of eight rows from `r` on.
[[QUADRIGA_AVX512]] inline __m256i eight_columns(const WideColumns& columns, int r) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(columns.at(r)));
}
[[QUADRIGA_AVX512]] inline __m256i eight_columns(const NarrowColumns& columns, int r) noexcept {
  const __m128i steps = _mm_loadu_si128(reinterpret_cast<const __m128i*>(columns.at(r)));
  return _mm256_add_epi32(_mm256_cvtepu16_epi32(steps), _mm256_set1_epi32(columns.base()));
}

/// The first `count` elements of all rows of a slice, for one column of vectors.
template <class Columns>
[[QUADRIGA_AVX512]] void add_full(const double* values, Columns& columns, std::int32_t count,
                                  const double* p, double* sums) {
  constexpr int parts = most_slice_rows / 8;
  __m512d sum[parts];
  for (__m512d& each : sum) each = _mm512_setzero_pd();
  for (std::int32_t j = 0; j < count; ++j) {
#pragma GCC unroll 4
    for (int i = 0; i < parts; ++i) {
      const __m512d from = _mm512_mask_i32gather_pd(
          _mm512_setzero_pd(), 0xff, eight_columns(columns, 8 * i), p, sizeof(double));
      sum[i] = _mm512_add_pd(sum[i], _mm512_mul_pd(_mm512_loadu_pd(values + 8 * i), from));
    }
    values += most_slice_rows;
    columns.advance(most_slice_rows);
  }
  for (int i = 0; i < parts; ++i) _mm512_storeu_pd(sums + 8 * i, sum[i]);
}
#endif

template <class T, int K, class Columns>
void sell_slice(const PartArrays<T>& a, std::int64_t slice, const PartVectors<T>& v,
                std::int64_t column) {
  const std::int64_t height = a.shape().slice_rows;
  const std::int32_t* const lengths = a.lengths() + slice * height;
  const std::int32_t* const order = a.order() + slice * height;
  const T* values = a.values() + a.offsets()[slice];
  Columns columns(a, a.offsets()[slice]);
  std::array<T, most_slice_rows * K> sums{};
  std::int64_t active = height;
  std::int32_t j = 0;
#if defined(__x86_64__)
  if constexpr (K == 1 && std::is_same_v<T, double>)
    if (has_avx512() && height == most_slice_rows && v.columns == 1) {
      j = lengths[height - 1];
      add_full(values, columns, j, v.p, sums.data());
      values += j * height;
    }
#endif
  for (; j < lengths[0]; ++j, values += height, columns.advance(height)) {
    while (lengths[active - 1] <= j) --active;
    for (std::int64_t r = 0; r < active; ++r)
      for (int c = 0; c < K; ++c)
        sums[r * K + c] += multiplied(values[r], v.p[columns(r) * v.columns + column + c]);
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
    shape.narrow ? sell_slice<T, K, NarrowColumns>(a, slice, v, column)
                 : sell_slice<T, K, WideColumns>(a, slice, v, column);
}

}  // namespace

template <class T>
void multiply_block(const PartArrays<T>& a, std::int64_t block, const PartVectors<T>& v) {
  const auto multiply = [&] {
    std::int64_t column = 0;
    for (; column + most_columns <= v.columns; column += most_columns)
      rows_of_block<T, most_columns>(a, block, v, column);
    for (; column < v.columns; ++column) rows_of_block<T, 1>(a, block, v, column);
  };
  if (a.shape().format == Format::blocks) return multiply();  // which has them itself
  in_wide_vectors<T>(multiply);
}

template void multiply_block(const PartArrays<float>&, std::int64_t, const PartVectors<float>&);
template void multiply_block(const PartArrays<double>&, std::int64_t, const PartVectors<double>&);
template void multiply_block(const PartArrays<std::complex<float>>&, std::int64_t,
                             const PartVectors<std::complex<float>>&);
template void multiply_block(const PartArrays<std::complex<double>>&, std::int64_t,
                             const PartVectors<std::complex<double>>&);

}  // namespace quadriga::sparse
