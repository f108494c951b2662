// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/operand_guard.h: a call touches its operands' memory like the host: after the tasks
// that were submitted on it, before those that are submitted later.
#pragma once

#include <quadriga/linalg.h>

#include <span>

namespace quadriga::linalg {

/// An operand of a call and how that touches it; sources are nobody's memory.
struct Guarded {
  const Matrix* matrix = nullptr;
  Access access = Access::read;
};

/// Holds what the engine's user registered in the operands' memory until the call has ended; the
/// call's own tiles of it are private meanwhile. Inside of a task it holds nothing: the task has
/// its operands. Tasks of other engines on that memory are waited for before. Errors: what a task
/// failed with that should have written what is read.
HostAccess guard(Engine& engine, std::initializer_list<Guarded> operands);

}  // namespace quadriga::linalg
