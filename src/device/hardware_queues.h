// SPDX-License-Identifier: BSD-3-Clause
// src/device/hardware_queues.h: what the queues and copy engines of emulated devices let begin.
//
// Pure. Streams of a device enter its hardware queues by turns. In each, copies begin in the order
// in which they were queued, and so do kernels: one that can't begin yet keeps those behind it
// waiting, whatever their streams. As many copies of a device run at once as it has engines.
//
// Source:  Ino, Nakagawa, Hagihara, GPU-Chariot, IEICE Trans. E96-D(12), 2013, section 3.2:
//          constraints C1 and C2 of GPUs before GK110.
#pragma once

#include <quadriga/machine.h>

#include <array>
#include <cstdint>
#include <vector>

#include "device/ring.h"

namespace quadriga {

class HardwareQueues {
 public:
  /// Where a stream's commands go.
  struct Place {
    DeviceId device = no_device;
    std::uint32_t queue = 0;
  };
  enum class Kind : std::uint8_t { copy, kernel };

  explicit HardwareQueues(const Machine& machine);

  /// Of a new stream of the device.
  Place add_stream(DeviceId device);
  /// A command was queued; sequence numbers rise.
  void push(Place place, Kind kind, std::uint64_t sequence);
  /// Whether it is the next of its kind in its queue, and for a copy an engine is free.
  bool can_begin(Place place, Kind kind, std::uint64_t sequence) const;
  /// The next one begins, for which can_begin() holds.
  void begin(Place place, Kind kind);
  /// One that had begun has ended.
  void end(Place place, Kind kind) { devices_[place.device].copies -= kind == Kind::copy ? 1 : 0; }

 private:
  using Order = std::array<Ring<std::uint64_t>, 2>;  // Sequence numbers by kind.
  struct Queues {
    int engines = 0;
    int copies = 0;  // That run.
    std::uint32_t streams = 0;
    std::vector<Order> orders;  // None: each stream is a queue of its own.
  };

  std::vector<Queues> devices_;
};

}  // namespace quadriga
