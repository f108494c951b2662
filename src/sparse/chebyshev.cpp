// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/chebyshev.cpp: steps of Chebyshev's iteration.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/sparse_multigrid.h>

namespace quadriga::sparse {

std::vector<SmoothingStep> chebyshev_steps(const EigenvalueBounds& bounds, int degree) {
  require(degree >= 1,
          fmt::format("Chebyshev polynomial of degree {}; expected 1 or more", degree));
  require(bounds.low > 0 && bounds.low <= bounds.high,
          fmt::format("Chebyshev polynomial between {} and {}; expected 0 < low <= high",
                      bounds.low, bounds.high));
  const double centre = (bounds.high + bounds.low) / 2;
  const double half = (bounds.high - bounds.low) / 2;
  std::vector<SmoothingStep> steps{{0, 1 / centre}};
  double last = half / centre;
  while (static_cast<int>(steps.size()) < degree) {
    const double scale = 1 / (2 * centre - last * half);
    const double next = half * scale;
    steps.push_back({next * last, 2 * scale});
    last = next;
  }
  return steps;
}

}  // namespace quadriga::sparse
