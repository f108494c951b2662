// SPDX-License-Identifier: BSD-3-Clause
// tests/model/linalg/random_calls.h: calls of linear algebra by seeds: operation, type, sizes,
// layouts and options.
#pragma once

#include <random>

#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {

/// Draws everything that a call needs; the same seed draws the same.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  template <class T, std::size_t count>
  T one_of(const T (&values)[count]) {
    return values[between(0, static_cast<std::int64_t>(count) - 1)];
  }
  bool coin() { return between(0, 1) == 1; }

 private:
  std::mt19937_64 random_;
};

inline constexpr Op ops[] = {Op::none, Op::transpose, Op::conjugate};
inline constexpr Uplo triangles[] = {Uplo::lower, Uplo::upper};

struct Call {
  explicit Call(std::uint64_t seed) : dice(seed) {
    dtype = dice.one_of(all_types);
    tile = dice.between(3, 20);
  }

  Array matrix(std::int64_t rows, std::int64_t cols) {
    return random_matrix(rows, cols, dtype, dice.one_of(all_layouts),
                         static_cast<std::uint64_t>(dice.between(0, 99)));
  }
  Options options() const {
    Options options;
    options.tile = tile;
    return options;
  }

  Array product(Engine& engine) {
    const std::int64_t m = dice.between(1, 60);
    const std::int64_t n = dice.between(1, 60);
    const std::int64_t k = dice.between(1, 60);
    const Op op_a = dice.one_of(ops);
    const Op op_b = dice.one_of(ops);
    const Array a = op_a == Op::none ? matrix(m, k) : matrix(k, m);
    const Array b = op_b == Op::none ? matrix(k, n) : matrix(n, k);
    Array c = matrix(m, n);
    const double beta = dice.coin() ? 0 : 0.75;
    matmul(engine, 1.25, a.view(), op_a, b.view(), op_b, beta, c.view(), options());
    return c;
  }

  Array factor_and_solution(Engine& engine) {
    const std::int64_t order = dice.between(1, 90);
    Array a = spd_matrix(order, dtype, dice.one_of(all_layouts), 7);
    FactorOptions factor_options;
    factor_options.uplo = dice.one_of(triangles);
    factor_options.overwrite = dice.coin();
    Array b = matrix(order, dice.between(1, 30));
    cho_factor(engine, a.view(), factor_options, options()).solve(b.view(), options());
    return b;
  }

  Array cholesky_factor(Engine& engine) {
    const std::int64_t order = dice.between(1, 90);
    Array a = spd_matrix(order, dtype, dice.one_of(all_layouts), 8);
    Array out = matrix(order, order);
    const Uplo uplo = dice.one_of(triangles);
    cholesky(engine, a.view(), out.view(), uplo, dice.coin() ? Other::zero : Other::leave,
             options());
    return out;
  }

  Array triangular(Engine& engine) {
    const std::int64_t order = dice.between(1, 70);
    const Array a = spd_matrix(order, dtype, dice.one_of(all_layouts), 9);
    Array b = matrix(order, dice.between(1, 40));
    const Uplo uplo = dice.one_of(triangles);
    const Op op = dice.one_of(ops);
    solve_triangular(engine, a.view(), uplo, op, dice.coin(), b.view(), options());
    return b;
  }

  Array rank_update(Engine& engine) {
    const std::int64_t order = dice.between(1, 70);
    const std::int64_t inner = dice.between(1, 50);
    const bool plain = dice.coin();
    const Array a = plain ? matrix(order, inner) : matrix(inner, order);
    Array c = spd_matrix(order, dtype, dice.one_of(all_layouts), 10);
    const Uplo uplo = dice.one_of(triangles);
    if (dice.coin())
      herk(engine, 1, a.view(), plain ? Op::none : Op::conjugate, 0.5, c.view(), uplo, options());
    else
      syrk(engine, 1, a.view(), plain ? Op::none : Op::transpose, 0.5, c.view(), uplo, options());
    return c;
  }

  Array run(Engine& engine) {
    switch (dice.between(0, 4)) {
      case 0:
        return product(engine);
      case 1:
        return factor_and_solution(engine);
      case 2:
        return cholesky_factor(engine);
      case 3:
        return triangular(engine);
      default:
        return rank_update(engine);
    }
  }

  Dice dice;
  DType dtype = DType::float64;
  std::int64_t tile = 16;
};

}  // namespace quadriga::linalg::testing
