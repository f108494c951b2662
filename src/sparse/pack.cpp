// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/pack.cpp: rows in CSR and in SELL-C-sigma, of elements or dense blocks, with local
// columns.
#include "sparse/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/number_type.h"
#include "sparse/dense_blocks.h"
#include "sparse/inverses.h"
#include "sparse/kernels/number.h"
#include "sparse/partition.h"

namespace quadriga::sparse {
namespace {

/// The rows of a block by length, the longest first; equal ones as they were.
std::vector<std::int32_t> sorted_rows(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::int32_t row) {
    return lengths[static_cast<std::size_t>(row)];
  });
  return order;
}

/// Elements of each row, or dense blocks of each row of those, of the rows from `first` on.
void find_lengths(const CsrView& a, std::int64_t first, int dense_rows,
                  std::vector<std::int64_t>& lengths) {
  const Indices offsets(a.offsets, a.index_bytes);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::int64_t row = first + static_cast<std::int64_t>(i) * dense_rows;
    lengths[i] = dense_rows == 1 ? offsets[row + 1] - offsets[row]
                                 : count_dense_blocks(a, dense_rows, row, row + dense_rows,
                                                      std::numeric_limits<std::int64_t>::max());
  }
}

/// Calls `visit(slice, row of the part or -1, its length, whether it is the longest)` for all
/// places of all slices of a piece. A row is one of dense blocks, if the format has those.
template <class Visit>
void visit_slices(const CsrView& a, const PartRows& rows, const PartShape& shape,
                  const RowPiece& piece, Visit visit) {
  const std::int64_t height = shape.slice_rows;
  std::int64_t slice = piece.slice;
  std::vector<std::int64_t> lengths;
  for (std::int64_t block = piece.rows.first; block < piece.rows.last; block += shape.block_rows) {
    const std::int64_t count =
        std::min(shape.block_rows, piece.rows.last - block) / shape.dense_rows;
    const std::int64_t before = (block - rows.first) / shape.dense_rows;
    lengths.resize(static_cast<std::size_t>(count));
    find_lengths(a, block, shape.dense_rows, lengths);
    const std::vector<std::int32_t> order = sorted_rows(lengths);
    for (std::int64_t place = 0; place < (count + height - 1) / height * height; ++place) {
      const bool is_row = place < count;
      const std::int64_t row = is_row ? order[static_cast<std::size_t>(place)] : 0;
      visit(slice + place / height, is_row ? before + row : -1,
            is_row ? lengths[static_cast<std::size_t>(row)] : 0, place % height == 0);
    }
    slice += (count + height - 1) / height;
  }
}

/// Slices and elements of the part, and those before each piece.
void size_slices(const CsrView& a, const PartRows& rows, PartShape& shape, RowPieces& pieces) {
  const std::int64_t values = std::int64_t{shape.dense_rows} * shape.dense_rows;
  pieces.each([&](RowPiece& piece, std::size_t) {
    RowPiece own{piece.rows};
    visit_slices(a, rows, shape, own,
                 [&](std::int64_t slice, std::int64_t, std::int64_t length, bool is_longest) {
                   piece.slice = slice + 1;
                   if (is_longest) piece.elements += length * shape.slice_rows * values;
                 });
  });
  for (RowPiece& each : pieces.all) {
    each.slice = std::exchange(shape.slices, shape.slices + each.slice);
    each.elements = std::exchange(shape.elements, shape.elements + each.elements);
  }
}

/// Whether the columns of the elements at one place of a slice's rows are so near each other that
/// 16 bits number them, for all places of all slices.
class Nearness {
 public:
  void add(const Indices& columns, std::int64_t first, std::int64_t length,
           const LocalColumns& local, bool is_longest) {
    if (is_longest) {
      lowest_.assign(static_cast<std::size_t>(length), std::numeric_limits<std::int32_t>::max());
      highest_.assign(static_cast<std::size_t>(length), 0);
    }
    for (std::int64_t j = 0; j < length && is_near_; ++j) {
      const auto place = static_cast<std::size_t>(j);
      const std::int32_t column = local[columns[first + j]];
      lowest_[place] = std::min(lowest_[place], column);
      highest_[place] = std::max(highest_[place], column);
      is_near_ = highest_[place] - lowest_[place] <= std::numeric_limits<std::uint16_t>::max();
    }
  }
  bool is_near() const noexcept { return is_near_; }

 private:
  std::vector<std::int32_t> lowest_;
  std::vector<std::int32_t> highest_;
  bool is_near_ = true;
};

bool fits_narrow(const CsrView& a, const PartRows& rows, const PartShape& shape,
                 RowPieces& pieces) {
  const Indices offsets(a.offsets, a.index_bytes);
  const Indices columns(a.columns, a.index_bytes);
  const LocalColumns local(rows.own.first, rows.own.last, a.cols, rows.halo->columns);
  std::atomic<bool> are_near{true};
  pieces.each([&](const RowPiece& piece, std::size_t) {
    Nearness nearness;
    visit_slices(a, rows, shape, piece,
                 [&](std::int64_t, std::int64_t row, std::int64_t length, bool is_longest) {
                   if (row >= 0 && nearness.is_near())
                     nearness.add(columns, offsets[rows.first + row], length, local, is_longest);
                 });
    if (!nearness.is_near()) are_near = false;
  });
  return are_near;
}

/// Of one piece, but for lists().
template <class T, class Index>
class PiecePacker {
 public:
  /// `end`: elements of the part that are stored before the next piece's.
  PiecePacker(const CsrView& a, const PartRows& rows, const PartShape& shape,
              const LocalColumns& local, const RowPiece& piece, std::int64_t end, std::byte* tile)
      : a_(a),
        rows_(rows),
        shape_(shape),
        local_(local),
        piece_(piece),
        end_(end),
        tile_(tile),
        offsets_(static_cast<const Index*>(a.offsets)),
        columns_(static_cast<const Index*>(a.columns)),
        values_(static_cast<const T*>(a.values)) {}

  void rows_as_csr() {
    auto* const offsets = at<std::int64_t>(shape_.offsets);
    auto* const columns = at<std::int32_t>(shape_.columns);
    auto* const values = at<T>(shape_.values);
    const std::int64_t begin = offsets_[rows_.first];
    const auto [first, last] = piece_.rows;
    for (std::int64_t row = first; row < last; ++row)
      offsets[row - rows_.first] = offsets_[row] - begin;
    if (last == rows_.last) offsets[last - rows_.first] = offsets_[last] - begin;
    for (std::int64_t i = offsets_[first]; i < offsets_[last]; ++i)
      columns[i - begin] = local_[columns_[i]];
    std::copy(values_ + offsets_[first], values_ + offsets_[last],
              values + offsets_[first] - begin);
  }

  /// Of elements or of dense blocks.
  void rows_in_slices() {
    auto* const offsets = at<std::int64_t>(shape_.offsets);
    auto* const lengths = at<std::int32_t>(shape_.lengths);
    auto* const order = at<std::int32_t>(shape_.order);
    // Padding is never used, but goes to devices with the rest.
    const std::int64_t values = std::int64_t{shape_.dense_rows} * shape_.dense_rows;
    const std::int64_t column_bytes = shape_.narrow ? sizeof(std::uint16_t) : sizeof(std::int32_t);
    std::fill(tile_ + shape_.columns + piece_.elements / values * column_bytes,
              tile_ + shape_.columns + end_ / values * column_bytes, std::byte{});
    std::fill(at<T>(shape_.values) + piece_.elements, at<T>(shape_.values) + end_, T{});
    std::int64_t next = piece_.elements / values;
    std::int64_t place = piece_.slice * shape_.slice_rows;
    std::int64_t last = -1;
    visit_slices(a_, rows_, shape_, piece_,
                 [&](std::int64_t slice, std::int64_t row, std::int64_t length, bool is_longest) {
                   if (is_longest && last >= 0 && shape_.narrow) narrow(last);
                   if (is_longest)
                     offsets[slice] = std::exchange(next, next + length * shape_.slice_rows);
                   last = slice;
                   lengths[place] = static_cast<std::int32_t>(length);
                   order[place] = static_cast<std::int32_t>(row);
                   const std::int64_t first = offsets[slice] + place % shape_.slice_rows;
                   if (row >= 0 && shape_.format == Format::sell) scatter(row, length, first);
                   if (row >= 0 && shape_.format == Format::blocks)
                     scatter_blocks(row, offsets[slice], place % shape_.slice_rows);
                   ++place;
                 });
    if (shape_.narrow && last >= 0) narrow(last);
    if (piece_.rows.last == rows_.last) offsets[shape_.slices] = next;
  }

  void lists() {
    auto* const order = at<std::int32_t>(shape_.block_order);
    std::int64_t place = 0;
    for (const bool is_border : {false, true})
      for (std::int64_t block = 0; block < shape_.blocks; ++block)
        if (rows_.halo->border[static_cast<std::size_t>(block)] == is_border)
          order[place++] = static_cast<std::int32_t>(block);
    auto* const sends = at<std::int32_t>(shape_.send_rows);
    for (std::size_t i = 0; i < rows_.send_rows.size(); ++i)
      sends[i] = static_cast<std::int32_t>(rows_.send_rows[i] - rows_.own.first);
  }

  void diagonal(const SolverOptions& options) {
    auto* const out = at<T>(shape_.inverses);
    const bool is_jacobi = options.precondition == Precondition::jacobi;
    for (std::int64_t row = piece_.rows.first; row < piece_.rows.last; ++row) {
      T value{};
      if (is_jacobi)
        value = diagonal_of(row);
      else
        value = static_cast<const T*>(options.diagonal)[row];
      const auto size = std::abs(value);
      if (!(size > 0) || !(size - size == 0)) [[unlikely]]
        fail(Errc::invalid_argument,
             fmt::format("{}: the diagonal of row {} is {}",
                         is_jacobi ? "Jacobi preconditioner" : "diagonal preconditioner", row,
                         size == 0 ? "zero" : "not finite"));
      out[row - rows_.first] = is_jacobi ? T(1) / value : value;
    }
  }

  /// The inverses of the diagonal blocks.
  void inverses() {
    const std::int64_t size = shape_.inverse_rows;
    const auto [begin, last] = piece_.rows;
    auto* out = at<T>(shape_.inverses) + (begin - rows_.first) * size;
    for (std::int64_t first = begin; first < last; first += size, out += size * size) {
      std::fill_n(out, size * size, T{});
      for (std::int64_t i = 0; i < size; ++i)
        for (std::int64_t e = offsets_[first + i]; e < offsets_[first + i + 1]; ++e)
          if (columns_[e] >= first && columns_[e] < first + size)
            out[i * size + columns_[e] - first] += values_[e];
      if (!invert(out, shape_.inverse_rows)) [[unlikely]]
        fail(
            Errc::invalid_argument,
            fmt::format("block Jacobi preconditioner: the diagonal block of {} rows from row {} is "
                        "singular or not finite",
                        size, first));
    }
  }

 private:
  template <class U>
  U* at(std::int64_t offset) const noexcept {
    return reinterpret_cast<U*>(tile_ + offset);
  }
  void scatter(std::int64_t row, std::int64_t length, std::int64_t to) {
    const std::int64_t from = offsets_[rows_.first + row];
    const std::int64_t r = to % shape_.slice_rows;
    if (shape_.narrow && r == 0)
      wide_.assign(static_cast<std::size_t>(length * shape_.slice_rows), -1);
    for (std::int64_t j = 0; j < length; ++j, to += shape_.slice_rows) {
      const std::int32_t column = local_[columns_[from + j]];
      if (shape_.narrow)
        wide_[static_cast<std::size_t>(j * shape_.slice_rows + r)] = column;
      else
        at<std::int32_t>(shape_.columns)[to] = column;
      at<T>(shape_.values)[to] = values_[from + j];
    }
  }
  /// Writes the columns of a slice that is complete: those that are -1 are none.
  void narrow(std::int64_t slice) {
    const std::int64_t height = shape_.slice_rows;
    const std::int64_t first = at<std::int64_t>(shape_.offsets)[slice];
    const std::int64_t length = at<std::int32_t>(shape_.lengths)[slice * height];
    for (std::int64_t j = 0; j < length; ++j) {
      const std::int32_t* const wide = wide_.data() + j * height;
      const auto lowest = static_cast<std::int32_t>(
          *std::min_element(wide, wide + height, [](std::int32_t x, std::int32_t y) {
            return static_cast<std::uint32_t>(x) < static_cast<std::uint32_t>(y);
          }));
      at<std::int32_t>(shape_.bases)[first / height + j] = lowest;
      for (std::int64_t r = 0; r < height; ++r)
        at<std::uint16_t>(shape_.columns)[first + j * height + r] =
            static_cast<std::uint16_t>(wide[r] < 0 ? 0 : wide[r] - lowest);
    }
  }
  /// A row of dense blocks, at place `r` of the slice whose first block is `first`.
  void scatter_blocks(std::int64_t row, std::int64_t first, std::int64_t r) {
    const std::int64_t size = shape_.dense_rows;
    const std::int64_t above = rows_.first + row * size;
    find_dense_columns(a_, shape_.dense_rows, above / size, dense_columns_);
    for (std::size_t j = 0; j < dense_columns_.size(); ++j)
      at<std::int32_t>(
          shape_.columns)[first + static_cast<std::int64_t>(j) * shape_.slice_rows + r] =
          static_cast<std::int32_t>(local_[dense_columns_[j] * size] / size);
    for (std::int64_t i = 0; i < size; ++i) {
      std::size_t j = 0;
      for (std::int64_t e = offsets_[above + i]; e < offsets_[above + i + 1]; ++e) {
        const std::int64_t block = columns_[e] / size;
        if (dense_columns_[j] != block) j = place_of(block, j + 1);
        const std::int64_t c = columns_[e] - block * size;
        const auto line = static_cast<std::int64_t>(j) * size + c;
        at<T>(shape_.values)[(first * size + line * shape_.slice_rows + r) * size + i] +=
            values_[e];
      }
    }
  }
  /// Of a block in its row; `guess` is where it is if columns ascend.
  std::size_t place_of(std::int64_t block, std::size_t guess) const {
    if (guess < dense_columns_.size() && dense_columns_[guess] == block) return guess;
    const auto found = std::ranges::lower_bound(dense_columns_, block);
    return static_cast<std::size_t>(found - dense_columns_.begin());
  }
  T diagonal_of(std::int64_t row) const noexcept {
    T sum{};
    for (std::int64_t i = offsets_[row]; i < offsets_[row + 1]; ++i)
      if (columns_[i] == row) sum += values_[i];
    return sum;
  }

  const CsrView& a_;
  const PartRows& rows_;
  const PartShape& shape_;
  const LocalColumns& local_;
  const RowPiece& piece_;
  std::int64_t end_;
  std::byte* tile_;
  const Index* offsets_;
  const Index* columns_;
  const T* values_;
  std::vector<std::int64_t> dense_columns_;  ///< Scratch.
  std::vector<std::int32_t> wide_;           ///< Scratch: the columns of a slice.
};

template <class T, class Index>
void pack_as(const CsrView& a, const PartRows& rows, const PartShape& shape,
             const SolverOptions& options, RowPieces& pieces, std::byte* tile) {
  const LocalColumns local(rows.own.first, rows.own.last, a.cols, rows.halo->columns);
  pieces.each([&](const RowPiece& piece, std::size_t i) {
    const std::int64_t end =
        i + 1 < pieces.all.size() ? pieces.all[i + 1].elements : shape.elements;
    PiecePacker<T, Index> packer(a, rows, shape, local, piece, end, tile);
    if (shape.format == Format::csr)
      packer.rows_as_csr();
    else
      packer.rows_in_slices();
    if (i == 0) packer.lists();
    if (shape.inverse_rows == 1) packer.diagonal(options);
    if (shape.inverse_rows > 1) packer.inverses();
  });
}

template <class T>
void pack_as(const CsrView& a, const PartRows& rows, const PartShape& shape,
             const SolverOptions& options, RowPieces& pieces, std::byte* tile) {
  if (a.index_bytes == 4)
    pack_as<T, std::int32_t>(a, rows, shape, options, pieces, tile);
  else
    pack_as<T, std::int64_t>(a, rows, shape, options, pieces, tile);
}

}  // namespace

PartShape shape_of(const CsrView& a, const PartRows& rows, const Storage& storage,
                   RowPieces& pieces) {
  PartShape shape;
  shape.format = storage.format;
  shape.dense_rows = storage.dense_rows;
  shape.dtype = a.dtype;
  shape.rows = rows.last - rows.first;
  shape.own_columns = rows.own.last - rows.own.first;
  shape.halo = static_cast<std::int64_t>(rows.halo->columns.size());
  if (shape.own_columns + shape.halo > std::numeric_limits<std::int32_t>::max())
    fail(Errc::too_large,
         fmt::format("a part of {} rows and {} of others; 32 bits number {}. Use more parts",
                     shape.own_columns, shape.halo, std::numeric_limits<std::int32_t>::max()));
  shape.block_rows = storage.block_rows;
  shape.blocks = blocks_of(shape.rows, shape.block_rows);
  shape.inner_blocks = std::ranges::count(rows.halo->border, false);
  shape.sends = static_cast<std::int64_t>(rows.send_rows.size());
  shape.inverse_rows = storage.inverse_rows;
  const Indices offsets(a.offsets, a.index_bytes);
  const std::int64_t elements = offsets[rows.last] - offsets[rows.first];
  pieces.cut({rows.first, rows.last}, shape.block_rows, elements);
  if (shape.format == Format::csr) {
    shape.elements = elements;
  } else {
    shape.slice_rows = storage.slice_rows;
    size_slices(a, rows, shape, pieces);
    shape.narrow =
        storage.may_narrow && shape.format == Format::sell && fits_narrow(a, rows, shape, pieces);
  }
  lay_out(shape);
  return shape;
}

void pack(const CsrView& a, const PartRows& rows, const PartShape& shape,
          const SolverOptions& options, RowPieces& pieces, std::byte* tile) {
  with_number_type(a.dtype, [&]<class T>() { pack_as<T>(a, rows, shape, options, pieces, tile); });
}

bool same_pattern(const PartShape& shape, const std::byte* one, const std::byte* other) {
  const auto same = [&](std::int64_t offset, std::int64_t count, std::size_t element_bytes) {
    return std::memcmp(one + offset, other + offset,
                       static_cast<std::size_t>(count) * element_bytes) == 0;
  };
  const bool has_slices = shape.format != Format::csr;
  const std::int64_t places = has_slices ? shape.slices * shape.slice_rows : 0;
  return same(shape.offsets, (has_slices ? shape.slices : shape.rows) + 1, sizeof(std::int64_t)) &&
         same(shape.lengths, places, sizeof(std::int32_t)) &&
         same(shape.order, places, sizeof(std::int32_t)) &&
         same(shape.bases, shape.narrow ? shape.elements / shape.slice_rows : 0,
              sizeof(std::int32_t)) &&
         same(shape.columns, stored_columns(shape),
              shape.narrow ? sizeof(std::uint16_t) : sizeof(std::int32_t));
}

}  // namespace quadriga::sparse
