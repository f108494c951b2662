// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/method.h: which arrangement of conjugate gradients a solver uses. Pure.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/sparse.h>

#include <string>

namespace quadriga::sparse {

struct MethodChoice {
  CgMethod method = CgMethod::classic;
  std::string reason;
};

/// By what is asked for; else by the machine's figures for one device of the kind that is fastest,
/// so that it doesn't depend on their number: each method's kernels cost a launch, and its vectors
/// pass the memory. On GPUs, where the others' kernels haven't been measured, classic ones always.
/// `has_steps`: M is several tasks.
/// Errors: invalid_argument if another than classic is asked for with such an M.
MethodChoice choose_method(const Machine& machine, std::int64_t rows, DType dtype, CgMethod asked,
                           bool has_steps);

}  // namespace quadriga::sparse
