// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_packing.h: the command that measures packing on one GPU.
#pragma once

#include "settings.h"

namespace quadriga::bench {

/// One line a layout: rates of packing and unpacking, of a copy's of as many bytes.
void pack_rates(const Settings& settings);

}  // namespace quadriga::bench
