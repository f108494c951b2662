// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/factor_unpack.cpp: a factor's triangle written to the caller's memory.
#include "engine/named_call.h"
#include "linalg/check.h"
#include "linalg/factor.h"
#include "linalg/kernels/codelets.h"
#include "linalg/operand_guard.h"
#include "linalg/resident.h"
#include "linalg/view.h"

#include <fmt/format.h>

namespace quadriga::linalg {
namespace {

void clear_strict(const MatrixView& out, Uplo keep, std::int64_t tile) {
  const Tiling tiling{out.rows, tile};
  for (std::int64_t k = 0; k < tiling.count(); ++k) {
    const std::int64_t first = tiling.first(k);
    const std::int64_t length = tiling.length(k);
    clear_triangle(part(out, first, first, length, length), flipped(keep));
    scale(0, beside_diagonal(out, keep, first, length));
  }
}

void check(const Factor& factor, const MatrixView& out) {
  check_output("out", out);
  check_types("the factor", factor.dtype(), "out", out.dtype);
  if (out.rows != factor.order() || out.cols != factor.order())
    fail(Errc::invalid_argument, fmt::format("out is {}; expected the factor's order, {}",
                                             shape_of(out.rows, out.cols), factor.order()));
}

}  // namespace

void Factor::unpack(const MatrixView& out, Other other) const {
  const NamedCall named(engine(), "unpack");
  const Matrix result(out);
  const HostAccess held = guard(engine(), {{&result, Access::update}});
  check(*this, out);
  if (empty(out)) return;
  const FactorTiles& tiles = *impl().tiles;
  const Options options;
  Run run(engine(), options, cholesky_tasks(1));
  const MatrixView home = impl().transposed ? tiles.home().transposed() : tiles.home();
  const bool is_home = tiles.has_home() && same(home, out);
  if (!is_home) require(!tiles.has_home() || !overlap(home, out), "out overlaps the factor");
  const bool clears = other == Other::zero && !run.pretends();
  if (clears && on_device(out))
    submit_clear_other(run, impl().triangle(), out, impl().uplo, is_home);
  if (is_home) bring_home();
  if (clears && !on_device(out)) clear_strict(out, impl().uplo, tile());
  if (is_home) return run.wait();
  const bool by_rows = layout_of(out) == ViewKind::rows;
  const auto target =
      output_tiles(run, by_rows ? out.transposed() : out, impl().tiling(), impl().tiling());
  const Uplo kept = by_rows ? flipped(impl().uplo) : impl().uplo;
  const Triangle to{target.get(), kept};
  const auto op = by_rows == impl().transposed ? Op::none : Op::transpose;
  const std::vector<DeviceId> holders = tiles.holders();
  for (std::int64_t j = 0; j < impl().tiling().count(); ++j) {
    for (std::int64_t i = j; i < impl().tiling().count(); ++i) {
      const auto [from_row, from_col] = impl().triangle().stored(i, j);
      const auto [row, col] = to.stored(i, j);
      SubmitOptions where;
      where.device = holders[tiles.index(from_row, from_col)];
      const Data from = impl().triangle().read(i, j, where);
      kernels::CopyParams params{op, {}};
      if (i == j && clears) {
        params.region.part = kept == Uplo::lower ? kernels::Part::lower : kernels::Part::upper;
        run.submit(kernels::copy_write_codelet(dtype()),
                   {{from}, {target->write(row, col, where), Access::write}}, params, where);
      } else if (i == j) {
        params.region.part = kept == Uplo::lower ? kernels::Part::lower : kernels::Part::upper;
        run.submit(kernels::copy_codelet(dtype()),
                   {{from}, {target->update(row, col, where), Access::update}}, params, where);
      } else {
        run.submit(kernels::copy_write_codelet(dtype()),
                   {{from}, {target->write(row, col, where), Access::write}}, params, where);
      }
      target->final(row, col);
    }
  }
  finish_all(*target);
  run.wait();
}

}  // namespace quadriga::linalg
