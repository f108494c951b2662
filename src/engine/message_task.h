// SPDX-License-Identifier: BSD-3-Clause
// src/engine/message_task.h: one message or collective that a task is.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/engine.h>
#include <quadriga/promise.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/message_rooms.h"
#include "message/communicator.h"

namespace quadriga {

class Courier;
class MessageLane;

/// What a task does.
struct MessageCall {
  message::CallKind kind = message::CallKind::send;
  int peer = -1;  ///< The other rank, -1: any; of a collective its root, -1: it has none.
  int tag = 0;    ///< -1: any.
  message::ReduceOperation operation = message::ReduceOperation::sum;
  double seconds = -1;  ///< That it may take from its start; negative: no limit.
};

/// The elements of an operand in the order in which they travel, wherever its tile is.
struct MessageShape {
  message::Layout element;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  ///< In bytes.
  int leading = -1;  ///< The index whose stride is the tile's leading dimension; -1: none is.

  /// Column by column, for the engine's types.
  static MessageShape of(const View& view);
  message::MessageBuffer at(const View& view) const;
};

/// An operand of a message. Its mode follows from the call.
struct MessageOperand {
  Data data;
  MessageShape shape;
};

/// From its submission to its end; shared by the engine's task, the transfer and whoever asks.
struct MessageTask : std::enable_shared_from_this<MessageTask> {
  enum class State : std::uint8_t { submitted, held, started, over };

  // Written before it is submitted.
  MessageCall call;
  std::string name;
  std::shared_ptr<MessageLane> lane;
  Courier* courier = nullptr;
  std::vector<MessageShape> shapes;
  View tile;                 ///< Of a send or receive: its operand, side by side, nowhere.
  int from = -1;             ///< The operand that is sent; -1: none.
  int into = -1;             ///< The one that receives; -1: none.
  std::uint64_t number = 0;  ///< In the lane's order.

  // Written when its body runs.
  std::uint64_t id = 0;
  std::vector<message::MessageBuffer> places;
  Promise promise;
  std::atomic<bool> ran{false};

  // Written by the driver before it starts or its body runs.
  std::shared_ptr<MessageRoom> room;  ///< Where it lies on a device meanwhile; null: by the host.
  /// Of a receive into a room: opens its task once the message has come, or failed.
  std::function<void(std::atomic<bool>& has_come)> reopen;

  std::atomic<bool> has_come{false};  ///< `fault` is written.
  std::exception_ptr fault;           ///< Why a receive into a room can't go on.

  // Guarded by the courier's lock, or by who started it until then.
  State state = State::submitted;
  message::TransferPtr transfer;
  std::exception_ptr refused;  ///< It mustn't go on, for this reason.
  std::chrono::steady_clock::time_point begin;
  Nanoseconds started = 0;  ///< By the engine's clock.
  message::MessageStatus status;

  /// Set by the first of two: who started it and the end of its transfer; of a collective, who
  /// submitted it and the end of one that never ran.
  std::atomic<bool> met{false};
  std::atomic<bool> has_status{false};  ///< `status` is written.

  bool is_collective() const noexcept { return call.kind > message::CallKind::probe; }
  bool sends() const noexcept { return call.kind == message::CallKind::send; }
  const message::MessageBuffer& place(int index) const noexcept {
    static const message::MessageBuffer none;
    return index < 0 ? none : places[static_cast<std::size_t>(index)];
  }
};
using MessageTaskPtr = std::shared_ptr<MessageTask>;

/// What the messages of tasks were, for counters.
struct MessageCounters {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_direct = 0;  ///< Of both: from or to memory of devices, not by the host.
  std::uint64_t collectives = 0;
};

}  // namespace quadriga
