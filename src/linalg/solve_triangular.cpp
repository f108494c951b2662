// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/solve_triangular.cpp: triangular systems with many right-hand sides.
#include "engine/named_call.h"
#include "linalg/call_plan.h"
#include "linalg/check.h"
#include "linalg/cholesky.h"
#include "linalg/operand_guard.h"
#include "linalg/resident.h"
#include "linalg/substitution.h"
#include "linalg/view.h"

#include <fmt/format.h>

namespace quadriga::linalg {

SingularMatrix::SingularMatrix(std::int64_t index, std::source_location where)
    : Error(Errc::invalid_argument,
            fmt::format("singular matrix: element {} of its diagonal is zero", index), where),
      index_(index) {}

namespace {

void check_diagonal(Engine& engine, const MatrixView& a) {
  if (on_device(a)) {
    if (const std::int64_t i = zero_on_diagonal(engine, a); i >= 0) throw SingularMatrix(i);
    return;
  }
  for (std::int64_t i = 0; i < a.rows; ++i)
    if (is_zero(part(a, i, i, 1, 1))) throw SingularMatrix(i);
}

void check(Engine& engine, const Matrix& a, bool unit, const MatrixView& b,
           const Options& options) {
  check_options(options);
  check_matrix("A", a);
  check_square("A", a);
  check_output("B", b);
  check_types("A", a.dtype(), "B", b.dtype);
  if (a.rows() != b.rows)
    fail(Errc::invalid_argument, fmt::format("A is {} and B is {}", shape_of(a.rows(), a.cols()),
                                             shape_of(b.rows, b.cols)));
  check_no_overlap("A", a, "B", b);
  check_finite(engine, options, "A", a);
  check_finite(engine, options, "B", b);
  const bool pretends = engine.options().virtual_clock && !engine.options().compute;
  if (!unit && !a.source() && !pretends) check_diagonal(engine, a.view());
}

/// Columns of B are shared among the devices; A streams to all of them.
Where by_columns(const DeviceGroup& group, std::int64_t columns) {
  return [group, columns](std::int64_t, std::int64_t, std::int64_t c) {
    SubmitOptions where;
    if (group.size() > 0) where.owner = group.device(c * group.size() / columns);
    return where;
  };
}

}  // namespace

void solve_triangular(Engine& engine, const Matrix& a, Uplo uplo, Op op, bool unit_diagonal,
                      const MatrixView& b, const Options& options) {
  const NamedCall named(engine, "solve_triangular");
  const Matrix result(b);
  const HostAccess held = guard(engine, {{&a}, {&result, Access::update}});
  check(engine, a, unit_diagonal, b, options);
  if (empty(b)) return;
  const CallPlan plan = plan_like_factorization(
      engine, {Problem::Kind::cholesky, b.rows, b.cols, b.rows, b.dtype}, options);
  const Tiling& rows = plan.rows;
  const Tiling& cols = plan.cols;
  Run run(engine, options, substitution_tasks(rows, cols));
  const Input input = input_tiles(run, a, form_of(op, a.dtype()), rows, rows);
  TriangularTiles triangle;
  triangle.rows = rows;
  triangle.lower = (uplo == Uplo::lower) != (input.transposed != (op != Op::none));
  triangle.forward = (uplo == Uplo::lower) == (op == Op::none);
  triangle.unit = unit_diagonal;
  triangle.op = input.op;
  triangle.read = [&](std::int64_t i, std::int64_t j, SubmitOptions where) {
    return triangle.lower ? input.tiles->read(i, j, where) : input.tiles->read(j, i, where);
  };
  RightSides sides(run, b, rows, cols, input.op == Op::conjugate);
  substitute(run, triangle, sides, by_columns(plan.group, cols.count()), {true});
  sides.finish();
  run.wait();
}

}  // namespace quadriga::linalg
