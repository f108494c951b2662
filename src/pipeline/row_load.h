// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/row_load.h: what a row of kernels asks of devices for a chunk. Pure.
#pragma once

#include <span>
#include <vector>

#include "pipeline/dispatch.h"
#include "pipeline/load.h"
#include "pipeline/stage_plan.h"

namespace quadriga {

/// Bytes of what goes in and out.
void add_bytes(ChunkLoad& load, const KernelRow& row, const Chunk& chunk);

/// Adds what a kernel takes for the chunk on each device; false if it has no cost, or the machine's
/// table doesn't know it of all of them.
///
/// Shapes:  `seconds` is as long as `devices`.
bool add_seconds(std::vector<double>& seconds, const Stage& kernel, const Chunk& chunk,
                 std::span<const std::byte> params, const Machine& machine,
                 std::span<const DeviceId> devices);

/// What the chunk takes on a device, and whether anything is to be copied for it.
/// Errors: invalid_argument naming a field that it lacks.
StreamChunk needs_of(const KernelRow& row, const Chunk& chunk);
/// Its head beside its kernels, on the device where it is shortest beside these; none if their
/// seconds aren't known.
void add_head(StreamChunk& needs, const ChunkLoad& load, const Machine& machine,
              std::span<const DeviceId> devices);

}  // namespace quadriga
