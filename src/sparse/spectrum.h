// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/spectrum.h: where the eigenvalues of D^-1*A are, by a few iterations.
#pragma once

#include <quadriga/sparse_multigrid.h>

#include <span>

namespace quadriga::sparse {

class SolverContent;

/// Coefficients of an iteration of conjugate gradients.
struct CgStep {
  double alpha = 0;
  double beta = 0;
};

/// Bounds from the coefficients of some iterations: the smallest Ritz value, and the largest one
/// plus its residual, which bounds eigenvalues of matrices of all kinds that were tried.
/// Sources: Golub and Van Loan, Matrix Computations, 2013, section 11.3.5 (Lanczos by conjugate
///          gradients); Zhou and Li, J. Comput. Phys. 230, 2011 (the upper bound).
EigenvalueBounds bounds_of(std::span<const CgStep> steps);

/// An estimate from below of the condition number of M*A: the ratio of the largest Ritz value and
/// the smallest one, to about six digits; 1 without iterations. In time linear in their number.
/// `before`: the step that these go on from, where a recurrence kept its direction.
/// Source: Golub and Van Loan, sections 8.4.1 (bisection) and 11.3.5.
double condition_of(std::span<const CgStep> steps, CgStep before = {1, 0});

/// Of a solver's matrix and the blocks of its preconditioner, by iterations on its devices from a
/// fixed right-hand side: the same bits for any number of devices. Where the matrix isn't positive
/// definite they are of no use, as solves will say.
EigenvalueBounds estimate_bounds(const SolverContent& content);

}  // namespace quadriga::sparse
