// SPDX-License-Identifier: BSD-3-Clause
// bench/copy_flows.cpp: memory for copies, and copies through the backend.
#include "copy_flows.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "line.h"

namespace quadriga::bench {
namespace {

DeviceId device_of(const Machine& machine, SpaceId space) {
  const auto found = std::ranges::find(machine.devices, space, &Device::space);
  require(found != machine.devices.end(), fmt::format("space {} has no device", space));
  return static_cast<DeviceId>(found - machine.devices.begin());
}

void finish(Backend& backend, std::size_t copies, Products* beside) {
  std::array<Completion, 64> ended;
  while (copies > 0) {
    const std::size_t count = backend.next_completion(ended, never);
    for (std::size_t i = 0; i < count; ++i) {
      if (beside != nullptr && beside->take(ended[i])) continue;
      if (ended[i].error) std::rethrow_exception(ended[i].error);
      --copies;
    }
  }
}

}  // namespace

Copy copy_of(const Flow& flow, const Shape& shape) {
  Copy copy;
  copy.from = flow.from;
  copy.to = flow.to;
  copy.source = flow.source;
  copy.target = flow.target;
  copy.width_bytes = shape.run_bytes;
  copy.height = shape.runs;
  copy.source_pitch = flow.from == host_space ? shape.pitch : shape.run_bytes;
  copy.target_pitch = flow.to == host_space ? shape.pitch : shape.run_bytes;
  return copy;
}

CopyBuffers::CopyBuffers(Backend& backend, std::size_t bytes) : backend_(backend), bytes_(bytes) {}

CopyBuffers::~CopyBuffers() {
  for (const Place& place : host_)
    if (place.space != no_space) backend_.unpin(place.memory, bytes_);
  for (const Place& place : device_)
    backend_.deallocate(device_of(backend_.machine(), place.space), place.memory);
}

std::byte* CopyBuffers::on_device(SpaceId space, bool source) {
  for (const Place& place : device_)
    if (place.space == space && place.source == source) return place.memory;
  const Machine& machine = backend_.machine();
  const DeviceId device = device_of(machine, space);
  std::byte* const memory = backend_.allocate(device, bytes_);
  if (memory == nullptr) {
    fail(Errc::too_large, fmt::format("{} has no room for {}", machine.devices[device].name,
                                      format_bytes(static_cast<double>(bytes_))));
  }
  device_.push_back({space, source, memory});
  return memory;
}

std::byte* CopyBuffers::on_host(SpaceId beside, bool source, bool pinned) {
  const SpaceId owner = pinned ? beside : no_space;
  for (const Place& place : host_)
    if (place.space == owner && (place.source == source || !pinned)) return place.memory;
  std::byte* const memory = pages_.emplace_back(bytes_, std::byte{1}).data();
  if (pinned) backend_.pin(memory, bytes_);
  host_.push_back({owner, source, memory});
  return memory;
}

Flow CopyBuffers::flow(SpaceId from, SpaceId to, bool pinned) {
  Flow flow{from, to, nullptr, nullptr};
  flow.source = from == host_space ? on_host(to, true, pinned) : on_device(from, true);
  flow.target = to == host_space ? on_host(from, false, pinned) : on_device(to, false);
  const StreamKind kind = from == host_space ? StreamKind::copy_in
                          : to == host_space ? StreamKind::copy_out
                                             : StreamKind::peer_in;
  const SpaceId device = to == host_space ? from : to;
  flow.stream = backend_.create_stream(device_of(backend_.machine(), device), kind);
  return flow;
}

Flow CopyBuffers::flow_within(SpaceId space) {
  return {space, space, on_device(space, true), on_device(space, false)};
}

double backend_seconds(Backend& backend, std::span<const Flow> flows, const Shape& shape,
                       std::size_t rounds, Products* beside) {
  if (beside != nullptr) beside->begin();
  const double begin = now();
  for (std::size_t i = 0; i < rounds; ++i)
    for (const Flow& flow : flows) backend.copy(flow.stream, copy_of(flow, shape));
  finish(backend, flows.size() * rounds, beside);
  const double seconds = now() - begin;
  if (beside != nullptr) beside->end();
  return seconds;
}

}  // namespace quadriga::bench
