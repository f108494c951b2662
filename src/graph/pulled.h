// SPDX-License-Identifier: BSD-3-Clause
// src/graph/pulled.h: the owner of tasks that devices shall pull.
#pragma once

#include <quadriga/types.h>

namespace quadriga {

/// As a task's owner: none. Under a policy that follows owners and whose devices pull, it waits
/// until one does; under others it has no owner. The library's own: Engine::submit() refuses it.
inline constexpr DeviceId pulled_owner = no_device - 1;

}  // namespace quadriga
