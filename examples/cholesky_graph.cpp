// SPDX-License-Identifier: BSD-3-Clause
// examples/cholesky_graph.cpp: a tiled Cholesky factorization as a function of task indices.
// Build: c++ -std=c++20 cholesky_graph.cpp $(pkg-config --cflags --libs quadriga)
#include <quadriga/task_graph.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {
using namespace quadriga;
constexpr std::int64_t tile = 32, tiles = 12, order = tile * tiles;
double& at(const View& view, std::int64_t i, std::int64_t j) {
  return view.as<double>()[i + j * view.ld];
}
/// A = L L^T, of the lower triangle.
void factor(const Arguments& arguments) {
  const View& a = arguments.operands[0];
  for (std::int64_t k = 0; k < tile; ++k) {
    at(a, k, k) = std::sqrt(at(a, k, k));
    for (std::int64_t i = k + 1; i < tile; ++i) at(a, i, k) /= at(a, k, k);
    for (std::int64_t j = k + 1; j < tile; ++j)
      for (std::int64_t i = j; i < tile; ++i) at(a, i, j) -= at(a, i, k) * at(a, j, k);
  }
}
/// B = B L^-T.
void solve(const Arguments& arguments) {
  const View &l = arguments.operands[0], &b = arguments.operands[1];
  for (std::int64_t k = 0; k < tile; ++k)
    for (std::int64_t i = 0; i < tile; ++i) {
      for (std::int64_t j = 0; j < k; ++j) at(b, i, k) -= at(b, i, j) * at(l, k, j);
      at(b, i, k) /= at(l, k, k);
    }
}
/// C = C - A B^T.
void multiply(const Arguments& arguments) {
  const View &a = arguments.operands[0], &b = arguments.operands[1], &c = arguments.operands[2];
  for (std::int64_t k = 0; k < tile; ++k)
    for (std::int64_t j = 0; j < tile; ++j)
      for (std::int64_t i = 0; i < tile; ++i) at(c, i, j) -= at(a, i, k) * at(b, j, k);
}
}  // namespace

int main() {
  const Codelet potrf{.name = "potrf", .access = {Access::update}, .cpu = factor};
  const Codelet trsm{.name = "trsm", .access = {Access::read, Access::update}, .cpu = solve};
  const Codelet gemm{
      .name = "gemm", .access = {Access::read, Access::read, Access::update}, .cpu = multiply};
  std::vector<double> a(order * order, 1.0);  // order + 1 on the diagonal, else 1.
  for (std::int64_t i = 0; i < order; ++i) a[i * (order + 1)] += order;
  Engine engine({.devices = "emulated:2,memory=256KiB", .window = 64});
  DataGrid t(tiles, tiles);
  for (std::int64_t i = 0; i < tiles; ++i)
    for (std::int64_t j = 0; j <= i; ++j)
      t(i, j) = engine.data(&a[i * tile + j * tile * order], tile, tile, order, DType::float64);
  using enum Access;
  using I = TaskIndices;
  using Operands = std::vector<Operand>;
  const auto below = [](I i) { return TaskRange{i[0] + 1, tiles}; };
  const auto up_to_row = [](I i) { return TaskRange{i[0] + 1, i[1] + 1}; };
  const auto of_potrf = [&](I k, Operands& o) { o = {{t(k[0], k[0]), update}}; };
  const auto of_trsm = [&](I i, Operands& o) {
    o = {{t(i[0], i[0]), read}, {t(i[1], i[0]), update}};
  };
  const auto of_gemm = [&](I i, Operands& o) {
    o = {{t(i[1], i[0]), read}, {t(i[2], i[0]), read}, {t(i[1], i[2]), update}};
  };
  const auto urgent = [](I i) { return SubmitOptions{.priority = static_cast<int>(tiles - i[0])}; };
  TaskGraph graph(tiles);  // Indices: step, row, column.
  graph.add({&potrf, {}, of_potrf, urgent});
  graph.add({&trsm, {below}, of_trsm, urgent});
  graph.add({&gemm, {below, up_to_row}, of_gemm, urgent});
  std::printf("%lld tasks\n", static_cast<long long>(graph.submit(engine)));
  engine.wait();

  double last = 0;  // Of L L^T, which should be A.
  for (std::int64_t k = 0; k < order; ++k) last += std::pow(a[(k + 1) * order - 1], 2);
  return std::abs(last - (order + 1)) < 1e-12 * order ? 0 : 1;
}
