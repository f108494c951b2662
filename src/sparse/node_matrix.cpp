// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/node_matrix.cpp: rows are computed in chunks, which are then joined.
#include "sparse/node_matrix.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>

#include "sparse/content.h"
#include "sparse/inverses.h"
#include "sparse/kernels/number.h"
#include "sparse/partition.h"

namespace quadriga::sparse {
namespace {

/// Rows of a chunk: each clears a place for every column, so that there mustn't be many.
std::int64_t chunk_rows(std::int64_t rows) {
  constexpr std::int64_t least = 4096, most_chunks = 64;
  return std::max(least, (rows + most_chunks - 1) / most_chunks);
}

/// Rows that are made one after the other.
template <class T>
struct MadeRows {
  std::vector<std::int64_t> ends;
  std::vector<std::int32_t> columns;
  std::vector<T> values;
};

/// A matrix of rows that `make(first, last, MadeRows)` makes by chunks.
template <class T, class Make>
void assemble(Engine& engine, NodeMatrix<T>& out, Make make) {
  const std::int64_t length = chunk_rows(out.rows);
  std::vector<MadeRows<T>> pieces(static_cast<std::size_t>((out.rows + length - 1) / length));
  for_chunks(engine, out.rows, [&](std::int64_t first, std::int64_t last) {
    make(first, last, pieces[static_cast<std::size_t>(first / length)]);
  });
  std::vector<std::int64_t> begins;
  std::int64_t count = 0;
  out.offsets.assign(1, 0);
  for (const MadeRows<T>& each : pieces) {
    begins.push_back(count);
    for (const std::int64_t end : each.ends) out.offsets.push_back(count + end);
    count += static_cast<std::int64_t>(each.columns.size());
  }
  out.columns.resize(static_cast<std::size_t>(count));
  out.values.resize(static_cast<std::size_t>(count * out.block_size()));
  for_chunks(engine, out.rows, [&](std::int64_t first, std::int64_t) {
    const auto index = static_cast<std::size_t>(first / length);
    MadeRows<T>& piece = pieces[index];
    std::ranges::copy(piece.columns, out.columns.begin() + begins[index]);
    std::ranges::copy(piece.values, out.values.begin() + begins[index] * out.block_size());
    piece = {};
  });
}

/// Gathers the blocks of one row: columns in any order, then sums at their places.
template <class T>
class RowSums {
 public:
  RowSums(std::int64_t cols, std::int64_t block_size)
      : places_(static_cast<std::size_t>(cols), -1), block_size_(block_size) {}

  void mark(std::int64_t column) {
    auto& place = places_[static_cast<std::size_t>(column)];
    if (place >= 0) return;
    place = 0;
    found_.push_back(static_cast<std::int32_t>(column));
  }
  /// All columns of the row are marked.
  void open(MadeRows<T>& rows) {
    std::ranges::sort(found_);
    const std::size_t begin = rows.columns.size();
    for (std::size_t i = 0; i < found_.size(); ++i)
      places_[static_cast<std::size_t>(found_[i])] = static_cast<std::int64_t>(begin + i);
    rows.columns.insert(rows.columns.end(), found_.begin(), found_.end());
    rows.values.resize(rows.columns.size() * static_cast<std::size_t>(block_size_));
  }
  T* at(MadeRows<T>& rows, std::int64_t column) {
    return rows.values.data() + places_[static_cast<std::size_t>(column)] * block_size_;
  }
  void close(MadeRows<T>& rows) {
    for (const std::int32_t each : found_) places_[static_cast<std::size_t>(each)] = -1;
    found_.clear();
    rows.ends.push_back(static_cast<std::int64_t>(rows.columns.size()));
  }

 private:
  std::vector<std::int64_t> places_;  ///< By column; -1: not in this row.
  std::vector<std::int32_t> found_;
  std::int64_t block_size_;
};

/// The rows [first, last) of nodes of `size` rows each.
template <class T>
void read_nodes(const CsrView& a, int size, std::int64_t first, std::int64_t last,
                MadeRows<T>& rows) {
  const Indices offsets(a.offsets, a.index_bytes);
  const Indices columns(a.columns, a.index_bytes);
  const auto* const values = static_cast<const T*>(a.values);
  RowSums<T> sums(a.cols / size, std::int64_t{size} * size);
  for (std::int64_t node = first; node < last; ++node) {
    const std::int64_t above = node * size;
    for (std::int64_t e = offsets[above]; e < offsets[above + size]; ++e) {
      const std::int64_t column = columns[e];
      if (column < 0 || column >= a.cols) [[unlikely]]
        fail(Errc::invalid_argument,
             fmt::format("rows {} to {} have an element in column {}; expected 0 to {}", above,
                         above + size - 1, column, a.cols - 1));
      sums.mark(column / size);
    }
    sums.open(rows);
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t e = offsets[above + i]; e < offsets[above + i + 1]; ++e)
        sums.at(rows, columns[e] / size)[i * size + columns[e] % size] += values[e];
    sums.close(rows);
  }
}

/// c += a*b of blocks of m x k and k x n.
template <class T>
void add_product(const T* a, const T* b, T* c, int m, int k, int n) noexcept {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < k; ++j) {
      const T factor = a[i * k + j];
      for (int l = 0; l < n; ++l) c[i * n + l] += multiplied(factor, b[j * n + l]);
    }
}

template <class T>
double squared_norm(const T* block, std::int64_t size) noexcept {
  double sum = 0;
  for (std::int64_t i = 0; i < size; ++i) sum += std::norm(std::complex<double>(block[i]));
  return sum;
}

/// The block on the diagonal; null: there is none.
template <class T>
const T* diagonal_block(const NodeMatrix<T>& a, std::int64_t row) noexcept {
  const auto begin = a.columns.begin() + a.offsets[static_cast<std::size_t>(row)];
  const auto end = a.columns.begin() + a.offsets[static_cast<std::size_t>(row) + 1];
  const auto found = std::lower_bound(begin, end, static_cast<std::int32_t>(row));
  return found != end && *found == row ? a.block(found - a.columns.begin()) : nullptr;
}

}  // namespace

void for_chunks(Engine& engine, std::int64_t count,
                const std::function<void(std::int64_t, std::int64_t)>& work) {
  const std::int64_t length = chunk_rows(count);
  run_on_host(engine, static_cast<std::size_t>((count + length - 1) / length),
              [&](std::size_t chunk) {
                const std::int64_t first = static_cast<std::int64_t>(chunk) * length;
                work(first, std::min(first + length, count));
              });
}

template <class T>
NodeMatrix<T> by_nodes(Engine& engine, const CsrView& a, int size) {
  require(size >= 1 && a.rows % size == 0,
          fmt::format("nodes of {} rows in a matrix of {}; expected a divisor", size, a.rows));
  NodeMatrix<T> nodes{a.rows / size, a.cols / size, size, size};
  if (nodes.rows > std::numeric_limits<std::int32_t>::max())
    fail(Errc::too_large, fmt::format("{} nodes; 32 bits number {}", nodes.rows,
                                      std::numeric_limits<std::int32_t>::max()));
  assemble(engine, nodes, [&](std::int64_t first, std::int64_t last, MadeRows<T>& rows) {
    read_nodes(a, size, first, last, rows);
  });
  return nodes;
}

/// Gustavson, ACM TOMS 4(3), 1978, with a row's columns known before its sums.
template <class T>
NodeMatrix<T> multiply(Engine& engine, const NodeMatrix<T>& a, const NodeMatrix<T>& b) {
  require(a.cols == b.rows && a.col_size == b.row_size, "shapes of matrices disagree");
  NodeMatrix<T> c{a.rows, b.cols, a.row_size, b.col_size};
  assemble(engine, c, [&](std::int64_t first, std::int64_t last, MadeRows<T>& rows) {
    RowSums<T> sums(c.cols, c.block_size());
    for (std::int64_t row = first; row < last; ++row) {
      const auto each = [&](auto visit) {
        for (std::int64_t i = a.offsets[row]; i < a.offsets[row + 1]; ++i)
          for (std::int64_t j = b.offsets[a.columns[i]]; j < b.offsets[a.columns[i] + 1]; ++j)
            visit(i, j);
      };
      each([&](std::int64_t, std::int64_t j) { sums.mark(b.columns[j]); });
      sums.open(rows);
      each([&](std::int64_t i, std::int64_t j) {
        add_product(a.block(i), b.block(j), sums.at(rows, b.columns[j]), a.row_size, a.col_size,
                    b.col_size);
      });
      sums.close(rows);
    }
  });
  return c;
}

template <class T>
NodeMatrix<T> adjoint(const NodeMatrix<T>& a) {
  NodeMatrix<T> t{a.cols, a.rows, a.col_size, a.row_size};
  t.offsets.assign(static_cast<std::size_t>(a.cols) + 1, 0);
  for (const std::int32_t column : a.columns) ++t.offsets[static_cast<std::size_t>(column) + 1];
  for (std::size_t i = 0; i + 1 < t.offsets.size(); ++i) t.offsets[i + 1] += t.offsets[i];
  t.columns.resize(a.columns.size());
  t.values.resize(a.values.size());
  std::vector<std::int64_t> next(t.offsets.begin(), t.offsets.end() - 1);
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t i = a.offsets[row]; i < a.offsets[row + 1]; ++i) {
      const std::int64_t to = next[static_cast<std::size_t>(a.columns[i])]++;
      t.columns[static_cast<std::size_t>(to)] = static_cast<std::int32_t>(row);
      const T* const from = a.block(i);
      T* const out = t.block(to);
      for (int r = 0; r < a.row_size; ++r)
        for (int c = 0; c < a.col_size; ++c) {
          const T value = from[r * a.col_size + c];
          if constexpr (is_complex<T>)
            out[c * a.row_size + r] = std::conj(value);
          else
            out[c * a.row_size + r] = value;
        }
    }
  return t;
}

template <class T>
NodeGraph connections(Engine& engine, const NodeMatrix<T>& a, double strength) {
  std::vector<double> sizes(static_cast<std::size_t>(a.rows));
  const double squared = strength * strength;
  for_chunks(engine, a.rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row)
      if (const T* const block = diagonal_block(a, row))
        sizes[static_cast<std::size_t>(row)] = std::sqrt(squared_norm(block, a.block_size()));
  });
  // Only the pattern is used: blocks of one element keep it small.
  NodeMatrix<std::uint8_t> found{a.rows, a.cols, 1, 1};
  assemble(engine, found, [&](std::int64_t first, std::int64_t last, MadeRows<std::uint8_t>& rows) {
    for (std::int64_t row = first; row < last; ++row) {
      for (std::int64_t i = a.offsets[row]; i < a.offsets[row + 1]; ++i) {
        const std::int32_t column = a.columns[i];
        const double limit = squared * sizes[row] * sizes[static_cast<std::size_t>(column)];
        if (column != row && squared_norm(a.block(i), a.block_size()) > limit)
          rows.columns.push_back(column);
      }
      rows.ends.push_back(static_cast<std::int64_t>(rows.columns.size()));
    }
    rows.values.resize(rows.columns.size());
  });
  return {std::move(found.offsets), std::move(found.columns)};
}

template <class T>
std::vector<T> diagonal_inverses(Engine& engine, const NodeMatrix<T>& a, int size) {
  std::vector<T> inverses(static_cast<std::size_t>(a.rows * a.row_size * size));
  for_chunks(engine, a.rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const T* const block = diagonal_block(a, row);
      for (int k = 0; k < a.row_size; k += size) {
        T* const out = inverses.data() + (row * a.row_size + k) * size;
        for (int i = 0; block && i < size; ++i)
          std::copy_n(block + (k + i) * a.col_size + k, size, out + i * size);
        if (!block || !invert(out, size)) [[unlikely]]
          fail(Errc::invalid_argument,
               fmt::format("aggregation: the {} from row {} on the diagonal is singular or not "
                           "finite",
                           size == 1 ? "element" : fmt::format("block of {} rows", size),
                           row * a.row_size + k));
      }
    }
  });
  return inverses;
}

template <class T>
LevelCsr::LevelCsr(const NodeMatrix<T>& a) {
  const auto elements = static_cast<std::int64_t>(a.values.size());
  const bool is_small = std::max(elements, a.cols * a.col_size) <
                        std::int64_t{std::numeric_limits<std::int32_t>::max()};
  view_ = {a.rows * a.row_size, a.cols * a.col_size, elements, nullptr, nullptr, nullptr,
           is_small ? 4 : 8,    dtype_of<T>};
  is_small ? fill<T, std::int32_t>(a) : fill<T, std::int64_t>(a);
  view_.offsets = offsets_.data();
  view_.columns = columns_.data();
  view_.values = values_.data();
}

template <class T, class Index>
void LevelCsr::fill(const NodeMatrix<T>& a) {
  const auto elements = static_cast<std::size_t>(view_.elements);
  offsets_.resize(static_cast<std::size_t>(view_.rows + 1) * sizeof(Index));
  columns_.resize(elements * sizeof(Index));
  values_.resize(elements * sizeof(T));
  auto* offset = reinterpret_cast<Index*>(offsets_.data());
  auto* column = reinterpret_cast<Index*>(columns_.data());
  auto* value = reinterpret_cast<T*>(values_.data());
  Index count = 0;
  *offset++ = 0;
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (int r = 0; r < a.row_size; ++r) {
      for (std::int64_t i = a.offsets[row]; i < a.offsets[row + 1]; ++i, count += a.col_size)
        for (int c = 0; c < a.col_size; ++c) {
          *column++ = static_cast<Index>(a.columns[i]) * a.col_size + c;
          *value++ = a.block(i)[r * a.col_size + c];
        }
      *offset++ = count;
    }
}

#define QUADRIGA_INSTANTIATE(T)                                                         \
  template NodeMatrix<T> by_nodes(Engine&, const CsrView&, int);                        \
  template NodeMatrix<T> multiply(Engine&, const NodeMatrix<T>&, const NodeMatrix<T>&); \
  template NodeMatrix<T> adjoint(const NodeMatrix<T>&);                                 \
  template NodeGraph connections(Engine&, const NodeMatrix<T>&, double);                \
  template std::vector<T> diagonal_inverses(Engine&, const NodeMatrix<T>&, int);        \
  template LevelCsr::LevelCsr(const NodeMatrix<T>&);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::sparse
