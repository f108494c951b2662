// SPDX-License-Identifier: BSD-3-Clause
// examples/sparse.cpp: heat in a box of points, by conjugate gradients on two emulated devices.
// Build: c++ -std=c++20 sparse.cpp $(pkg-config --cflags --libs quadriga)
#include <quadriga/sparse.h>

#include <cmath>
#include <cstdio>
#include <vector>
using namespace quadriga;

int main() {
  // The matrix: each point of the box, and its six neighbours.
  const sparse::BoxGrid grid{40, 40, 40, 7};
  const std::int64_t rows = rows_of(grid), elements = elements_of(grid);
  std::vector<std::int64_t> offsets(std::size_t(rows) + 1), columns(std::size_t(elements), 0);
  std::vector<double> values(columns.size());
  laplacian(grid, 0, rows, offsets.data(), columns.data(), values.data(), DType::float64);
  const sparse::CsrView a{rows,           rows,          elements, offsets.data(),
                          columns.data(), values.data(), 8,        DType::float64};

  // Heated evenly; cold around the box.
  const std::vector<double> heating(std::size_t(rows), 1);
  std::vector<double> heat(heating.size(), 0);

  Engine engine({.devices = "emulated:2,memory=64MiB"});
  const sparse::Solver solver(engine, a, {.precondition = sparse::Precondition::jacobi});
  const sparse::PlanReport plan = solver.plan();
  for (std::size_t part = 0; part < plan.devices.size(); ++part)
    std::printf("part %zu: rows from %lld on, needs %lld of others\n", part,
                static_cast<long long>(plan.first_rows[part]),
                static_cast<long long>(plan.halo_rows[part]));
  const sparse::SolveResult result =
      solver.cg(heating.data(), heat.data(), 1, {.rtol = 1e-10, .zero_start = true});
  std::printf("%s after %lld iterations, |b - A x| = %.2e; %.1f in the middle\n",
              std::string(name(result.reason)).c_str(), static_cast<long long>(result.iterations),
              result.true_residuals[0], heat[heat.size() / 2 + 820]);

  // The temperature is the same from both ends: up to rounding and the tolerance.
  double difference = 0;
  for (std::size_t i = 0; i < heat.size(); ++i)
    difference = std::fmax(difference, std::fabs(heat[i] - heat[heat.size() - 1 - i]));
  return result.reason == sparse::StopReason::converged && difference < 1e-6 ? 0 : 1;
}
