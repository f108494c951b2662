// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky_tiles.cpp: the tasks of a tiled Cholesky factorization, and filling its
// tiles.
#include "linalg/check.h"
#include "linalg/cholesky.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/codelets.h"
#include "linalg/resident.h"
#include "linalg/view.h"

#include <algorithm>
#include <cmath>

namespace quadriga::linalg {
namespace {

constexpr Coefficient one{1, 0};
constexpr Coefficient minus_one{-1, 0};

/// Submits the steps of one factorization.
class Steps {
 public:
  Steps(Run& run, const Triangle& triangle, const Fill& fill, const DeviceGroup& group)
      : run_(run),
        triangle_(triangle),
        fill_(fill),
        group_(group),
        divides_(divides(run.engine(), run.options())) {
    const std::int64_t count = triangle.tiles->rows().count();
    if (fill_) filled_.resize(static_cast<std::size_t>(count * (count + 1) / 2));
  }

  void submit(const Step& step) {
    SubmitOptions where;
    where.priority = step.priority;
    where.owner = group_.owner(step.owner);
    if (fill_) {
      auto filled =
          filled_[static_cast<std::size_t>(step.i) * (static_cast<std::size_t>(step.i) + 1) / 2 +
                  static_cast<std::size_t>(step.j)];
      if (!filled) fill_(step.i, step.j, where);
      filled = true;
    }
    switch (step.kind) {
      case Step::Kind::potrf:
        return potrf(step, where);
      case Step::Kind::trsm:
        return trsm(step, where);
      case Step::Kind::syrk:
        return syrk(step, where);
      case Step::Kind::gemm:
        return gemm(step, where);
    }
  }

 private:
  DType dtype() const noexcept { return triangle_.tiles->dtype(); }
  void final(std::int64_t i, std::int64_t j) {
    const auto [row, col] = triangle_.stored(i, j);
    triangle_.tiles->final(row, col);
  }

  /// Whether cores may divide a step: those on the diagonal, on which all waits, and those of the
  /// last columns, of which there are fewer at once. They are a third of the columns, and do 1/27
  /// of the work: a finer grid, which may be slower, costs little. By the grid alone, so that the
  /// bits don't depend on the number of cores.
  bool fine(const Step& step) const {
    constexpr std::int64_t few = 4;
    const std::int64_t count = triangle_.tiles->rows().count();
    if (!divides_) return false;
    return step.kind == Step::Kind::potrf || count - step.k <= std::max(few, count / 3);
  }

  void potrf(const Step& step, SubmitOptions where) {
    const kernels::PotrfParams params{triangle_.tiles->rows().first(step.k), triangle_.uplo,
                                      fine(step)};
    run_.submit(kernels::potrf_codelet(dtype()),
                {{triangle_.update(step.k, step.k, where), Access::update}}, params, where);
    final(step.k, step.k);
  }

  /// L(i,k) = A(i,k)*L(k,k)^-H, or U(k,i) = U(k,k)^-H*A(k,i).
  void trsm(const Step& step, SubmitOptions where) {
    const kernels::TrsmParams params{one,
                                     triangle_.lower() ? kernels::Side::right : kernels::Side::left,
                                     triangle_.uplo,
                                     Op::conjugate,
                                     kernels::Diag::non_unit,
                                     fine(step)};
    const Data diagonal = triangle_.read(step.k, step.k, where);
    run_.submit(kernels::trsm_codelet(dtype()),
                {{diagonal}, {triangle_.update(step.i, step.k, where), Access::update}}, params,
                where);
    final(step.i, step.k);
  }

  void syrk(const Step& step, SubmitOptions where) {
    const kernels::SyrkParams params{minus_one,      one,
                                     triangle_.uplo, triangle_.lower() ? Op::none : Op::conjugate,
                                     false,          fine(step)};
    const Data row = triangle_.read(step.i, step.k, where);
    run_.submit(kernels::herk_codelet(dtype()),
                {{row}, {triangle_.update(step.i, step.i, where), Access::update}}, params, where);
  }

  void gemm(const Step& step, SubmitOptions where) {
    const bool lower = triangle_.lower();
    const kernels::GemmParams params{
        minus_one, one,       lower ? Op::none : Op::conjugate, lower ? Op::conjugate : Op::none,
        false,     fine(step)};
    Data left = triangle_.read(step.i, step.k, where);
    Data right = triangle_.read(step.j, step.k, where);
    if (!lower) std::swap(left, right);
    run_.submit(kernels::gemm_codelet(dtype()),
                {{left}, {right}, {triangle_.update(step.i, step.j, where), Access::update}},
                params, where);
  }

  Run& run_;
  const Triangle& triangle_;
  const Fill& fill_;
  const DeviceGroup& group_;
  const bool divides_;
  std::vector<bool> filled_;
};

}  // namespace

CholeskyShape cholesky_shape(const Engine& engine, const DeviceGroup& group, std::int64_t order,
                             std::int64_t tile, DType dtype) {
  const double b = static_cast<double>(tile);
  const auto seconds = [&](const kernels::Names& names) {
    return kernel_seconds(engine, group, names[kernels::type_index(dtype)], b, b * b * b);
  };
  CholeskyShape shape;
  shape.tiles = Tiling{order, tile}.count();
  shape.devices = std::max<std::int64_t>(1, group.size());
  shape.places = std::max(shape.devices, static_cast<std::int64_t>(group.places.size()));
  if (group.size() > 0)
    shape.memory = std::max<std::int64_t>(
        3, group.tiles(static_cast<std::size_t>(tile * tile) * size_of(dtype)));
  shape.potrf_seconds = seconds(kernels::potrf_names);
  shape.trsm_seconds = seconds(kernels::trsm_names);
  shape.syrk_seconds = seconds(kernels::syrk_names);
  shape.gemm_seconds = seconds(kernels::gemm_names);
  return shape;
}

void submit_clear_other(Run& run, const Triangle& triangle, const MatrixView& out, Uplo uplo,
                        bool in_place) {
  const Tiling& tiling = triangle.tiles->rows();
  const kernels::SetParams params{{}, {}, {strict_other(triangle.uplo), 0}};
  SubmitOptions where;
  where.owner = out.device;
  for (std::int64_t k = 0; k < tiling.count(); ++k) {
    submit_clear(run, beside_diagonal(out, uplo, tiling.first(k), tiling.length(k)),
                 kernels::Part::all, tiling.tile);
    if (in_place)
      run.submit(kernels::set_codelet(out.dtype), {{triangle.update(k, k, where), Access::update}},
                 params, where);
  }
}

double cholesky_tasks(std::int64_t tiles) noexcept {
  const auto count = static_cast<double>(tiles);
  return count * (count + 1) * (count + 2) / 6;
}

void submit_cholesky(Run& run, const Triangle& triangle, const CholeskyShape& shape,
                     const DeviceGroup& group, const Fill& fill) {
  Steps steps(run, triangle, fill, group);
  cholesky_order(shape, [&](const Step& step) { steps.submit(step); });
}

TriangleFiller::TriangleFiller(Run& run, const Matrix& a, Uplo uplo, Tiles& to, bool transposed,
                               Rest rest)
    : run_(run), stored_(transposed ? flipped(uplo) : uplo), to_(to), rest_(rest) {
  const ViewKind layout = a.source() ? ViewKind::strided : layout_of(a.view());
  if (layout != ViewKind::strided) {
    const bool by_rows = layout == ViewKind::rows;
    turned_ = by_rows != transposed;
    const MatrixView view = by_rows ? a.view().transposed() : a.view();
    from_ = std::make_unique<HomeTiles>(run, view, to.rows(), to.cols());
    return;
  }
  origin_ = std::make_shared<Origin>();
  origin_->source = a.source();
  // A symmetric matrix is its own transpose.
  origin_->transposed =
      transposed && !(a.source() && a.source()->hermitian && !is_complex(a.dtype()));
  origin_->check_finite = run.options().check_finite;
  if (!a.source()) origin_->view = gathered(transposed ? a.view().transposed() : a.view());
  run.keep(origin_);
  order_ = run.add(&home_of_order_, 1, 1, 1, DType::bytes);
}

void TriangleFiller::operator()(std::int64_t i, std::int64_t j, SubmitOptions where) {
  const auto [row, col] = stored_ == Uplo::lower ? std::pair(i, j) : std::pair(j, i);
  const bool diagonal = i == j;
  const bool restricted = diagonal && rest_ != Rest::any;
  if (from_) {
    const Data target = restricted && rest_ == Rest::leave ? to_.update(row, col, where)
                                                           : to_.write(row, col, where);
    const Data from = turned_ ? from_->read(col, row, where) : from_->read(row, col, where);
    return copy(from, target, turned_ ? Op::transpose : Op::none, diagonal, where);
  }
  if (!restricted) return gather(row, col, to_.write(row, col, where), where);
  const Data whole = run_.add(to_.rows().length(row), to_.cols().length(col), to_.dtype());
  gather(row, col, whole, where);
  const Data target =
      rest_ == Rest::leave ? to_.update(row, col, where) : to_.write(row, col, where);
  copy(whole, target, Op::none, true, where);
}

void TriangleFiller::gather(std::int64_t row, std::int64_t col, Data target, SubmitOptions where) {
  const MoveParams params{origin_.get(), to_.rows().first(row), to_.cols().first(col)};
  if (origin_->source) return submit_compute(run_, params, target, where);
  where.owner = where.device = no_device;  // it runs on the host
  run_.submit(gather_codelet(), {{target, Access::write}, {order_}}, params, where);
}

void TriangleFiller::copy(Data from, Data target, Op op, bool diagonal, SubmitOptions where) {
  const bool restricted = diagonal && rest_ != Rest::any;
  const bool lower = stored_ == Uplo::lower;
  kernels::CopyParams params{op, {}};
  if (restricted) params.region.part = lower ? kernels::Part::lower : kernels::Part::upper;
  if (restricted && rest_ == Rest::leave)
    return run_.submit(kernels::copy_codelet(to_.dtype()), {{from}, {target, Access::update}},
                       params, where);
  run_.submit(kernels::copy_write_codelet(to_.dtype()), {{from}, {target, Access::write}}, params,
              where);
}

}  // namespace quadriga::linalg
