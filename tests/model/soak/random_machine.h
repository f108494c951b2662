// SPDX-License-Identifier: BSD-3-Clause
// tests/model/soak/random_machine.h: machines whose devices, memories and links differ.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>

#include "base/random.h"

namespace quadriga {

/// One to five emulated devices and perhaps cores: memory of three to ten of the largest tiles,
/// kernels of different speed, links of different rates of which some are shared or very slow.
Machine random_machine(Random& random, std::size_t tile_bytes);

/// The same devices and routes with wrong figures: most within a factor of two, a few of ten.
Machine mistaken(Machine machine, Random& random);

}  // namespace quadriga
