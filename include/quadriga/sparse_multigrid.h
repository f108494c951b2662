// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/sparse_multigrid.h: preconditioners of several steps: smoothers and levels.
#pragma once

#include <cstdint>
#include <vector>

namespace quadriga::sparse {

/// One step of a smoother for A*z = r: d = momentum*d + weight*D^-1*(r - A*z), then z += d. D^-1 is
/// a diagonal, blocks, or the identity. The momentum of the first step isn't used.
struct SmoothingStep {
  double momentum = 0;
  double weight = 1;
};

/// The smallest and the largest eigenvalue of D^-1*A that count.
struct EigenvalueBounds {
  double low = 0;
  double high = 0;
};

/// So many steps that together reduce all error between the bounds as far as a polynomial can.
/// Errors:  invalid_argument unless 0 < low <= high and the degree is 1 or more.
/// Source:  Saad, Iterative Methods for Sparse Linear Systems, 2003, algorithm 12.1.
std::vector<SmoothingStep> chebyshev_steps(const EigenvalueBounds& bounds, int degree);

}  // namespace quadriga::sparse
