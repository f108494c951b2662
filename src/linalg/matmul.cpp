// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/matmul.cpp: products of matrices, tile by tile.
#include "engine/named_call.h"
#include "linalg/call_plan.h"
#include "linalg/check.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/codelets.h"
#include "linalg/operand_guard.h"
#include "linalg/resident.h"
#include "linalg/tiles.h"
#include "linalg/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <functional>
#include <utility>

namespace quadriga::linalg {
namespace {

/// C = alpha*X*Y + beta*C on tiles.
struct TiledProduct {
  Coefficient alpha;
  Coefficient beta;
  Input x;
  Input y;
  std::unique_ptr<Tiles> c;
  CallPlan plan;
  std::int64_t sharing_cores = 0;  ///< That share the work; 0 with accelerators.
  std::int64_t submitted = 0;
  bool allow_tf32 = false;
};

/// On cores the last tiles of C advance together, those with most left to do first, so that no core
/// is left alone with a whole sum.
int priority(const TiledProduct& product, const Product& at, bool last) {
  if (product.sharing_cores == 0) return 0;
  const std::int64_t inner = product.plan.sum.count();
  const std::int64_t left = last ? inner - at.k : inner + 1;
  return static_cast<int>(std::min<std::int64_t>(left, INT_MAX));
}

void submit(Run& run, TiledProduct& product, const Product& at, DeviceId owner) {
  SubmitOptions where;
  where.owner = owner;
  const Tiling& sum = product.plan.sum;
  const Tiling& sum_of_b = product.plan.sum_of_b;
  const std::int64_t tiles = product.c->rows().count() * product.c->cols().count();
  const std::int64_t tiles_left = tiles - product.submitted++ / sum.count();
  where.priority = priority(product, at, tiles_left <= 2 * product.sharing_cores);
  const bool first = at.k == 0;
  const bool overwrites = first && product.beta == Coefficient(0);
  kernels::GemmParams params{product.alpha, first ? product.beta : Coefficient(1), product.x.op,
                             product.y.op};
  params.allow_tf32 = product.allow_tf32;
  const std::int64_t of_b = sum_of_b.holder(sum.first(at.k));
  if (sum.length(at.k) < sum_of_b.length(of_b))
    params.inner = static_cast<std::int32_t>(sum.first(at.k) - sum_of_b.first(of_b));
  const Data x = product.x.read(at.i, at.k, where);
  const Data y = product.y.read(of_b, at.j, where);
  const Data c =
      overwrites ? product.c->write(at.i, at.j, where) : product.c->update(at.i, at.j, where);
  const DType dtype = product.c->dtype();
  run.submit(overwrites ? kernels::gemm_write_codelet(dtype) : kernels::gemm_codelet(dtype),
             {{x}, {y}, {c, overwrites ? Access::write : Access::update}}, params, where);
  if (at.k + 1 == sum.count()) product.c->final(at.i, at.j);
}

/// Devices take turns, so that all of them find work in the window of submitted tasks, and none is
/// idle at the start and takes what another is to do.
void submit_all(Run& run, TiledProduct& product) {
  const DeviceGroup& group = product.plan.group;
  if (group.size() == 0) product.sharing_cores = run.engine().machine().devices.front().cores;
  std::vector<ProductOrder> orders = product_orders(run.engine(), product.plan, product.c->dtype());
  Product next;
  for (bool more = true; more;) {
    more = false;
    for (std::size_t place = 0; place < orders.size(); ++place) {
      if (!orders[place].next(next)) continue;
      submit(run, product, next, group.device(static_cast<std::int64_t>(place)));
      more = true;
    }
  }
}

void check(Engine& engine, const Matrix& a, Op op_a, const Matrix& b, Op op_b, const MatrixView& c,
           const Options& options) {
  check_options(options);
  check_matrix("A", a);
  check_matrix("B", b);
  check_output("C", c);
  check_types("A", a.dtype(), "C", c.dtype);
  check_types("B", b.dtype(), "C", c.dtype);
  const bool turn_a = op_a != Op::none;
  const bool turn_b = op_b != Op::none;
  const std::int64_t m = turn_a ? a.cols() : a.rows();
  const std::int64_t k = turn_a ? a.rows() : a.cols();
  const std::int64_t l = turn_b ? b.cols() : b.rows();
  const std::int64_t n = turn_b ? b.rows() : b.cols();
  if (k != l || m != c.rows || n != c.cols)
    fail(Errc::invalid_argument,
         fmt::format("op(A) is {}, op(B) is {} and C is {}; expected m x k, k x n and m x n",
                     shape_of(m, k), shape_of(l, n), shape_of(c.rows, c.cols)));
  check_no_overlap("A", a, "C", c);
  check_no_overlap("B", b, "C", c);
  check_finite(engine, options, "A", a);
  check_finite(engine, options, "B", b);
}

/// `plan_of(problem, home)`: the plan of C, which has contiguous columns or is its transpose.
using PlanOf = std::function<CallPlan(const Problem& problem, DeviceId home)>;

void multiply(Engine& engine, Coefficient alpha, const Matrix& a, Op op_a, const Matrix& b, Op op_b,
              Coefficient beta, const MatrixView& c, const Options& options,
              const PlanOf& plan_of) {
  const NamedCall named(engine, "matmul");
  const Matrix whole_c(c);
  const HostAccess held = guard(
      engine, {{&a}, {&b}, {&whole_c, beta == Coefficient(0) ? Access::write : Access::update}});
  check(engine, a, op_a, b, op_b, c, options);
  const std::int64_t inner = op_a == Op::none ? a.cols() : a.rows();
  if (empty(c)) return;
  if (inner == 0 || alpha == Coefficient(0)) return scale_anywhere(engine, beta, c);
  Form form_a = form_of(op_a, a.dtype());
  Form form_b = form_of(op_b, b.dtype());
  // C^T = op(B)^T * op(A)^T has contiguous columns.
  const bool by_rows = layout_of(c) == ViewKind::rows;
  Problem problem{Problem::Kind::matmul, c.rows, c.cols, inner, c.dtype};
  problem.accumulate = beta != Coefficient(0);
  if (by_rows) std::swap(problem.m, problem.n);
  CallPlan plan = plan_of(problem, common_device(engine, {&a, &b, &whole_c}));
  Run run(engine, options,
          static_cast<double>(plan.rows.count()) * static_cast<double>(plan.cols.count()) *
              static_cast<double>(plan.sum.count()));
  TiledProduct product{alpha, beta, {}, {}, nullptr, std::move(plan)};
  const Tiling& rows = product.plan.rows;
  const Tiling& cols = product.plan.cols;
  const Tiling& sum = product.plan.sum;
  const Tiling& sum_of_b = product.plan.sum_of_b;
  product.allow_tf32 = allow_tf32(options, c.dtype);
  if (by_rows) {
    form_a.transpose = !form_a.transpose;
    form_b.transpose = !form_b.transpose;
    product.x = input_tiles(run, b, form_b, rows, sum);
    product.y = input_tiles(run, a, form_a, sum_of_b, cols);
    product.c = output_tiles(run, c.transposed(), rows, cols);
  } else {
    product.x = input_tiles(run, a, form_a, rows, sum);
    product.y = input_tiles(run, b, form_b, sum_of_b, cols);
    product.c = output_tiles(run, c, rows, cols);
  }
  submit_all(run, product);
  finish_all(*product.c);
  run.wait();
}

}  // namespace

void matmul(Engine& engine, Coefficient alpha, const Matrix& a, Op op_a, const Matrix& b, Op op_b,
            Coefficient beta, const MatrixView& c, const Options& options) {
  multiply(engine, alpha, a, op_a, b, op_b, beta, c, options,
           [&](const Problem& problem, DeviceId home) {
             return linalg::plan(engine, problem, home, options);
           });
}

void matmul_by(Engine& engine, const Matrix& a, const Matrix& b, Coefficient beta,
               const MatrixView& c, const Options& options, CallPlan plan) {
  multiply(engine, 1, a, Op::none, b, Op::none, beta, c, options,
           [&](const Problem&, DeviceId) { return std::move(plan); });
}

}  // namespace quadriga::linalg
