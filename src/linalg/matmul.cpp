// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/matmul.cpp: products of matrices, tile by tile.
#include "linalg/check.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/codelets.h"
#include "linalg/order.h"
#include "linalg/product_plan.h"
#include "linalg/resident.h"
#include "linalg/team.h"
#include "linalg/tiles.h"
#include "linalg/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>

namespace quadriga::linalg {
namespace {

/// C = alpha*X*Y + beta*C on tiles.
struct TiledProduct {
  Scalar alpha;
  Scalar beta;
  Input x;
  Input y;
  std::unique_ptr<Tiles> c;
  ProductPlan plan;
  std::int64_t inner = 0;          ///< Tiles of A along the sum.
  std::int64_t sharing_cores = 0;  ///< That share the work; 0 with accelerators.
  std::int64_t submitted = 0;
  bool allow_tf32 = false;
};

kernels::Scalar plain(Scalar value) noexcept { return {value.real, value.imag}; }

/// On cores the last tiles of C advance together, those with most left to do first, so that no core
/// is left alone with a whole sum.
int priority(const TiledProduct& product, const Product& at, bool last) {
  if (product.sharing_cores == 0) return 0;
  const std::int64_t left = last ? product.inner - at.k : product.inner + 1;
  return static_cast<int>(std::min<std::int64_t>(left, INT_MAX));
}

void submit(Run& run, TiledProduct& product, const Product& at, DeviceId owner) {
  SubmitOptions where;
  where.owner = owner;
  const std::int64_t tiles = product.c->rows().count() * product.c->cols().count();
  const std::int64_t tiles_left = tiles - product.submitted++ / product.inner;
  where.priority = priority(product, at, tiles_left <= 2 * product.sharing_cores);
  const bool first = at.k == 0;
  const bool overwrites = first && product.beta == Scalar(0);
  const std::int64_t steps = product.plan.steps;
  kernels::GemmParams params{plain(product.alpha), plain(first ? product.beta : Scalar(1)),
                             product.x.op, product.y.op};
  params.allow_tf32 = product.allow_tf32;
  if (steps > 1) params.inner = static_cast<std::int32_t>(at.k % steps * product.plan.inner);
  const Data x = product.x.read(at.i, at.k, where);
  const Data y = product.y.read(at.k / steps, at.j, where);
  const Data c =
      overwrites ? product.c->write(at.i, at.j, where) : product.c->update(at.i, at.j, where);
  const DType dtype = product.c->dtype();
  run.submit(overwrites ? kernels::gemm_write_codelet(dtype) : kernels::gemm_codelet(dtype),
             {{x}, {y}, {c, overwrites ? Access::write : Access::update}}, params, where);
  if (at.k + 1 == product.inner) product.c->finish(at.i, at.j);
}

ProductShape shape_for(const Team& team, const TiledProduct& product, Range rows, Range cols,
                       double load_ratio) {
  const std::int64_t tile = product.c->rows().tile;
  const auto bytes = static_cast<std::size_t>(tile * tile) * size_of(product.c->dtype());
  ProductShape shape{rows, cols, product.inner, 0, load_ratio};
  if (team.size() > 0) shape.memory = std::max<std::int64_t>(1, team.tiles(bytes));
  return shape;
}

double load_ratio(Run& run, const Team& team, std::int64_t tile, DType dtype) {
  if (team.size() == 0) return 0;
  const double order = static_cast<double>(tile);
  const double seconds =
      kernel_seconds(run.engine(), team, kernels::gemm_names[kernels::type_index(dtype)], order,
                     order * order * order);
  return order * order * static_cast<double>(size_of(dtype)) * team.seconds_a_byte / seconds;
}

/// What one device does.
struct Part {
  ProductOrder order;
  DeviceId owner;
  std::vector<Product> stage;
  std::size_t next = 0;
  bool over = false;
};

/// Devices of a row of the grid need the same tiles of A, those of a column the same of B: each
/// begins elsewhere, fetches from the host what it comes to first and gets the rest from the
/// others.
void turn(std::vector<Product>& products, Range rows, Range cols, const Grid& grid,
          std::int64_t place) {
  const std::int64_t down = rows.size() * (place % grid.cols) / grid.cols;
  const std::int64_t right = cols.size() * (place / grid.cols) / grid.rows;
  const auto turned = [](std::int32_t index, Range range, std::int64_t by) {
    return static_cast<std::int32_t>(range.begin + (index - range.begin + by) % range.size());
  };
  for (Product& product : products) {
    product.i = turned(product.i, rows, down);
    product.j = turned(product.j, cols, right);
  }
}

std::vector<Part> parts_of(Run& run, const Team& team, const TiledProduct& product) {
  const std::int64_t rows = product.c->rows().count();
  const std::int64_t cols = product.c->cols().count();
  const std::int64_t count = std::max<std::int64_t>(1, team.size());
  const Grid grid = product_grid(count, rows, cols);
  const double ratio = load_ratio(run, team, product.c->rows().tile, product.c->dtype());
  std::vector<Part> parts;
  for (std::int64_t p = 0; p < count; ++p) {
    const Range down = share(rows, grid.rows, p / grid.cols);
    const Range right = share(cols, grid.cols, p % grid.cols);
    const ProductPlan& plan = product.plan;
    const bool is_whole = plan.listed || plan.together > 0;
    Part part{
        ProductOrder(is_whole ? ProductShape{} : shape_for(team, product, down, right, ratio)),
        team.device(p),
        {}};
    if (plan.together > 0) {
      panel_products({down, right, product.inner, plan.at_start, plan.together}, part.stage);
    } else if (plan.listed) {
      ListShape shape = plan.times;
      shape.rows = down;
      shape.cols = right;
      list_products(shape, part.stage);
      turn(part.stage, down, right, grid, p);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Where all operands lie in one device's memory, that device alone, or all devices, whichever is
/// faster by the rates; the plan goes with it.
Team choose_team(const Engine& engine, DeviceId home, const Problem& problem,
                 const Options& options, ProductPlan& plan) {
  const Team all = team_of(engine);
  if (home == no_device) {
    plan = plan_product(engine, all, problem, options);
    return all;
  }
  const Team alone = team_at(home);
  plan = plan_product(engine, alone, problem, options);
  if (all.size() < 2 || !plan.listed) return alone;
  const Team fed = fed_from(engine, all, home);
  const ProductPlan shared = plan_product(engine, fed, problem, options);
  if (!shared.listed || shared.seconds >= plan.seconds) return alone;
  plan = shared;
  return fed;
}

/// Devices take turns, so that all of them find work in the window of submitted tasks.
void submit_all(Run& run, TiledProduct& product, const Team& team) {
  if (team.size() == 0) product.sharing_cores = run.engine().machine().devices.front().cores;
  std::vector<Part> parts = parts_of(run, team, product);
  constexpr std::size_t turn = 16;
  for (bool more = true; more;) {
    more = false;
    for (Part& part : parts) {
      for (std::size_t count = 0; count < turn && !part.over; ++count) {
        if (part.next == part.stage.size()) {
          part.over = !part.order.next(part.stage);
          part.next = 0;
          if (part.over) break;
        }
        submit(run, product, part.stage[part.next++], part.owner);
      }
      more |= !part.over;
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
         fmt::format("a product of {} and {} does not make C, which is {}", shape_of(m, k),
                     shape_of(l, n), shape_of(c.rows, c.cols)));
  check_no_overlap("A", a, "C", c);
  check_no_overlap("B", b, "C", c);
  check_finite(engine, options, "A", a);
  check_finite(engine, options, "B", b);
}

}  // namespace

void matmul(Engine& engine, Scalar alpha, const Matrix& a, Op op_a, const Matrix& b, Op op_b,
            Scalar beta, const MatrixView& c, const Options& options) {
  check(engine, a, op_a, b, op_b, c, options);
  const std::int64_t inner = op_a == Op::none ? a.cols() : a.rows();
  if (empty(c)) return;
  if (inner == 0 || alpha == Scalar(0)) return scale_anywhere(engine, beta, c);
  Form form_a = form_of(op_a, a.dtype());
  Form form_b = form_of(op_b, b.dtype());
  // C^T = op(B)^T * op(A)^T has contiguous columns.
  const bool by_rows = layout_of(c) == Layout::rows;
  Problem problem{Problem::Kind::matmul, c.rows, c.cols, inner, c.dtype};
  problem.accumulate = beta != Scalar(0);
  if (by_rows) std::swap(problem.m, problem.n);
  const Matrix whole_c(c);
  ProductPlan plan;
  const Team team =
      choose_team(engine, common_device(engine, {&a, &b, &whole_c}), problem, options, plan);
  const Cut rows{problem.m, plan.rows};
  const Cut cols{problem.n, plan.cols};
  const Cut sum{inner, plan.inner};
  const Cut sum_of_y{inner, plan.inner * plan.steps};
  Run run(engine, options,
          static_cast<double>(rows.count()) * static_cast<double>(cols.count()) *
              static_cast<double>(sum.count()));
  TiledProduct product{alpha, beta, {}, {}, nullptr, plan, sum.count()};
  product.allow_tf32 = allow_tf32(options, c.dtype);
  if (by_rows) {
    form_a.transpose = !form_a.transpose;
    form_b.transpose = !form_b.transpose;
    product.x = input_tiles(run, b, form_b, rows, sum);
    product.y = input_tiles(run, a, form_a, sum_of_y, cols);
    product.c = output_tiles(run, c.transposed(), rows, cols);
  } else {
    product.x = input_tiles(run, a, form_a, rows, sum);
    product.y = input_tiles(run, b, form_b, sum_of_y, cols);
    product.c = output_tiles(run, c, rows, cols);
  }
  submit_all(run, product, team);
  finish_all(*product.c);
  run.wait();
}

}  // namespace quadriga::linalg
