// SPDX-License-Identifier: BSD-3-Clause
// src/engine/believed.h: plans by another description than the true one: what a wrong figure costs.
#pragma once

#include <quadriga/engine.h>

namespace quadriga {

/// The devices of `truth` with their memory, the links and kernel times of EngineOptions::believed.
/// Errors: invalid_argument without the virtual clock, if the devices aren't the same in number,
///         kind and order, or if a route is stated that the machine lacks.
Machine believed_machine(const Machine& truth, const EngineOptions& options);

}  // namespace quadriga
