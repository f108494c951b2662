// SPDX-License-Identifier: BSD-3-Clause
// src/message/transfer.h: one send or receive from its start to its end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "message/layout/layout.h"
#include "message/wire/claims.h"

namespace quadriga::message {

class DeviceMove;
class DevicePort;
class DeviceReader;
class DeviceWriter;
class StreamOrder;

/// What a call does, for errors and for what a rank says that it waits for.
enum class CallKind : std::uint8_t {
  none,
  send,
  recv,
  probe,
  barrier,
  bcast,
  reduce,
  allreduce,
  gather,
  allgather,
  scatter,
  alltoall,
  split,
  close,
  reduce_scatter,
  gatherv,
  allgatherv,
  scatterv,
  alltoallv,
  alltoallw,
  neighbor_alltoall,
};
std::string_view name(CallKind operation) noexcept;

/// The ranks of a communicator, as ranks of the world, and which one this is.
struct Group {
  std::vector<int> world;
  int rank = 0;
  int size() const noexcept { return static_cast<int>(world.size()); }
  /// -1 if it doesn't belong to the group.
  int rank_of(int world_rank) const noexcept;
};

using MessageStatus = Status;

/// Elements in memory, from where or to where they travel.
struct MessageBuffer {
  Layout layout;
  std::byte* data = nullptr;              ///< What the layout's offsets count from.
  std::shared_ptr<DevicePort> port = {};  ///< Whose memory it is; null: the host's.
  std::uint16_t device = 0;               ///< Of the port.

  bool on_device() const noexcept { return port != nullptr; }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(layout.bytes()); }
  /// Where the bytes are if they lie side by side; else null. Only a port reads a device's.
  std::byte* flat() const noexcept;
};

/// Why the collectives of a communicator are over.
struct ContextAbort {
  std::uint64_t context = 0;
  std::string text;
  int lost = -1;  ///< The rank of the world that is lost, if that is why.
  /// PeerLost, or an Error of code cancelled.
  std::exception_ptr error(const Group& group) const;
};

/// What becomes of a cancelled send whose receiver has begun to read it.
enum class BegunSends : std::uint8_t { withdrawn, kept };

/// A send or a receive. Guarded by its endpoint's lock, but for `done`.
struct MessageTransfer {
  using Clock = std::chrono::steady_clock;
  bool sends = false;
  CallKind operation = CallKind::none;
  MessageBuffer place;
  int peer = 0;  ///< Of the world; any_source.
  int tag = 0;
  std::uint64_t context = 0;
  std::shared_ptr<const Group> group;
  /// Lives as long as the memory may be touched; let go without the lock, once it has ended.
  std::shared_ptr<void> keep;

  std::atomic<bool> done{false};  ///< What follows doesn't change afterwards.
  std::exception_ptr error;
  MessageStatus status;

  // Of a large message.
  Claim claim;
  int sender = 0;             ///< Of the world.
  std::uint64_t address = 0;  ///< In the sender's memory.
  std::size_t expected = 0;   ///< Bytes.
  std::size_t moved = 0;
  Clock::time_point matched{};  ///< Of a receive: when its message was there.
  // Of a message from or to memory of devices.
  std::shared_ptr<DeviceReader> reader;
  std::shared_ptr<DeviceWriter> writer;
  std::shared_ptr<DeviceMove> copier;
  /// The program's stream that it is ordered with; null: the host's calls alone are.
  std::shared_ptr<StreamOrder> order;
  bool is_led = false;  ///< The stream waits for its end.

  /// "recv from rank 1, tag 5".
  std::string text() const;
  /// As if it had never started, for the same message again.
  void renew(std::shared_ptr<void> with) noexcept;
  /// Ends it; waiters look at `done` without the lock.
  void finish(std::exception_ptr with = nullptr) noexcept;
  /// Whether only what is queued on devices is left to be done.
  bool is_queued() const noexcept;
  /// Waits for what devices still do for it, and gives back what that took.
  void stop_moving() noexcept;
};
using TransferPtr = std::shared_ptr<MessageTransfer>;

/// The order of those that remain doesn't change.
inline void remove(std::vector<TransferPtr>& from, std::size_t index) {
  from.erase(from.begin() + static_cast<std::ptrdiff_t>(index));
}

}  // namespace quadriga::message
