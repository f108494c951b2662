// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/factor_solve.cpp: what a factor is for: solving, the determinant, the inverse's
// diagonal.
#include "engine/named_call.h"
#include "linalg/check.h"
#include "linalg/factor.h"
#include "linalg/kernels/codelets.h"
#include "linalg/operand_guard.h"
#include "linalg/substitution.h"
#include "linalg/view.h"

#include <fmt/format.h>

namespace quadriga::linalg {
namespace {

/// Tasks go where the factor's tile is now, so that it needn't move.
Where stay(const FactorContent& impl) {
  const FactorTiles& tiles = *impl.tiles;
  if (tiles.engine().host_only())
    return [](std::int64_t, std::int64_t, std::int64_t) { return SubmitOptions{}; };
  const auto holders = std::make_shared<std::vector<DeviceId>>(tiles.holders());
  return [holders, &tiles, &impl](std::int64_t i, std::int64_t j, std::int64_t) {
    const auto [row, col] = impl.triangle().stored(i, j);
    SubmitOptions where;
    where.device = (*holders)[tiles.index(row, col)];
    return where;
  };
}

/// The factor as the triangular matrix T with S = T*T^H.
TriangularTiles first_triangle(const FactorContent& impl) {
  TriangularTiles triangle;
  triangle.lower = impl.stored == Uplo::lower;
  triangle.forward = true;
  triangle.op = triangle.lower ? Op::none : Op::conjugate;
  triangle.read = [&impl](std::int64_t i, std::int64_t j, SubmitOptions where) {
    return impl.triangle().read(i, j, where);
  };
  triangle.rows = impl.tiling();
  return triangle;
}

TriangularTiles second_triangle(const FactorContent& impl) {
  TriangularTiles triangle = first_triangle(impl);
  triangle.forward = false;
  triangle.op = triangle.lower ? Op::conjugate : Op::none;
  return triangle;
}

}  // namespace

void Factor::solve(const MatrixView& b, const Options& options) const {
  const FactorTiles& tiles = *impl().tiles;
  Engine& engine = tiles.engine();
  const NamedCall named(engine, "cho_solve");
  const Matrix result(b);
  const HostAccess held = guard(engine, {{&result, Access::update}});
  check_options(options);
  check_output("B", b);
  check_types("the factor", dtype(), "B", b.dtype);
  if (b.rows != order())
    fail(Errc::invalid_argument, fmt::format("B is {}; expected as many rows as the factor, {}",
                                             shape_of(b.rows, b.cols), order()));
  check_finite(engine, options, "B", b);
  if (empty(b)) return;
  const Tiling rows = tiles.rows();
  Run run(engine, options, 2 * substitution_tasks(rows, Tiling{b.cols, rows.tile}));
  const bool conjugated = impl().transposed && is_complex(b.dtype) && !run.pretends();
  if (conjugated) conjugate(gathered(b));
  try {
    RightSides sides(run, b, rows, Tiling{b.cols, rows.tile}, true);
    const Where where = stay(impl());
    substitute(run, first_triangle(impl()), sides, where, {});
    substitute(run, second_triangle(impl()), sides, where, {true});
    sides.finish();
    run.wait();
  } catch (...) {
    if (conjugated) conjugate(b);
    throw;
  }
  if (conjugated) conjugate(b);
}

double Factor::logdet() const {
  const std::int64_t count = impl().tiling().count();
  std::vector<double> sums(static_cast<std::size_t>(count));
  const Options options;
  Run run(engine(), options, static_cast<double>(count));
  const Where where = stay(impl());
  for (std::int64_t k = 0; k < count; ++k) {
    const Data diagonal = impl().triangle().read(k, k, {});
    const Data sum = run.add(&sums[static_cast<std::size_t>(k)], 1, 1, 1, DType::float64);
    run.submit(kernels::measure_codelet(dtype()), {{diagonal}, {sum, Access::write}},
               kernels::MeasureParams{kernels::Measure::sum_log_diagonal, {}}, where(k, k, 0));
  }
  run.wait();
  double sum = 0;
  for (const double part : sums) sum += part;
  return 2 * sum;
}

void Factor::inverse_diagonal(std::span<double> out, const Options& options) const {
  const NamedCall named(engine(), "inverse_diagonal");
  const Tiling rows = impl().tiling();
  if (static_cast<std::int64_t>(out.size()) != rows.size)
    fail(Errc::invalid_argument,
         fmt::format("the diagonal has {} elements, and there is room for {}", rows.size,
                     out.size()));
  // A^-1 = T^-H*T^-1, so its diagonal holds the squared lengths of the columns of T^-1.
  std::vector<double> squares(static_cast<std::size_t>(rows.size * rows.count()));
  const double count = static_cast<double>(rows.count());
  Run run(engine(), options, count * (count + 1) * (count + 2) / 6 + count * count);
  const TriangularTiles triangle = first_triangle(impl());
  const Where where = stay(impl());
  // A few sets of columns in turn, so that what isn't needed any more makes room.
  constexpr std::size_t most = 4;
  std::vector<std::unique_ptr<RightSides>> sets;
  for (std::int64_t j = 0; j < rows.count(); ++j) {
    const std::int64_t width = rows.length(j);
    const auto turn = static_cast<std::size_t>(j) % most;
    if (sets.size() <= turn || width != rows.tile) {
      sets.resize(std::max(sets.size(), turn + 1));
      sets[turn] = std::make_unique<RightSides>(run, rows, width, dtype());
    }
    RightSides& sides = *sets[turn];
    sides.set_identity(j);
    substitute(run, triangle, sides, where, {false, j});
    for (std::int64_t i = j; i < rows.count(); ++i) {
      double* const home = &squares[static_cast<std::size_t>(i * rows.size + rows.first(j))];
      const Data sum = run.add(home, width, 1, width, DType::float64);
      run.submit(kernels::measure_codelet(dtype()), {{sides.read(i, 0)}, {sum, Access::write}},
                 kernels::MeasureParams{kernels::Measure::column_squares, {}});
    }
  }
  run.wait();
  for (std::int64_t c = 0; c < rows.size; ++c) {
    double sum = 0;
    for (std::int64_t i = c / rows.tile; i < rows.count(); ++i)
      sum += squares[static_cast<std::size_t>(i * rows.size + c)];
    out[static_cast<std::size_t>(c)] = sum;
  }
}

}  // namespace quadriga::linalg
