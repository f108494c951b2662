// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/matrices.h: matrices by compressed rows, dense oracles, and ways to run.
#pragma once

#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/sparse.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace quadriga::sparse::testing {

template <class T>
constexpr DType type_of() {
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::complex64;
  return DType::complex128;
}

/// A matrix that owns its arrays.
template <class T, class Index = std::int32_t>
struct OwnedCsr {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<Index> offsets{0};
  std::vector<Index> columns;
  std::vector<T> values;

  CsrView view() const {
    return {rows,           cols,           static_cast<std::int64_t>(columns.size()),
            offsets.data(), columns.data(), values.data(),
            sizeof(Index),  type_of<T>()};
  }
  void add(std::int64_t column, T value) {
    columns.push_back(static_cast<Index>(column));
    values.push_back(value);
  }
  void end_row() {
    offsets.push_back(static_cast<Index>(columns.size()));
    ++rows;
  }
  /// Row by row, by plain sums.
  std::vector<T> times(const std::vector<T>& x, std::int64_t k) const {
    std::vector<T> y(static_cast<std::size_t>(rows * k));
    for (std::int64_t row = 0; row < rows; ++row)
      for (auto at = offsets[row]; at < offsets[row + 1]; ++at)
        for (std::int64_t c = 0; c < k; ++c) y[row * k + c] += values[at] * x[columns[at] * k + c];
    return y;
  }
};

/// Uniform in [-1, 1), both parts of complex numbers.
template <class T>
T random_value(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(uniform(random));
  else
    return T(static_cast<typename T::value_type>(uniform(random)),
             static_cast<typename T::value_type>(uniform(random)));
}

template <class T>
std::vector<T> random_vector(std::int64_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> vector(static_cast<std::size_t>(size));
  for (T& each : vector) each = random_value<T>(random);
  return vector;
}

/// Rows of random lengths with columns in any order, some of them twice, some rows empty and one
/// full.
template <class T, class Index = std::int32_t>
OwnedCsr<T, Index> random_matrix(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  OwnedCsr<T, Index> a;
  a.cols = n;
  const auto full = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  for (std::int64_t row = 0; row < n; ++row) {
    const auto count = row == full ? n : static_cast<std::int64_t>(random() % 12);
    for (std::int64_t j = 0; j < count; ++j)
      a.add(row == full ? j : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)),
            random_value<T>(random));
    a.end_row();
  }
  return a;
}

/// A grid's Laplacian, shifted by a constant so that it is well conditioned.
template <class T>
OwnedCsr<T, std::int64_t> grid_matrix(const BoxGrid& grid, double shift = 0) {
  OwnedCsr<T, std::int64_t> a;
  a.rows = a.cols = rows_of(grid);
  a.offsets.resize(static_cast<std::size_t>(a.rows + 1));
  a.columns.resize(static_cast<std::size_t>(elements_of(grid)));
  a.values.resize(a.columns.size());
  laplacian(grid, 0, a.rows, a.offsets.data(), a.columns.data(), a.values.data(), type_of<T>());
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (auto at = a.offsets[row]; at < a.offsets[row + 1]; ++at)
      if (a.columns[at] == row) a.values[at] += T(static_cast<float>(shift));
  return a;
}

template <class T>
double norm(const std::vector<T>& x) {
  double sum = 0;
  for (const T& each : x) sum += std::norm(std::complex<double>(each));
  return std::sqrt(sum);
}

/// ||b - A*x||.
template <class T, class Index>
double residual(const OwnedCsr<T, Index>& a, const std::vector<T>& x, const std::vector<T>& b) {
  std::vector<T> r = a.times(x, 1);
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = b[i] - r[i];
  return norm(r);
}

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

/// Of solves whose `result` and `x` are kept.
template <class Solved>
void expect_same(const Solved& one, const Solved& other) {
  EXPECT_EQ(one.result.reason, other.result.reason);
  EXPECT_EQ(one.result.iterations, other.result.iterations);
  EXPECT_EQ(one.result.residuals, other.result.residuals);
  EXPECT_EQ(one.result.true_residuals, other.result.true_residuals);
  EXPECT_EQ(one.result.replacements, other.result.replacements);
  EXPECT_TRUE(same_bits(one.x, other.x));
}

/// A solve that its progress function cancels ends as cancelled, and the solver works afterwards.
inline void expect_cancelled_and_usable(Engine& engine, const SolverOptions& options = {}) {
  const auto a = grid_matrix<double>({20, 20, 20});
  const auto b = random_vector<double>(a.rows, 3);
  const Solver solver(engine, a.view(), options);
  std::vector<double> x(b.size());
  SolveOptions wanted;
  wanted.rtol = 1e-14;
  wanted.progress = [](std::int64_t iterations) { return iterations < 2; };
  try {
    solver.cg(b.data(), x.data(), 1, wanted);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::cancelled);
  }
  x.assign(x.size(), 0);
  EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
}

}  // namespace quadriga::sparse::testing
