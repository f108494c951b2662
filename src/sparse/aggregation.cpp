// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/aggregation.cpp: level by level: aggregates, their prolongation, products.
#include "sparse/aggregation.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <complex>
#include <utility>

#include "sparse/aggregates.h"
#include "sparse/kernels/number.h"
#include "sparse/partition.h"

namespace quadriga::sparse {
namespace {

/// A level of no more rows is the last one: its inverse has fewer elements than the levels above.
constexpr std::int64_t small_rows = 300;
constexpr std::int64_t most_dense_rows = 2000;
constexpr std::size_t most_levels = 20;
/// Of the rows above: with more on the next level there is nothing to gain.
constexpr double largest_share = 0.8;
/// Vanek, Mandel and Brezina: the damping of a prolongation, for a spectral radius of 1.
constexpr double damping = 4.0 / 3;

/// P = T - damping / radius * D^-1*A*T, in the place of A*T.
template <class T>
void smooth(Engine& engine, NodeMatrix<T>& p, const NodeMatrix<T>& tentative,
            const std::vector<T>& inverses, int size, double radius) {
  const auto weight = static_cast<Real<T>>(damping / radius);
  for_chunks(engine, p.rows, [&](std::int64_t first, std::int64_t last) {
    std::vector<T> scaled(static_cast<std::size_t>(p.block_size()));
    for (std::int64_t row = first; row < last; ++row) {
      const T* const inverse = inverses.data() + row * p.row_size * size;
      for (std::int64_t i = p.offsets[row]; i < p.offsets[row + 1]; ++i) {
        T* const block = p.block(i);
        for (int r = 0; r < p.row_size; ++r)
          for (int c = 0; c < p.col_size; ++c) {
            T sum{};
            for (int k = 0; k < size; ++k)
              sum +=
                  multiplied(inverse[r * size + k], block[(r / size * size + k) * p.col_size + c]);
            scaled[static_cast<std::size_t>(r * p.col_size + c)] = sum * -weight;
          }
        std::ranges::copy(scaled, block);
        for (std::int64_t j = tentative.offsets[row]; j < tentative.offsets[row + 1]; ++j)
          if (tentative.columns[j] == p.columns[i])
            for (std::int64_t k = 0; k < p.block_size(); ++k) block[k] += tentative.block(j)[k];
      }
    }
  });
}

/// Unknowns that stand for nothing are solved by themselves.
template <class T>
void set_unit_rows(NodeMatrix<T>& a, const std::vector<bool>& is_zero) {
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t i = a.offsets[row]; i < a.offsets[row + 1]; ++i)
      for (int k = 0; a.columns[i] == row && k < a.row_size; ++k)
        if (is_zero[static_cast<std::size_t>(row * a.row_size + k)])
          a.block(i)[k * a.col_size + k] = T(1);
}

template <class T>
NodeMatrix<T> diagonal_of_blocks(const std::vector<T>& inverses, std::int64_t rows, int size) {
  NodeMatrix<T> made{rows / size, rows / size, size, size};
  for (std::int64_t row = 0; row < made.rows; ++row) {
    made.columns.push_back(static_cast<std::int32_t>(row));
    made.offsets.push_back(row + 1);
  }
  made.values = inverses;
  return made;
}

template <class T>
class TypedAggregator : public Aggregator {
 public:
  TypedAggregator(Engine& engine, NearNull vectors, int unknowns, double strength)
      : engine_(engine), vectors_(std::move(vectors)), unknowns_(unknowns), strength_(strength) {}

  MadeLevels make(const CsrView& a, const LevelSmoother& finest,
                  const EstimateBounds& estimate) override {
    MadeLevels made;
    NodeMatrix<T> above = by_nodes<T>(engine_, a, unknowns_);
    LevelSmoother smoother = finest;
    while (has_next(made.levels.size(), above)) {
      const Tentative<T>& tentative = tentatives_[made.levels.size()];
      NodeMatrix<T> p = multiply(engine_, above, tentative.matrix);
      smooth(engine_, p, tentative.matrix, diagonal_inverses(engine_, above, smoother.inverse_rows),
             smoother.inverse_rows, smoother.bounds.high);
      const NodeMatrix<T> r = adjoint(p);
      NodeMatrix<T> next = multiply(engine_, r, multiply(engine_, above, p));
      set_unit_rows(next, tentative.is_zero);
      made.levels.push_back({LevelCsr(r), LevelCsr(p), LevelCsr(next)});
      made.smoothers.push_back(smoother);
      above = std::move(next);
      if (is_last(made.levels.size(), above)) break;
      smoother.inverse_rows = smoothed_rows(above.row_size);
      smoother.bounds = estimate(made.levels.back().matrix.view(), smoother.inverse_rows);
    }
    is_known_ = true;
    if (!made.levels.empty()) made.inverse = inverse_of(above, made.levels.back().matrix.view());
    return made;
  }

 private:
  /// Whether there is a level below one, whose aggregates are found the first time.
  bool has_next(std::size_t level, const NodeMatrix<T>& above) {
    if (level < tentatives_.size()) return true;
    if (is_known_ || is_last(level, above)) return false;
    const Aggregates aggregates = aggregate(connections(engine_, above, strength_));
    const NearNull& fine = level == 0 ? vectors_ : tentatives_.back().coarse;
    const auto rows = static_cast<double>(aggregates.count * fine.vectors);
    if (aggregates.count == 0 ||
        rows > largest_share * static_cast<double>(above.rows) * above.row_size)
      return false;
    tentatives_.push_back(tentative_of<T>(aggregates, fine, above.row_size));
    return true;
  }
  static bool is_last(std::size_t level, const NodeMatrix<T>& a) noexcept {
    return level > 0 && (a.rows * a.row_size <= small_rows || level + 1 >= most_levels);
  }
  LevelCsr inverse_of(const NodeMatrix<T>& a, const CsrView& view) {
    if (view.rows <= most_dense_rows) return dense_inverse(view);
    const int size = smoothed_rows(a.row_size);
    return LevelCsr(diagonal_of_blocks(diagonal_inverses(engine_, a, size), view.rows, size));
  }

  Engine& engine_;
  NearNull vectors_;
  int unknowns_;
  double strength_;
  std::vector<Tentative<T>> tentatives_;  ///< By level, from the first call on.
  bool is_known_ = false;
};

NearNull vectors_of(const Aggregation& options, std::int64_t rows, int unknowns) {
  if (options.near_null) {
    require(options.vectors >= 1,
            fmt::format("aggregation: {} near-null vectors; expected 1 or more", options.vectors));
    const double* const first = options.near_null;
    return {{first, first + rows * options.vectors}, options.vectors};
  }
  NearNull constants{std::vector<double>(static_cast<std::size_t>(rows * unknowns)), unknowns};
  for (std::int64_t row = 0; row < rows; ++row)
    constants.values[static_cast<std::size_t>(row * unknowns + row % unknowns)] = 1;
  return constants;
}

/// The sweep operator on a matrix of n rows: pivots in order, as a hermitian positive definite
/// matrix allows; those that are rounding leave their rows and columns zero.
template <class Wide>
void invert_in_place(std::vector<Wide>& a, std::int64_t n) {
  constexpr double least = 1e-12;
  const auto at = [&](std::int64_t i, std::int64_t j) -> Wide& {
    return a[static_cast<std::size_t>(i * n + j)];
  };
  std::vector<double> before(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) before[i] = std::abs(at(i, i));
  for (std::int64_t k = 0; k < n; ++k) {
    if (!(std::abs(at(k, k)) > least * before[static_cast<std::size_t>(k)])) {
      for (std::int64_t i = 0; i < n; ++i) at(i, k) = at(k, i) = Wide{};
      continue;
    }
    const Wide inverse = Wide(1) / at(k, k);
    at(k, k) = Wide(1);
    for (std::int64_t j = 0; j < n; ++j) at(k, j) = multiplied(at(k, j), inverse);
    for (std::int64_t i = 0; i < n; ++i) {
      const Wide factor = at(i, k);
      if (i == k || factor == Wide{}) continue;
      at(i, k) = Wide{};
      for (std::int64_t j = 0; j < n; ++j) at(i, j) -= multiplied(factor, at(k, j));
    }
  }
}

template <class T>
LevelCsr dense_inverse_as(const CsrView& a) {
  using Wide = std::conditional_t<is_complex<T>, std::complex<double>, double>;
  const std::int64_t n = a.rows;
  const Indices offsets(a.offsets, a.index_bytes);
  const Indices columns(a.columns, a.index_bytes);
  std::vector<Wide> all(static_cast<std::size_t>(n * n));
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t e = offsets[row]; e < offsets[row + 1]; ++e) {
      require(columns[e] >= 0 && columns[e] < n,
              fmt::format("row {} of the last level has an element in column {}; expected 0 to {}",
                          row, columns[e], n - 1));
      all[static_cast<std::size_t>(row * n + columns[e])] +=
          Wide(static_cast<const T*>(a.values)[e]);
    }
  invert_in_place(all, n);
  NodeMatrix<T> made{n, n, 1, 1};
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t c = 0; c < n; ++c) {
      const Wide& here = all[static_cast<std::size_t>(row * n + c)];
      Wide there = all[static_cast<std::size_t>(c * n + row)];
      if constexpr (is_complex<T>) there = std::conj(there);
      made.columns.push_back(static_cast<std::int32_t>(c));
      made.values.push_back(static_cast<T>((here + there) / 2.0));
    }
    made.offsets.push_back((row + 1) * n);
  }
  return LevelCsr(made);
}

/// Calls `work` with an element of the matrix's type.
template <class Work>
auto with_type(DType dtype, Work work) {
  if (dtype == DType::float32) return work(float{});
  if (dtype == DType::float64) return work(double{});
  if (dtype == DType::complex64) return work(std::complex<float>{});
  require(dtype == DType::complex128, "a sparse matrix of bytes");
  return work(std::complex<double>{});
}

}  // namespace

int smoothed_rows(int unknowns) noexcept {
  for (const int size : {4, 3, 2})
    if (unknowns % size == 0) return size;
  return 1;
}

std::unique_ptr<Aggregator> make_aggregator(Engine& engine, const CsrView& a,
                                            const Aggregation& options, int unknowns) {
  require(unknowns >= 1 && a.rows % unknowns == 0,
          fmt::format("aggregation: nodes of {} rows in a matrix of {}; expected a divisor",
                      unknowns, a.rows));
  NearNull vectors = vectors_of(options, a.rows, unknowns);
  return with_type(a.dtype, [&]<class T>(T) -> std::unique_ptr<Aggregator> {
    return std::make_unique<TypedAggregator<T>>(engine, std::move(vectors), unknowns,
                                                options.strength);
  });
}

LevelCsr dense_inverse(const CsrView& a) {
  require(a.rows == a.cols && a.rows <= most_dense_rows,
          fmt::format("the last level is {} x {}; expected a square matrix of at most {} rows",
                      a.rows, a.cols, most_dense_rows));
  return with_type(a.dtype, [&]<class T>(T) { return dense_inverse_as<T>(a); });
}

}  // namespace quadriga::sparse
