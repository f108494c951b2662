// SPDX-License-Identifier: BSD-3-Clause
// src/device/description.h: measured rates replace estimated ones.
#pragma once

#include <quadriga/machine.h>

namespace quadriga {

/// Takes links, routes and kernel times for a machine's accelerators from a description of them,
/// which may have more. Devices are the same if their names are, and their models where both are
/// known; memory stays as it was found.
///
/// Errors:  invalid_argument naming both machines' devices where they aren't the same, or the
///          device whose routes to and from the host the description lacks; nothing is changed
///          then.
void use_description(Machine& machine, const Machine& description);

}  // namespace quadriga
