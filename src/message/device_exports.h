// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_exports.h: what a rank tells others of its memory of devices.
//
// Invariants
//   1. With the endpoint's lock.
//   2. Whoever was given a handle is told once when its allocation is gone. That is looked for
//      whenever an allocation is named for the first time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "message/peer_link.h"

namespace quadriga::message {

class DeviceExports {
 public:
  explicit DeviceExports(std::size_t ranks) : ranks_(ranks) {}

  /// Writes a DeviceOffer and, unless its elements lie side by side, the layout's code; says how
  /// many bytes. What can't be opened, or has no room for its layout, is offered to be sent in
  /// pieces; one warning says why.
  std::size_t describe(const MessageBuffer& place, const PeerLink& link, std::span<std::byte> into);
  bool has_news() const noexcept { return !news_.empty(); }
  /// Tells what is gone, as far as the rings have room.
  void tell(PeerLinks& links);

 private:
  struct Known {
    std::weak_ptr<DevicePort> port;
    DeviceId device = 0;
    std::uint64_t base = 0;
    std::uint64_t id = 0;
    std::vector<bool> told;  ///< Ranks.
  };
  struct News {
    std::size_t rank = 0;
    std::uint64_t id = 0;
  };
  void note(const MessageBuffer& place, const DeviceOffer& offer, const PeerLink& link);
  void look_for_gone();
  void warn(const std::string& why);

  std::size_t ranks_;
  std::vector<Known> known_;
  std::vector<News> news_;
  std::vector<std::string> warned_;
};

}  // namespace quadriga::message
