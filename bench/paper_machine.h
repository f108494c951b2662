// SPDX-License-Identifier: BSD-3-Clause
// bench/paper_machine.h: the machine of the paper on GPU-Chariot, whose streams ours are beside.
//
// Source:  Ino, Nakagawa, Hagihara, GPU-Chariot, IEICE Trans. E96-D(12), 2013, section 6: four GPUs
//          with one copy engine each, two to a bus that carries one copy at a time.
#pragma once

#include <quadriga/machine.h>

namespace quadriga::bench {

constexpr double bus_bytes_per_second = 6e9;

/// Devices take turns on the buses: of three, the first and the last share one.
Machine paper_machine(int devices, int hardware_queues = 0);

}  // namespace quadriga::bench
