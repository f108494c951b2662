// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/stream_ports.cpp: a table that is filled before its first use.
//
// Invariant: `mutex` guards `added` until `is_read` is set; then nobody changes it.
#include "linalg/kernels/stream_ports.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <mutex>

#include "device/kinds.h"

namespace quadriga::kernels {
namespace {

using Port = std::pair<DeviceKind, StreamPort>;

struct AddedPorts {
  std::mutex mutex;
  bool is_read = false;
  std::vector<Port> added;
};

// Made by whoever comes first while the program starts; never destroyed.
AddedPorts& ports() {
  static AddedPorts& all = *new AddedPorts;
  return all;
}

}  // namespace

void add_stream_port(DeviceKind kind, StreamPort port) {
  const auto named = [kind](const char* what) {
    return fmt::format("add_stream_port(): kind '{}' {}", name(kind), what);
  };
  require(port != nullptr, named("was given an empty port"));
  require(kind != DeviceKind::cpu && variants_of(kind) == kind,
          named("runs variants of the host's cores or of another kind"));
  AddedPorts& all = ports();
  const std::lock_guard lock(all.mutex);
  require(!all.is_read, named("comes too late: a codelet of a tile kernel was asked for"));
  require(std::ranges::find(all.added, kind, &Port::first) == all.added.end(),
          named("has a port already"));
  all.added.emplace_back(kind, std::move(port));
}

const std::vector<Port>& added_stream_ports() {
  AddedPorts& all = ports();
  const std::lock_guard lock(all.mutex);
  all.is_read = true;
  return all.added;
}

}  // namespace quadriga::kernels
