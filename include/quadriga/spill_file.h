// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/spill_file.h: a file to which the host evicts, as part of a machine.
#pragma once

#include <quadriga/machine.h>

#include <string>

namespace quadriga {

/// The machine with a file as a further memory space, the device "spill", to which tiles without a
/// home go when the host's buffers are full; unchanged if it has such a file already. An engine
/// with EngineOptions::spill runs on this, unless its tasks run on the host's memory alone: then
/// the file holds all such tiles. It isn't made here, and holds what is free on its disk. Rates are
/// the setting `spill_rate`, else measured, in about a quarter of a second, once for each disk and
/// process. With `measures` off nothing of this computer's load counts: the disk's size, and 1 GB/s
/// unless it is stated.
Machine with_spill(Machine machine, const std::string& file, bool measures = true);

}  // namespace quadriga
