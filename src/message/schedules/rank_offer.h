// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/rank_offer.h: what a rank can do for a collective; what all can counts.
#pragma once

#include <quadriga/machine.h>

#include <algorithm>

namespace quadriga::message {

/// Travels with the agreement, so that no rank's view alone decides: plans that differ would make
/// ranks wait for each other for ever.
struct RankOffer {
  /// At which this rank's device reads another one's memory; 0: its data are the host's.
  double device_bytes_per_second = 0;
  /// What a message between devices costs there beside its bytes.
  MessageCost message = {};

  bool on_devices() const noexcept { return device_bytes_per_second > 0; }
  /// Whether a rank may offer it: all in numbers that times follow from.
  bool is_valid() const noexcept {
    const auto within = [](double number, double least, double most) {
      return number >= least && number <= most;
    };
    return (device_bytes_per_second == 0 || within(device_bytes_per_second, 1, 1e18)) &&
           within(message.latency_seconds, 0, 1) &&
           within(message.busy_seconds, 0, message.latency_seconds);
  }
  /// What two ranks can.
  RankOffer and_also(const RankOffer& other) const noexcept {
    return {std::min(device_bytes_per_second, other.device_bytes_per_second),
            {std::max(message.latency_seconds, other.message.latency_seconds),
             std::max(message.busy_seconds, other.message.busy_seconds)}};
  }
  bool operator==(const RankOffer&) const = default;
};

}  // namespace quadriga::message
