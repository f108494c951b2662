// SPDX-License-Identifier: BSD-3-Clause
// src/engine/message_tasks.h: sends, receives and collectives among an engine's tasks.
//
// Invariants
//   1. A send or receive is a detached task: its body leaves it to its lane, which starts it when
//      its turn has come; its transfer's end keeps its promise. No thread waits for it but the
//      courier's one, which serves all.
//   2. A collective is a task that blocks, in a sequence of its communicator: one at a time, in the
//      order of submission.
//   3. Where data lie on a device, a message leaves from a room there (message_rooms.h), which the
//      task's variant fills, and comes into one, which its variant empties. A receive's task is
//      deferred until the message has come: neither keeps an operand on a device meanwhile.
//   4. What ends without having run leaves its lane's order; a collective then tells other ranks.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/courier.h"
#include "engine/message_lane.h"
#include "engine/message_rooms.h"
#include "engine/message_task.h"

namespace quadriga {

class MessageTasks {
 public:
  explicit MessageTasks(Engine& engine);
  /// An engine's, made when they are first asked for. Any thread.
  static MessageTasks& of(Engine& engine);
  /// An engine's counters so far, also if it has none.
  static MessageCounters counted(const Engine& engine);
  ~MessageTasks();

  /// A task that isn't submitted yet. `from`, `into`: the operands' places, -1 for none; where both
  /// are the same, the operand is updated.
  /// Errors: unavailable under the virtual clock; invalid_argument for a rank, tag or kind of call.
  MessageTaskPtr make(std::shared_ptr<MessageLane> lane, const MessageCall& call,
                      std::vector<MessageShape> shapes, int from, int into);
  /// Errors: as Engine::submit(); invalid_argument while another engine has collectives of the
  /// communicator.
  Future submit(const MessageTaskPtr& task, std::span<const Data> data, SubmitOptions options = {});
  /// Keeps a message from starting, or withdraws it; false if that is too late.
  static bool refuse(const MessageTaskPtr& task, const std::exception_ptr& why) {
    return task->courier->refuse(task, why);
  }

  /// While on, all end cancelled. Engine::cancel() and the engine's end call it.
  void cancel(bool on);
  std::string status();
  MessageCounters counters() const;
  void reset_counters();

 private:
  class Left;
  Courier& courier_for(const std::shared_ptr<message::Endpoint>& endpoint);
  void note(const MessageTask& task, bool failed);
  void begin(const MessageTaskPtr& task, const Arguments& arguments);
  void collect(const MessageTaskPtr& task, const Arguments& arguments);
  static void copy(const MessageTask& task, const Arguments& arguments);
  static void call(MessageTask& task, const message::Patience& patience);

  Engine& engine_;
  const std::shared_ptr<MessageRooms> rooms_;
  const bool is_logged_;  ///< Replays know nothing of messages: these go by way of the host.
  const std::shared_ptr<void> alive_ = std::make_shared<int>(0);
  mutable std::mutex mutex_;  ///< Guards the members below.
  MessageCounters counters_;
  std::vector<std::unique_ptr<Courier>> couriers_;
};

}  // namespace quadriga
