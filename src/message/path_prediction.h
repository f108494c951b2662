// SPDX-License-Identifier: BSD-3-Clause
// src/message/path_prediction.h: the paths of a message between two ranks, their seconds, and which
// one is taken: pure, by what is known of the pair and of the machine.
#pragma once

#include <quadriga/message_prediction.h>

#include <vector>

#include "message/peer_memory.h"
#include "message/transfer.h"

namespace quadriga::message {

/// What copies and notices between processes of this host take.
struct HostRates {
  double bytes_per_second = 0;
  double latency_seconds = 0;
};
/// The rate of this process's large copies, and what a message of 8 bytes takes between two of its
/// threads, measured when first asked for, within some 20 ms: as the machine is at that time.
/// Errors: unavailable if there can be no further thread.
const HostRates& host_rates();

/// What a prediction depends on.
struct PathQuestion {
  MessageBuffer from;
  MessageBuffer into;      ///< Memory like the receive's: only its port, device and layout count.
  bool is_own = false;     ///< The receiver is this rank.
  bool is_thread = false;  ///< It is a thread of this process.
  bool can_read = false;   ///< It may read this process's memory, as far as is known.
  std::size_t slot_bytes = 0;  ///< That a slot takes besides the envelope.
  std::size_t piece_bytes = 0;
  PairPath known = PairPath::unknown;  ///< Of devices: what the pair found out.
  HostRates rates{};
};

/// Each path with its seconds; one is chosen. Between memory of devices the machine's links count.
std::vector<PredictedPath> predicted_paths(const PathQuestion& question);

}  // namespace quadriga::message
