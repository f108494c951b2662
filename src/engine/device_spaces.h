// SPDX-License-Identifier: BSD-3-Clause
// src/engine/device_spaces.h: the memory and the copy streams of each device, taken from a backend,
// and what of it is kept for libraries.
//
// Invariants
//   1. `mutex_` guards `reserves_` and `gives_`, and is held while a reserve is freed: any thread
//      may give one away. No task and no tile uses a reserve, so that whoever gives it away waits
//      for nobody. All else belongs to one thread at a time.
#pragma once

#include <quadriga/machine.h>

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "memory/space_resources.h"

namespace quadriga {

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
  /// after those who need some of it in any case. Of a scarce one some is left. Where an arena
  /// takes more than it leaves, a part becomes reserves, for libraries that find no memory later.
  /// Errors:  unavailable naming a device that has none to give, and what of it is free.
  void take_memory(const Machine& machine);

  /// Frees one of a device's reserves, and returns its bytes; 0 if there is none left.
  std::size_t give_reserve(SpaceId space);
  /// What is kept for libraries.
  std::size_t reserve_bytes(SpaceId space) const;
  /// No reserve is given away any more.
  void keep_reserves();

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
  void release() noexcept {
    spaces_.clear();
    reserves_.clear();
  }

 private:
  void open(const Machine& machine, DeviceId device);
  void take_memory(const Device& described, DeviceId device);
  bool try_take(SpaceId space, std::size_t bytes, bool has_reserves);
  void free_memory(SpaceId space) noexcept;
  static bool is_scarce(const Device& described, std::optional<std::size_t> free);

  struct Reserve {
    std::byte* base = nullptr;
    std::size_t bytes = 0;
  };

  Backend& backend_;
  std::vector<SpaceResources> spaces_;
  mutable std::mutex mutex_;
  std::vector<std::vector<Reserve>> reserves_;  ///< By space.
  bool gives_ = true;
};

}  // namespace quadriga
