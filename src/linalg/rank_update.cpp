// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/rank_update.cpp: a triangle of A*A^T or A*A^H: syrk and herk.
#include "engine/named_call.h"
#include "linalg/call_plan.h"
#include "linalg/check.h"
#include "linalg/cholesky.h"
#include "linalg/kernels/codelets.h"
#include "linalg/operand_guard.h"
#include "linalg/resident.h"
#include "linalg/view.h"

#include <fmt/format.h>

namespace quadriga::linalg {
namespace {

/// A triangle of C = alpha*X*X^T + beta*C, or with X^H.
struct RankUpdate {
  Coefficient alpha;
  Coefficient beta;
  bool hermitian = false;
  Input x;
  std::unique_ptr<Tiles> c;
  Uplo uplo = Uplo::lower;  ///< Of C as its tiles store it.
  std::int64_t inner = 0;
  bool allow_tf32 = false;

  /// What is applied to the stored tile of X where X^T or X^H is meant.
  Op turned() const noexcept {
    if (x.op != Op::none) return Op::none;
    return hermitian ? Op::conjugate : Op::transpose;
  }
};

void submit(Run& run, const RankUpdate& update, std::int64_t i, std::int64_t j, std::int64_t k,
            SubmitOptions where) {
  const bool lower = update.uplo == Uplo::lower;
  const auto [row, col] = lower ? std::pair(i, j) : std::pair(j, i);
  const Coefficient beta = k == 0 ? update.beta : Coefficient(1);
  const DType dtype = update.c->dtype();
  const Data left = update.x.read(row, k, where);
  const Data c = update.c->update(row, col, where);
  if (i == j) {
    const kernels::SyrkParams params{update.alpha, beta, update.uplo, update.x.op,
                                     update.allow_tf32};
    run.submit(update.hermitian ? kernels::herk_codelet(dtype) : kernels::syrk_codelet(dtype),
               {{left}, {c, Access::update}}, params, where);
  } else {
    const kernels::GemmParams params{update.alpha, beta, update.x.op, update.turned(),
                                     update.allow_tf32};
    run.submit(kernels::gemm_codelet(dtype),
               {{left}, {update.x.read(col, k, where)}, {c, Access::update}}, params, where);
  }
  if (k + 1 == update.inner) update.c->final(row, col);
}

/// Blocks of columns of C stay, X streams past.
void submit_all(Run& run, const RankUpdate& update, const CallPlan& plan) {
  const CholeskyShape& shape = plan.triangle;
  std::int64_t first = 0;
  for (const std::int64_t width : cholesky_blocks(shape)) {
    for (std::int64_t k = 0; k < update.inner; ++k)
      for (std::int64_t i = first; i < shape.tiles; ++i)
        for (std::int64_t j = first; j < std::min(i + 1, first + width); ++j) {
          SubmitOptions where;
          where.owner = plan.group.owner(cholesky_owner(shape, i, j));
          submit(run, update, i, j, k, where);
        }
    first += width;
  }
}

void check(Engine& engine, const Matrix& a, Op op, const MatrixView& c, const Options& options) {
  check_options(options);
  check_matrix("A", a);
  check_output("C", c);
  check_square("C", c);
  check_types("A", a.dtype(), "C", c.dtype);
  const std::int64_t order = op == Op::none ? a.rows() : a.cols();
  if (order != c.rows)
    fail(Errc::invalid_argument,
         fmt::format("C is {}; expected order {}, as A gives", shape_of(c.rows, c.cols), order));
  check_no_overlap("A", a, "C", c);
  check_finite(engine, options, "A", a);
}

void rank_update(Engine& engine, bool hermitian, Coefficient alpha, const Matrix& a, Op op,
                 Coefficient beta, const MatrixView& c, Uplo uplo, const Options& options) {
  const NamedCall named(engine, hermitian ? "herk" : "syrk");
  const Matrix result(c);
  const HostAccess held = guard(engine, {{&a}, {&result, Access::update}});
  check(engine, a, op, c, options);
  const std::int64_t inner = op == Op::none ? a.cols() : a.rows();
  if (empty(c)) return;
  if (inner == 0 || alpha == Coefficient(0)) return scale_triangle_anywhere(engine, beta, c, uplo);
  const CallPlan plan = plan_like_factorization(
      engine, {Problem::Kind::cholesky, c.rows, c.rows, inner, c.dtype}, options);
  const Tiling& tiling = plan.rows;
  const Tiling& sum = plan.sum;
  const auto count = static_cast<double>(tiling.count());
  Run run(engine, options, count * (count + 1) / 2 * static_cast<double>(sum.count()));
  RankUpdate update{alpha, beta, hermitian, {}, nullptr, uplo, sum.count()};
  update.allow_tf32 = allow_tf32(options, c.dtype);
  Form form = form_of(op, a.dtype());
  const bool by_rows = layout_of(c) == ViewKind::rows;
  if (by_rows) {
    // C^T = X*X^T as well, but conj(X)*conj(X)^H.
    update.uplo = flipped(uplo);
    form.conjugate = form.conjugate != (hermitian && is_complex(a.dtype()));
  }
  update.x = input_tiles(run, a, form, tiling, sum,
                         hermitian ? Accepts::none_or_adjoint : Accepts::none_or_transpose);
  update.c = output_tiles(run, by_rows ? c.transposed() : c, tiling, tiling);
  submit_all(run, update, plan);
  finish_all(*update.c);
  run.wait();
}

}  // namespace

void syrk(Engine& engine, Coefficient alpha, const Matrix& a, Op op, Coefficient beta,
          const MatrixView& c, Uplo uplo, const Options& options) {
  require(op != Op::conjugate || !is_complex(c.dtype),
          "syrk takes A or its transpose; herk takes the conjugate transpose");
  rank_update(engine, false, alpha, a, op, beta, c, uplo, options);
}

void herk(Engine& engine, double alpha, const Matrix& a, Op op, double beta, const MatrixView& c,
          Uplo uplo, const Options& options) {
  require(op != Op::transpose || !is_complex(c.dtype),
          "herk takes A or its conjugate transpose; syrk takes the transpose");
  rank_update(engine, true, alpha, a, op, beta, c, uplo, options);
}

}  // namespace quadriga::linalg
