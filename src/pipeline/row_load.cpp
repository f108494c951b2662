// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/row_load.cpp: bytes, seconds and blocks of a chunk in a row of kernels.
#include "pipeline/row_load.h"

#include <algorithm>
#include <limits>

#include "device/backend.h"
#include "memory/arena.h"

namespace quadriga {

void add_bytes(ChunkLoad& load, const KernelRow& row, const Chunk& chunk) {
  for (const RowField& field : row.fields) {
    if (field.returned) continue;  // it counts once it is known
    const View* const view = field.is_temporary ? nullptr : chunk.find(field.name);
    if (!view) continue;
    const auto bytes = static_cast<double>(bytes_of(*view));
    if (field.is_head) load.bytes_in += bytes;
    if (field.is_tail) load.bytes_out += bytes;
  }
}

bool add_seconds(std::vector<double>& seconds, const Stage& kernel, const Chunk& chunk,
                 std::span<const std::byte> params, const Machine& machine,
                 std::span<const DeviceId> devices) {
  if (!kernel.codelet->cost) return false;
  std::vector<View> views;
  for (const FieldUse& use : kernel.uses) {
    const View* const view = chunk.find(use.name);
    views.push_back(use.constant.data ? use.constant : view ? *view : View{});
  }
  const Cost cost = kernel.codelet->cost({views, params});
  if (cost.kernel == no_work) return true;
  bool is_known = true;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const Device& device = machine.devices[devices[d]];
    if (machine.has_kernel(device, cost.kernel))
      seconds[d] += machine.launch_seconds +
                    machine.kernel_seconds(device, cost.kernel, cost.order, cost.volume);
    else
      is_known = false;
  }
  return is_known;
}

StreamChunk needs_of(const KernelRow& row, const Chunk& chunk) {
  StreamChunk needs{chunk.number(), 0, 0, false, false};
  for (const RowField& field : row.fields) {
    const std::size_t bytes =
        field.returned ? field.returned->expected_bytes(chunk) : bytes_of(field.view_in(chunk));
    needs.blocks.push_back(Arena::rounded(bytes, Arena::usual_alignment));
    needs.bytes += needs.blocks.back();
    needs.has_head |= field.is_head && bytes > 0;
    needs.has_tail |= field.is_tail && (bytes > 0 || field.returned);
  }
  needs.size = static_cast<double>(needs.bytes);
  for (const FieldUse* const use : row.reduced) {
    const FieldShape part = use->shape(chunk);
    const View view{nullptr, part.rows, part.cols, part.rows, part.dtype};
    needs.blocks.push_back(Arena::rounded(bytes_of(view), Arena::usual_alignment));
    needs.bytes += needs.blocks.back();
  }
  return needs;
}

void add_head(StreamChunk& needs, const ChunkLoad& load, const Machine& machine,
              std::span<const DeviceId> devices) {
  if (!load.costs_known || !needs.has_head) return;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const SpaceId space = machine.devices[devices[d]].space;
    if (space == host_space || !(load.kernel_seconds[d] > 0)) return;
    least = std::min(
        least, machine.copy_seconds(host_space, space, load.bytes_in) / load.kernel_seconds[d]);
  }
  needs.head = needs.size * least;
}

}  // namespace quadriga
