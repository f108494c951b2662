// SPDX-License-Identifier: BSD-3-Clause
// src/memory/device_spaces.h: the memory and the copy streams of each device, taken from a backend.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "memory/reserve.h"

namespace quadriga {

/// What one memory space is given to work with.
struct SpaceResources {
  DeviceId device = no_device;  ///< No_device: the host's, or one that no device of ours has.
  std::byte* base = nullptr;    ///< Of the arena.
  std::size_t bytes = 0;
  StreamId in = 0;              ///< Copies from the host.
  StreamId out = 0;             ///< Copies to the host.
  std::vector<StreamId> peers;  ///< Copies from other devices, by source space; where a route is.
  bool is_file = false;  ///< Nothing runs there; what leaves the host's buffers may go there.
  std::vector<Reserve> reserves = {};  ///< More of the arena, beside `bytes`.
};

/// The arenas and copy streams of all devices of a machine. Must go before the backend, and after
/// all that is queued on it has ended.
class DeviceSpaces {
 public:
  /// Makes the streams.
  /// Errors:  invalid_argument if a device is to have less than 4096 bytes of memory.
  DeviceSpaces(Backend& backend, const Machine& machine);
  ~DeviceSpaces();
  DeviceSpaces(const DeviceSpaces&) = delete;
  DeviceSpaces& operator=(const DeviceSpaces&) = delete;

  /// Whether taking what the machine says would leave little of a device's memory to others, as
  /// far as the backend knows.
  bool is_scarce(const Machine& machine, DeviceId device) const;
  /// Takes as much of each device's memory as it gives, at most what the machine says; once, and
  /// after those who need some of it in any case. Of a scarce one some is left. Where others may
  /// want memory later, some of it is taken as reserves.
  /// Errors:  unavailable naming a device that has none to give, and what of it is free.
  void take_memory(const Machine& machine);

  /// Frees a reserve of a space, which nobody uses.
  void give_back(SpaceId space, std::byte* reserve);

  /// By space.
  const std::vector<SpaceResources>& spaces() const noexcept { return spaces_; }
  /// Calls visit(DeviceId, StreamId, StreamKind, std::string name) for each copy stream.
  template <class Visit>
  void for_each_stream(const Machine& machine, Visit&& visit) const {
    for (const SpaceResources& space : spaces_) {
      if (space.device == no_device) continue;
      visit(space.device, space.in, StreamKind::copy_in, std::string("copy in"));
      visit(space.device, space.out, StreamKind::copy_out, std::string("copy out"));
      for (SpaceId from = 1; from < space.peers.size(); ++from)
        if (machine.route(from, machine.devices[space.device].space))
          visit(space.device, space.peers[from], StreamKind::peer_in,
                "from " + machine.devices[spaces_[from].device].name);
    }
  }
  /// Leaves the memory to the backend: something queued may still use it.
  void release() noexcept { spaces_.clear(); }

 private:
  void open(const Machine& machine, DeviceId device);
  void take_memory(const Device& described, DeviceId device);
  bool try_take(SpaceResources& space, std::size_t bytes, bool is_shared);
  void free_memory(SpaceResources& space) noexcept;
  static bool is_scarce(const Device& described, std::optional<std::size_t> free);

  Backend& backend_;
  std::vector<SpaceResources> spaces_;
};

}  // namespace quadriga
