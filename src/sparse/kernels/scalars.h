// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/scalars.h: the scalars of conjugate gradients, which stay on the devices.
//
// One state a column, in one tile that few tasks write and all read. A column that has ended is
// left alone by all kernels: iterations that were queued beyond the end change nothing.
#pragma once

#include <cstdint>

namespace quadriga::sparse {

enum class IterationStatus : std::int32_t {
  running,
  converged,
  due,       ///< The residual is to be computed anew, then the column goes on.
  doubtful,  ///< Its scalars contradict a positive definite A: classic iterations have to tell.
  not_positive_definite,
  indefinite_preconditioner,
  not_finite,
  diverged,
};

/// Whether a column has broken down.
constexpr bool is_fault(IterationStatus status) noexcept {
  return status > IterationStatus::doubtful;
}

/// A residual that grows so much, squared, tells that the matrix is singular, or as good as.
inline constexpr double largest_growth = 1e32;

struct ColumnState {
  double rho = 0;      ///< r^H*M*r.
  double alpha = 0;    ///< Length of the step.
  double beta = 0;     ///< Share of the last direction in the next one.
  double squared = 0;  ///< ||r||^2.
  double tolerance = 0;
  std::int64_t iterations = 0;
  IterationStatus status = IterationStatus::running;
  std::int32_t unused = 0;
  double first = 0;        ///< ||r||^2 before the first iteration.
  double renewed = 0;      ///< ||b - A*x||^2 when it was computed last.
  double largest = 0;      ///< ||r||^2 since then.
  std::int64_t since = 0;  ///< The number of iterations then.
};

/// What is kept of one iteration of a column.
struct IterationRecord {
  double residual = 0;  ///< ||r|| after it.
  double alpha = 0;
  double beta = 0;
};

/// The records of one iteration, one a column, are at place (iteration - 1) % history_length.
inline constexpr std::int64_t history_length = 64;

/// Sums over all rows of one column.
struct ColumnSums {
  double rz = 0;  ///< r^H*M*r
  double rr = 0;  ///< ||r||^2
  double bb = 0;  ///< ||b||^2
};

struct Tolerances {
  double rtol = 0;
  double atol = 0;
};

/// What a residual says of a column that runs.
constexpr void judge(ColumnState& state, const ColumnSums& sums) noexcept {
  state.rho = sums.rz;
  state.squared = sums.rr;
  state.status = IterationStatus::running;
  if (!(sums.rr - sums.rr == 0) || !(sums.rz - sums.rz == 0))
    state.status = IterationStatus::not_finite;
  else if (sums.rr <= state.tolerance * state.tolerance)
    state.status = IterationStatus::converged;
  else if (sums.rz <= 0)
    state.status = IterationStatus::indefinite_preconditioner;
  else if (sums.rr > largest_growth * state.first)
    state.status = IterationStatus::diverged;
}

/// Of a right side of that norm.
constexpr double tolerance_of(const Tolerances& given, double norm) noexcept {
  const double relative = given.rtol * norm;
  return relative > given.atol ? relative : given.atol;
}

/// Of the last direction, for a residual that replaces the recurrence's: beta / rho.
constexpr double kept_share(const ColumnState& state) noexcept {
  return state.rho > 0 ? state.beta / state.rho : 0;
}

/// A residual was computed anew: the next direction is M*r, or has a share of the last one as if
/// the recurrence had found that residual. A column that broke down stays so.
constexpr void restart(ColumnState& state, const ColumnSums& sums, double tolerance,
                       double share) noexcept {
  state.tolerance = tolerance;
  state.beta = share * sums.rz;
  if (state.iterations == 0) state.first = sums.rr;
  const IterationStatus before = state.status;
  judge(state, sums);
  if (is_fault(before)) state.status = before;
  state.renewed = state.largest = sums.rr;
  state.since = state.iterations;
}

/// p^H*A*p is known.
constexpr void set_step(ColumnState& state, double pq) noexcept {
  if (state.status != IterationStatus::running) return;
  if (!(pq - pq == 0))
    state.status = IterationStatus::not_finite;
  else if (pq <= 0)
    state.status = IterationStatus::not_positive_definite;
  else
    state.alpha = state.rho / pq;
}

/// The residual after a step is known.
constexpr void set_direction(ColumnState& state, const ColumnSums& sums) noexcept {
  if (state.status != IterationStatus::running) return;
  ++state.iterations;
  state.beta = sums.rz / state.rho;
  judge(state, sums);
}

}  // namespace quadriga::sparse
