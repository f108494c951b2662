// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/row_reader.cpp: a range of rows becomes a matrix whose other rows are empty.
#include "sparse/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sparse/partition.h"

namespace quadriga::sparse {
namespace {

/// Ranges of the first pass: whole rows of dense blocks of each size, and as many as have about so
/// many bytes.
constexpr std::int64_t block_multiple = 12;
constexpr std::int64_t first_range = 1024 * block_multiple;
constexpr std::int64_t wanted_bytes = std::int64_t{64} << 20;

std::int64_t next_range(std::int64_t rows, std::int64_t elements, DType dtype) {
  const auto element = static_cast<std::int64_t>(size_of(dtype) + sizeof(std::int64_t));
  const std::int64_t bytes = std::max<std::int64_t>(1, elements * element / rows);
  const std::int64_t wanted = wanted_bytes / bytes / block_multiple * block_multiple;
  return std::clamp(wanted, block_multiple, 2 * rows / block_multiple * block_multiple);
}

void check_range(const CsrView& found, std::int64_t first, std::int64_t last,
                 const RowSource& source) {
  require(found.rows == last - first && found.cols == source.rows && found.dtype == source.dtype,
          fmt::format("rows {} to {} of a source: {} x {} of {}; expected {} x {} of {}", first,
                      last, found.rows, found.cols, name(found.dtype), last - first, source.rows,
                      name(source.dtype)));
  check_offsets(found);
}

template <class Index>
void spread(const CsrView& found, std::int64_t first, std::span<Index> offsets) {
  const Indices from(found.offsets, found.index_bytes);
  const auto end = static_cast<Index>(from[found.rows]);
  std::fill_n(offsets.begin(), first, Index{0});
  for (std::int64_t row = 0; row < found.rows; ++row)
    offsets[static_cast<std::size_t>(first + row)] = static_cast<Index>(from[row]);
  std::fill(offsets.begin() + first + found.rows, offsets.end(), end);
}

}  // namespace

/// Rows of a source among empty ones.
struct RowReader::Range {
  std::vector<std::int32_t> narrow;
  std::vector<std::int64_t> wide;
  CsrView view;
};

RowReader::RowReader(const CsrView& a) : outline_(a) { check_offsets(a); }

RowReader::RowReader(const RowSource& source) : source_(&source) {
  require(source.read != nullptr, "a source of rows without a function that reads them");
  require(source.rows >= 0 && source.rows < std::numeric_limits<std::int64_t>::max() / 2,
          fmt::format("a source of {} rows; expected 0 or more", source.rows));
  require(source.dtype <= DType::complex128,
          "a source of bytes; expected float32, float64, complex64 or complex128");
  offsets_.reserve(static_cast<std::size_t>(source.rows + 1));
  offsets_.push_back(0);
  std::int64_t count = first_range;
  for (std::int64_t first = 0; first < source.rows;) {
    const std::int64_t last = std::min(first + count, source.rows);
    const CsrView found = source.read(first, last);
    check_range(found, first, last, source);
    const Indices offsets(found.offsets, found.index_bytes);
    const std::int64_t before = offsets_.back();
    for (std::int64_t row = 1; row <= found.rows; ++row) offsets_.push_back(before + offsets[row]);
    for (std::size_t i = 0; i < dense_sizes.size(); ++i)
      if (source.rows % dense_sizes[i] == 0)
        dense_blocks_[i] += count_dense_blocks(found, dense_sizes[i], 0, found.rows,
                                               std::numeric_limits<std::int64_t>::max());
    if (last < source.rows) count = next_range(found.rows, offsets[found.rows], source.dtype);
    first = last;
  }
  outline_ = {source.rows, source.rows, offsets_.back(), offsets_.data(), nullptr,
              nullptr,     8,           source.dtype};
}

std::int64_t RowReader::dense_blocks(int dense_rows) const {
  return dense_blocks_[static_cast<std::size_t>(std::ranges::find(dense_sizes, dense_rows) -
                                                dense_sizes.begin())];
}

RowReader::Range RowReader::read(std::int64_t first, std::int64_t last) const {
  const CsrView found = source_->read(first, last);
  check_range(found, first, last, *source_);
  const Indices offsets(found.offsets, found.index_bytes);
  for (std::int64_t row = first; row < last; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t now = offsets[row - first + 1] - offsets[row - first];
    const std::int64_t before = offsets_[at + 1] - offsets_[at];
    require(now == before, fmt::format("row {} of a source has {} elements, and had {} when it was "
                                       "read before; expected the same rows each time",
                                       row, now, before));
  }
  Range range;
  range.view = found;
  range.view.rows = source_->rows;
  const auto size = static_cast<std::size_t>(source_->rows + 1);
  if (found.index_bytes == 4) {
    range.narrow.resize(size);
    spread<std::int32_t>(found, first, range.narrow);
    range.view.offsets = range.narrow.data();
  } else {
    range.wide.resize(size);
    spread<std::int64_t>(found, first, range.wide);
    range.view.offsets = range.wide.data();
  }
  return range;
}

void RowReader::each(std::span<const std::int64_t> first_rows,
                     const std::function<void(std::size_t, const CsrView&)>& work) const {
  const std::size_t count = first_rows.size() - 1;
  for (std::size_t i = 0; i < count; ++i)
    if (is_whole())
      work(i, outline_);
    else
      work(i, read(first_rows[i], first_rows[i + 1]).view);
}

}  // namespace quadriga::sparse
