// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/method.h: which arrangement of conjugate gradients a solver uses. Pure.
#pragma once

#include <quadriga/machine.h>
#include <quadriga/sparse.h>

#include <span>
#include <string>

namespace quadriga::sparse {

struct MethodChoice {
  CgMethod method = CgMethod::classic;
  std::string reason;
};

/// Errors: invalid_argument if another than classic is asked for where M is several tasks.
void check_method(CgMethod asked, bool has_steps);

/// What iterations read and write.
struct MethodShape {
  std::int64_t rows = 0;
  DType dtype = DType::float64;
  double matrix_bytes = 0;  ///< Of its elements as they are stored.
};

/// By what is asked for; else by the machine's figures for one device of the kind that is fastest,
/// so that it doesn't depend on their number: each method's kernels cost a launch, and the matrix
/// and its vectors pass the memory, what doesn't fit it also the link from the host. Classic ones
/// stay where others are predicted to gain less than 3 %.
/// `has_steps`: M is several tasks. `spread`: the devices that rows are cut for, where their number
/// may decide bits. Each reads its share, and waits for the others' sums: classic and
/// single-reduction iterations twice, pipelined ones once, and only as long as no product runs.
/// Errors: check_method()'s.
MethodChoice choose_method(const Machine& machine, const MethodShape& shape, CgMethod asked,
                           bool has_steps, std::span<const DeviceId> spread = {});

}  // namespace quadriga::sparse
