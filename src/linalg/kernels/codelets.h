// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/codelets.h: the tile kernels as codelets for the engine, with their parameters
// and costs.
//
// A codelet exists once for each type and lives as long as the process. Its parameters are one of
// the structs of these headers, given to submit() as bytes. The first call of any of their
// functions sets the BLAS to one thread. Costs name kernels as machines/*.json do ("dgemm"): a
// product of m x k and k x n has volume mnk, syrk and herk (both "dsyrk") n^2 k, a solve m^2 n or
// m n^2, potrf n^3.
//
// With `fine`, cpu variants of gemm, syrk, herk, trsm and potrf compute on a finer grid, in which
// idle cores take part (divisions.h). The bits may differ from those without, and depend on the
// shapes alone.
#pragma once

#include "linalg/kernels/elements.h"
#include "linalg/kernels/gemm.h"
#include "linalg/kernels/potrf.h"
#include "linalg/kernels/syrk.h"
#include "linalg/kernels/trsm.h"
