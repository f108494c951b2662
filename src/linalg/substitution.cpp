// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/substitution.cpp: tasks of triangular solves; each tile of B gets its updates in one
// order.
#include "linalg/substitution.h"

#include "linalg/kernels/codelets.h"
#include "linalg/view.h"

namespace quadriga::linalg {
namespace {

/// What is applied to B^T from the right where `op` is applied to B from the left.
Op turned(Op op) noexcept { return op == Op::none ? Op::transpose : Op::none; }

void divide(Run& run, const TriangularTiles& triangle, RightSides& sides, std::int64_t k,
            const Where& where) {
  const kernels::TrsmParams params{{1, 0},
                                   sides.turned() ? kernels::Side::right : kernels::Side::left,
                                   triangle.lower ? Uplo::lower : Uplo::upper,
                                   sides.turned() ? turned(triangle.op) : triangle.op,
                                   triangle.unit ? kernels::Diag::unit : kernels::Diag::non_unit};
  for (std::int64_t c = 0; c < sides.columns(); ++c) {
    const SubmitOptions place = where(k, k, c);
    run.submit(kernels::trsm_codelet(sides.dtype()),
               {{triangle.read(k, k, place)}, {sides.update(k, c, place), Access::update}}, params,
               place);
  }
}

/// B(i) -= E(i,k)*B(k).
void subtract(Run& run, const TriangularTiles& triangle, RightSides& sides, std::int64_t i,
              std::int64_t k, const Where& where) {
  const auto [large, small] = std::pair(std::max(i, k), std::min(i, k));
  kernels::GemmParams params{{-1, 0}, {1, 0}, triangle.op, Op::none};
  if (sides.turned()) {
    params.op_a = Op::none;
    params.op_b = turned(triangle.op);
  }
  for (std::int64_t c = 0; c < sides.columns(); ++c) {
    const SubmitOptions place = where(large, small, c);
    Data left = triangle.read(large, small, place);
    Data right = sides.read(k, c, place);
    if (sides.turned()) std::swap(left, right);
    run.submit(kernels::gemm_codelet(sides.dtype()),
               {{left}, {right}, {sides.update(i, c, place), Access::update}}, params, place);
  }
}

}  // namespace

RightSides::RightSides(Run& run, const MatrixView& view, Tiling rows, Tiling cols, bool needs_plain)
    : run_(run), rows_(rows), cols_(cols), dtype_(view.dtype) {
  turned_ = layout_of(view) == ViewKind::rows && !(needs_plain && is_complex(view.dtype));
  if (turned_)
    tiles_ = output_tiles(run, view.transposed(), cols, rows);
  else
    tiles_ = output_tiles(run, view, rows, cols);
}

RightSides::RightSides(Run& run, Tiling rows, std::int64_t width, DType dtype)
    : run_(run), rows_(rows), cols_{width, std::max<std::int64_t>(width, 1)}, dtype_(dtype) {
  for (std::int64_t i = 0; i < rows.count(); ++i)
    loose_.push_back(run.add(rows.length(i), width, dtype));
}

void RightSides::set_identity(std::int64_t column) {
  for (std::int64_t i = column; i < rows_.count(); ++i) {
    const double on_diagonal = i == column ? 1 : 0;
    const kernels::SetParams params{{}, {on_diagonal, 0}, {}};
    run_.submit(kernels::set_write_codelet(dtype_),
                {{loose_[static_cast<std::size_t>(i)], Access::write}}, params);
  }
}

Data RightSides::read(std::int64_t i, std::int64_t c, SubmitOptions where) {
  if (!tiles_) return loose_[static_cast<std::size_t>(i)];
  return turned_ ? tiles_->read(c, i, where) : tiles_->read(i, c, where);
}

Data RightSides::update(std::int64_t i, std::int64_t c, SubmitOptions where) {
  if (!tiles_) return loose_[static_cast<std::size_t>(i)];
  return turned_ ? tiles_->update(c, i, where) : tiles_->update(i, c, where);
}

void RightSides::final(std::int64_t i, std::int64_t c) {
  if (tiles_) turned_ ? tiles_->final(c, i) : tiles_->final(i, c);
}

void RightSides::finish() {
  if (tiles_) finish_all(*tiles_);
}

void substitute(Run& run, const TriangularTiles& triangle, RightSides& sides, const Where& where,
                SubstitutionRange range) {
  const std::int64_t count = triangle.rows.count();
  for (std::int64_t step = range.first; step < count; ++step) {
    const std::int64_t k = triangle.forward ? step : count - 1 - step;
    divide(run, triangle, sides, k, where);
    for (std::int64_t c = 0; range.last && c < sides.columns(); ++c) sides.final(k, c);
    for (std::int64_t later = step + 1; later < count; ++later)
      subtract(run, triangle, sides, triangle.forward ? later : count - 1 - later, k, where);
  }
}

double substitution_tasks(const Tiling& rows, const Tiling& cols) noexcept {
  const auto count = static_cast<double>(rows.count());
  return count * (count + 1) / 2 * static_cast<double>(cols.count());
}

}  // namespace quadriga::linalg
