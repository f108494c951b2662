// SPDX-License-Identifier: BSD-3-Clause
// src/device/operation.cpp: checks of operations, and the copy that host memory needs.
#include "device/operation.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <cstring>
#include <limits>

namespace quadriga {

const Device& checked_device(const Machine& machine, DeviceId device) {
  if (device >= machine.devices.size()) {
    fail(Errc::invalid_argument, fmt::format("there is no device {}; machine '{}' has {}", device,
                                             machine.name, machine.devices.size()));
  }
  return machine.devices[device];
}

namespace {

void check_pieces(const Machine& machine, const Copy& copy, const Route& route) {
  if ((copy.from == host_space) == (copy.to == host_space))
    fail(Errc::invalid_argument,
         fmt::format("a copy in pieces leads from or to the host, not from space {} to {}",
                     copy.from, copy.to));
  std::size_t width = 0;
  for (const Piece& piece : *copy.pieces) width += piece.width_bytes;
  if (width != copy.width_bytes)
    fail(Errc::invalid_argument,
         fmt::format("pieces of {} bytes are no runs of {}", width, copy.width_bytes));
  for_each_piece(copy, [&](const Copy& each) { check_copy(machine, each, &route); });
}

}  // namespace

void check_copy(const Machine& machine, const Copy& copy, const Route* route) {
  if (route == nullptr || route->links.empty()) {
    fail(Errc::invalid_argument, fmt::format("no route of machine '{}' leads from space {} to {}",
                                             machine.name, copy.from, copy.to));
  }
  if (copy.pieces) return check_pieces(machine, copy, *route);
  const bool pitched = copy.height > 1;
  if (pitched && (copy.source_pitch < copy.width_bytes || copy.target_pitch < copy.width_bytes)) {
    fail(Errc::invalid_argument,
         fmt::format("a copy of {} runs of {} bytes needs pitches of at least that, not {} and {}",
                     copy.height, copy.width_bytes, copy.source_pitch, copy.target_pitch));
  }
  if (bytes_of(copy) > 0 && (copy.source == nullptr || copy.target == nullptr)) {
    fail(Errc::invalid_argument, "a copy's source or target is null");
  }
}

void check_stream(StreamId stream, std::size_t streams) {
  if (stream >= streams) {
    fail(Errc::invalid_argument,
         fmt::format("there is no stream {}; {} were created", stream, streams));
  }
}

void check_launch(const Launch& launch) {
  if (launch.kernel == nullptr || !*launch.kernel) {
    fail(Errc::invalid_argument,
         fmt::format("codelet '{}' has no variant for this device", launch.name));
  }
}

double limit_by_runs(const Machine& machine, const Route& route, const Copy& copy) noexcept {
  if (is_one_run(copy) || copy.width_bytes == 0) return std::numeric_limits<double>::infinity();
  return machine.copy_rate(route, static_cast<double>(copy.width_bytes));
}

void move_bytes(const Copy& copy) noexcept {
  if (bytes_of(copy) == 0) return;
  if (copy.pieces) return for_each_piece(copy, [](const Copy& each) { move_bytes(each); });
  if (is_one_run(copy)) {
    std::memcpy(copy.target, copy.source, bytes_of(copy));
    return;
  }
  for (std::size_t run = 0; run < copy.height; ++run) {
    std::memcpy(copy.target + run * copy.target_pitch, copy.source + run * copy.source_pitch,
                copy.width_bytes);
  }
}

}  // namespace quadriga
