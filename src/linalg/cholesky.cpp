// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky.cpp: the Cholesky factor written to the caller's memory.
#include "linalg/cholesky.h"

#include "engine/named_call.h"
#include "linalg/call_plan.h"
#include "linalg/check.h"
#include "linalg/kernels/codelets.h"
#include "linalg/operand_guard.h"
#include "linalg/resident.h"
#include "linalg/view.h"

#include <fmt/format.h>

namespace quadriga::linalg {
namespace {

/// Sets the other triangle to zero: tiles off the diagonal, or what tiles on it have of it.
void clear_other(const MatrixView& out, Uplo uplo, std::int64_t tile, bool on_diagonal) {
  const Tiling tiling{out.rows, tile};
  for (std::int64_t k = 0; k < tiling.count(); ++k) {
    const std::int64_t first = tiling.first(k);
    const std::int64_t length = tiling.length(k);
    if (on_diagonal)
      clear_triangle(part(out, first, first, length, length), flipped(uplo));
    else
      scale(0, beside_diagonal(out, uplo, first, length));
  }
}

void check(Engine& engine, const Matrix& a, const MatrixView& out, const Options& options) {
  check_options(options);
  check_matrix("A", a);
  check_square("A", a);
  check_output("out", out);
  check_types("A", a.dtype(), "out", out.dtype);
  if (out.rows != a.rows() || out.cols != a.cols())
    fail(Errc::invalid_argument, fmt::format("A is {} and out is {}", shape_of(a.rows(), a.cols()),
                                             shape_of(out.rows, out.cols)));
  if (a.source() || !same(a.view(), out)) check_no_overlap("A", a, "out", out);
  check_finite(engine, options, "A", a);
}

}  // namespace

void cholesky(Engine& engine, const Matrix& a, const MatrixView& out, Uplo uplo, Other other,
              const Options& options) {
  const NamedCall named(engine, "cholesky");
  const Matrix result(out);
  const HostAccess held = guard(engine, {{&a}, {&result, Access::update}});
  check(engine, a, out, options);
  if (empty(out)) return;
  const bool in_place = !a.source() && same(a.view(), out);
  Problem problem{Problem::Kind::cholesky, out.rows, out.rows, out.rows, out.dtype};
  problem.in_place = in_place;
  const CallPlan plan =
      linalg::plan(engine, problem, common_device(engine, {&a, &result}), options);
  const Tiling& tiling = plan.rows;
  Run run(engine, options, cholesky_tasks(tiling.count()) + static_cast<double>(tiling.count()));
  const bool clears = other == Other::zero && !run.pretends();
  const bool transposed = layout_of(out) == ViewKind::rows;
  const auto tiles = output_tiles(run, transposed ? out.transposed() : out, tiling, tiling);
  const Triangle triangle{tiles.get(), transposed ? flipped(uplo) : uplo};
  Fill fill;
  std::unique_ptr<TriangleFiller> filler;
  if (in_place) {
    if (clears && !on_device(out)) clear_other(out, uplo, tiling.tile, true);
  } else {
    filler = std::make_unique<TriangleFiller>(run, a, uplo, *tiles, transposed,
                                              other == Other::zero ? Rest::zero : Rest::leave);
    fill = [&](std::int64_t i, std::int64_t j, SubmitOptions where) { (*filler)(i, j, where); };
  }
  if (clears && on_device(out)) submit_clear_other(run, triangle, out, uplo, in_place);
  submit_cholesky(run, triangle, plan.triangle, plan.group, fill);
  finish_all(*tiles);
  if (clears && !on_device(out)) clear_other(out, uplo, tiling.tile, false);
  run.wait();
}

}  // namespace quadriga::linalg
