// SPDX-License-Identifier: BSD-3-Clause
// src/message/peer_memory.h: another rank's memory of devices, as this process has mapped it.
//
// Invariants
//   1. An allocation is opened once for a port's device, and known by its number and its place. One
//      at an address where another was makes that one be closed first: CUDA gives a handle's old
//      mapping as long as it is open.
//   2. A mapping is closed once its owner has said that the memory is gone, or is itself gone, and
//      no copy that uses it is under way.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "message/device_port.h"
#include "message/wire/envelope.h"

namespace quadriga::message {

class PeerMemory {
 public:
  /// The offered message's first byte as a port's device reaches it. The memory stays mapped at
  /// least as long as `keep`. `process` is a descriptor of the owner.
  /// Errors:  unavailable with the reason; invalid_argument if there is less than was offered.
  struct Reached {
    std::byte* first = nullptr;
    std::shared_ptr<void> keep;
  };
  Reached reach(const DeviceOffer& offer, const std::shared_ptr<DevicePort>& port, DeviceId device,
                int process);
  /// The owner has no such allocation any more.
  void forget(std::uint64_t id);
  void forget_all() noexcept { mapped_.clear(); }
  /// Allocations that were opened so far.
  std::uint64_t opened() const noexcept { return opened_; }
  std::size_t open() const noexcept { return mapped_.size(); }

 private:
  struct Mapping;
  bool close_others(const DeviceOffer& offer);
  std::vector<std::shared_ptr<Mapping>> mapped_;  ///< The newest last.
  std::uint64_t opened_ = 0;
};

/// What a rank has found out about another's memory of devices: both can ask the shared word.
enum class PairPath : std::uint32_t {
  unknown,
  mapped,      ///< It opens the other's allocations.
  no_files,    ///< The system passes no descriptors between the two processes.
  not_opened,  ///< The driver refused to open a handle.
};
const char* text_of(PairPath path) noexcept;

}  // namespace quadriga::message
