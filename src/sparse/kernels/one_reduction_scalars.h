// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/kernels/one_reduction_scalars.h: the scalars of conjugate gradients whose sums are
// formed together, and when a residual is replaced.
//
// With u = M*r and w = A*u, p^H*A*p = u^H*w - beta*r^H*u/alpha, where alpha is the last step's: it
// is known without a product with p, as long as directions are conjugate. Rounding makes r drift
// from b - A*x, faster than by classic iterations, and makes that difference inexact. So r is
// computed anew from time to time and the direction stays; where a column contradicts itself
// nevertheless, classic iterations go on with it.
//
// Sources: Chronopoulos and Gear, J. Comput. Appl. Math. 25(2), 1989; Ghysels and Vanroose,
// Parallel Computing 40(7), 2014, who replace residuals after 50 iterations; Sleijpen and van der
// Vorst, Computing 56(2), 1996, where the residual has fallen.
#pragma once

#include <quadriga/sparse_plan.h>

#include <cmath>

#include "sparse/kernels/scalars.h"

namespace quadriga::sparse {

/// A residual is replaced once ||r||^2 has fallen by so much, of a method that has a period.
inline constexpr double replaced_fall = 1e-6;
/// And after so many iterations at the latest: of pipelined ones four more recurrences drift. 0: a
/// residual is computed anew when the recurrence says that it meets the tolerance, as of classic
/// ones. Earlier it would disturb the directions of ill-conditioned systems.
constexpr std::int64_t period_of(CgMethod method) noexcept {
  return method == CgMethod::pipelined ? 50 : 0;
}

/// Whether the recurrence says that the residual is much smaller than when it was computed last.
constexpr bool has_fallen(const ColumnState& state) noexcept {
  return state.squared <= replaced_fall * state.largest;
}

/// As restart(), the direction stays. Where the recurrence had the residual fall, but it is hardly
/// smaller than the last one that was computed, classic iterations have to tell.
constexpr void replace(ColumnState& state, const ColumnSums& sums, double tolerance) noexcept {
  const IterationStatus before = state.status;
  const double last = state.renewed;
  const bool claims = before == IterationStatus::converged ||
                      (before == IterationStatus::due && state.squared <= replaced_fall * last);
  restart(state, sums, tolerance, kept_share(state));
  const bool is_contradicted = claims && 4 * sums.rr >= last;
  if (state.status == IterationStatus::running &&
      (before == IterationStatus::doubtful || is_contradicted))
    state.status = IterationStatus::doubtful;
}

/// u^H*A*u is known, of a column that runs.
constexpr void set_step_without_product(ColumnState& state, double uw) noexcept {
  if (state.status != IterationStatus::running) return;
  const double pq = state.beta == 0 ? uw : uw - state.beta * state.rho / state.alpha;
  if (!(pq - pq == 0))
    state.status = IterationStatus::not_finite;
  else if (pq > 0)
    state.alpha = state.rho / pq;
  else
    state.status =
        state.beta == 0 ? IterationStatus::not_positive_definite : IterationStatus::doubtful;
}

/// The residual after a step is known. `period`: iterations after which it is replaced at the
/// latest; 0: none.
constexpr void end_step(ColumnState& state, const ColumnSums& sums, std::int64_t period) noexcept {
  if (state.status != IterationStatus::running) return;
  set_direction(state, sums);
  if (state.status != IterationStatus::running) return;
  if (state.squared > state.largest) state.largest = state.squared;
  if (period > 0 && (has_fallen(state) || state.iterations - state.since >= period))
    state.status = IterationStatus::due;
}

/// The same, and what is kept of it (part_codelets.h).
inline void record_step(ColumnState& state, const ColumnSums& sums, std::int64_t period,
                        IterationRecord* history, std::int64_t columns, std::int64_t column) {
  end_step(state, sums, period);
  history[(state.iterations - 1) % history_length * columns + column] = {std::sqrt(state.squared),
                                                                         state.alpha, state.beta};
}

}  // namespace quadriga::sparse
