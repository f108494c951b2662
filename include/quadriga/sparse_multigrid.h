// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/sparse_multigrid.h: preconditioners of several steps: smoothers and levels.
#pragma once

#include <quadriga/sparse_matrix.h>

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

/// How smoothed aggregation makes levels: rows of the same node are neighbours, nodes that depend
/// on each other become one node of the next level, whose unknowns are combinations of the vectors
/// that smoothers can't reduce.
/// Source: Vanek, Mandel and Brezina, Computing 56, 1996.
struct Aggregation {
  /// Vectors that A nearly maps to zero, such as rigid-body motions; rows x vectors elements, row
  /// by row, only read by the constructor. Null: constants, one for each unknown of a node.
  const double* near_null = nullptr;
  int vectors = 0;
  int unknowns = 0;     ///< Rows of a node. 0: those of the matrix's dense blocks, else 1.
  double strength = 0;  ///< Nodes depend on each other if |Aij|^2 > strength^2 |Aii| |Ajj|.
};

/// A level below another one, in the caller's memory.
struct CoarseLevel {
  CsrView restriction;   ///< From the level above to this one.
  CsrView prolongation;  ///< Back.
  CsrView matrix;        ///< Of this level. The last one's inverse is computed, and is dense.
};

}  // namespace quadriga::sparse
