// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/level_maker.cpp: a polynomial is one level; aggregates and given levels are several.
#include "sparse/level_maker.h"

#include "sparse/content.h"
#include "sparse/formats.h"
#include "sparse/hierarchy.h"
#include "sparse/partition.h"
#include "sparse/spectrum.h"

namespace quadriga::sparse {
namespace {

std::int64_t elements_in(const CsrView& a) {
  return a.rows > 0 ? Indices(a.offsets, a.index_bytes)[a.rows] : 0;
}

}  // namespace

LevelMaker::LevelMaker(const SolverContent& content, const LevelPlan& plan)
    : content_(content), plan_(plan) {}

std::vector<Level> LevelMaker::make(const CsrView& a, const SolverOptions& options) {
  if (plan_.precondition == Precondition::aggregation)
    aggregator_ = make_aggregator(content_.engine(), a, options.aggregation, plan_.unknowns);
  if (plan_.precondition != Precondition::hierarchy) return make_again(a);
  bounds_ = estimate_bounds(content_);
  return of_given(a, options.levels);
}

std::vector<Level> LevelMaker::make_again(const CsrView& a) {
  if (plan_.precondition == Precondition::hierarchy) return {};
  bounds_ = estimate_bounds(content_);
  return aggregator_ ? of_aggregates(a) : of_polynomial();
}

std::vector<Level> LevelMaker::of_polynomial() const {
  std::vector<Level> levels(1);
  levels.front().steps = chebyshev_steps(bounds_, plan_.degree);
  return levels;
}

std::vector<Level> LevelMaker::of_aggregates(const CsrView& a) {
  Engine& engine = content_.engine();
  const MadeLevels made = aggregator_->make(
      a, {content_.plan(0).shape.inverse_rows, bounds_},
      [&](const CsrView& matrix, int rows) { return estimate_bounds(engine, matrix, rows); });
  // Where no node depends on another there is nothing that a smoother leaves.
  if (made.levels.empty()) return of_polynomial();
  std::vector<CoarseLevel> levels;
  for (const auto& each : made.levels)
    levels.push_back({each.restriction.view(), each.prolongation.view(), each.matrix.view()});
  return store(a, levels, made.smoothers, made.inverse.view());
}

std::vector<Level> LevelMaker::of_given(const CsrView& a, std::span<const CoarseLevel> levels) {
  Engine& engine = content_.engine();
  std::vector<LevelSmoother> smoothers{{content_.plan(0).shape.inverse_rows, bounds_}};
  for (const CoarseLevel& each : levels.first(levels.size() - 1)) {
    const int rows = choose_format(engine, each.matrix, Format::automatic).dense_rows;
    smoothers.push_back({rows, estimate_bounds(engine, each.matrix, rows)});
  }
  const LevelCsr inverse = dense_inverse(levels.back().matrix);
  return store(a, levels, smoothers, inverse.view());
}

std::vector<Level> LevelMaker::store(const CsrView& a, std::span<const CoarseLevel> levels,
                                     std::span<const LevelSmoother> smoothers,
                                     const CsrView& inverse) {
  reports_.assign(1, {a.rows, elements_in(a)});
  for (const CoarseLevel& each : levels)
    reports_.push_back({each.matrix.rows, elements_in(each.matrix)});
  const PlanReport& report = content_.report();
  return store_levels(content_.engine(), {report.first_rows, report.bytes, plan_.units}, levels,
                      smoothers, inverse, plan_.degree);
}

}  // namespace quadriga::sparse
