// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/hierarchy.cpp: rows of levels are cut as those above them, and stored by bytes.
#include "sparse/hierarchy.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <utility>

#include "sparse/content.h"
#include "sparse/formats.h"
#include "sparse/partition.h"
#include "sparse/spectrum.h"

namespace quadriga::sparse {
namespace {

/// Errors whose eigenvalues are below this part of the largest one are left to the next level.
constexpr double smoothed_share = 1.0 / 8;

/// How the rows of one level are cut.
struct LevelCuts {
  std::vector<std::int64_t> first_rows;
  std::int64_t block_rows = 1;
};

Storage storage_of(Engine& engine, const ChosenFormat& chosen, std::int64_t block_rows,
                   int inverse_rows) {
  return {chosen.format, chosen.dense_rows,
          block_rows,    slice_rows_of(engine.machine(), chosen.format, block_rows),
          inverse_rows,  may_narrow(engine.machine())};
}

SolverOptions scaled_by(int inverse_rows) {
  SolverOptions options;
  options.precondition = inverse_rows > 1 ? Precondition::block_jacobi : Precondition::jacobi;
  options.inverse_rows = inverse_rows > 1 ? inverse_rows : 0;
  return options;
}

LevelCuts cut_level(const CsrView& a, std::int64_t block_rows, std::span<const std::size_t> bytes) {
  const std::vector<double> weights(bytes.begin(), bytes.end());
  return {cut_rows(a, block_rows, weights, static_cast<std::int64_t>(size_of(a.dtype))),
          block_rows};
}

/// A restriction or a prolongation.
std::unique_ptr<LevelMatrix> store_between(Engine& engine, const CsrView& a, const LevelCuts& rows,
                                           const LevelCuts& columns) {
  check_offsets(a);
  ChosenFormat chosen = choose_format(engine, a, Format::automatic);
  // Parts begin at whole dense blocks.
  if (rows.block_rows % chosen.dense_rows != 0 || columns.block_rows % chosen.dense_rows != 0)
    chosen = choose_format(engine, CsrView{}, Format::automatic);
  return std::make_unique<LevelMatrix>(engine, a, Cuts{rows.first_rows, columns.first_rows},
                                       storage_of(engine, chosen, rows.block_rows, 0),
                                       SolverOptions{});
}

std::unique_ptr<LevelMatrix> store_square(Engine& engine, const CsrView& a, const LevelCuts& cuts,
                                          const ChosenFormat& chosen, int inverse_rows) {
  return std::make_unique<LevelMatrix>(engine, a, Cuts{cuts.first_rows, cuts.first_rows},
                                       storage_of(engine, chosen, cuts.block_rows, inverse_rows),
                                       scaled_by(inverse_rows));
}

}  // namespace

std::vector<SmoothingStep> smoothing_steps(const EigenvalueBounds& bounds, int degree) {
  return chebyshev_steps({bounds.high * smoothed_share, bounds.high}, degree);
}

EigenvalueBounds estimate_bounds(Engine& engine, const CsrView& a, int inverse_rows) {
  return estimate_bounds(SolverContent(engine, a, scaled_by(inverse_rows)));
}

void check_levels(std::span<const CoarseLevel> levels, std::int64_t rows, DType dtype) {
  require(!levels.empty(), "a hierarchy without levels");
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto check = [&](const CsrView& a, const char* what, std::int64_t wanted_rows,
                           std::int64_t wanted_cols) {
      check_offsets(a);
      require(
          a.rows == wanted_rows && a.cols == wanted_cols && a.dtype == dtype,
          fmt::format("the {} of level {} is {} x {} of {}; expected {} x {} of {}", what, i + 1,
                      a.rows, a.cols, name(a.dtype), wanted_rows, wanted_cols, name(dtype)));
    };
    const std::int64_t below = levels[i].matrix.rows;
    check(levels[i].matrix, "matrix", below, below);
    check(levels[i].restriction, "restriction", below, rows);
    check(levels[i].prolongation, "prolongation", rows, below);
    rows = below;
  }
}

std::vector<Level> store_levels(Engine& engine, const FinestCuts& finest,
                                std::span<const CoarseLevel> levels,
                                std::span<const LevelSmoother> smoothers, const CsrView& inverse,
                                int degree) {
  std::vector<Level> stored(levels.size() + 1);
  LevelCuts above{{finest.first_rows.begin(), finest.first_rows.end()}, finest.units.block_rows};
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool is_last = i + 1 == levels.size();
    const CsrView& matrix = is_last ? inverse : levels[i].matrix;
    const int inverse_rows = is_last ? 0 : smoothers[i + 1].inverse_rows;
    const ChosenFormat chosen = choose_format(engine, matrix, Format::automatic);
    LevelCuts cuts = cut_level(matrix, block_rows_of(matrix, chosen, inverse_rows), finest.bytes);
    stored[i].steps = smoothing_steps(smoothers[i].bounds, degree);
    stored[i].restriction = store_between(engine, levels[i].restriction, cuts, above);
    stored[i].prolongation = store_between(engine, levels[i].prolongation, above, cuts);
    stored[i + 1].matrix = store_square(engine, matrix, cuts, chosen, inverse_rows);
    above = std::move(cuts);
  }
  return stored;
}

}  // namespace quadriga::sparse
