// SPDX-License-Identifier: BSD-3-Clause
// src/engine/courier.h: moves the messages of an engine's tasks, by a thread for each endpoint.
//
// Invariants
//   1. mutex_ guards the members after it and the states of tasks. No call of the endpoint and no
//      promise is made while it is held: both may lead back here.
//   2. A task is in `tasks_` from its body's end to its own. It ends once, when its transfer lets
//      go of its memory and who started it has seen that: MessageTask::met.
//   3. The thread waits within the endpoint while a message of a task is open, so that all of them
//      move on without anybody's call; else it sleeps. Every 50 ms it looks at deadlines.
//   4. What might start messages or tell other ranks, where others wait for the caller, is left to
//      the thread by later().
//   5. A task's promise is kept, or the task of a receive into a room opened, as the last step of
//      its end, and nothing of the courier's is used afterwards: the engine may go then.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/message_task.h"

namespace quadriga {

class Courier {
 public:
  /// What is to be known of a message that ended; `error` null: well. Any thread.
  using Told = std::function<void(const MessageTask& task, bool failed)>;

  Courier(std::shared_ptr<message::Endpoint> endpoint, std::function<Nanoseconds()> now, Told told);
  /// All tasks have ended.
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;
  const message::Endpoint& endpoint() const noexcept { return *endpoint_; }

  /// Its body runs. Throws why it mustn't go on.
  void hold(const MessageTaskPtr& task);
  /// A collective runs, by a thread of its own, between these.
  void begin_collective(const MessageTaskPtr& task);
  void end_collective(const MessageTaskPtr& task, bool failed);
  /// Its turn has come.
  void start(const MessageTaskPtr& task);
  /// Ends it early with this error; false if that is too late.
  bool refuse(const MessageTaskPtr& task, const std::exception_ptr& why);
  /// While on, all tasks end cancelled, and those that come.
  void cancel(bool on);
  void later(std::function<void()> work);
  /// A line for each open message; empty if there is none.
  std::string status();

 private:
  void run();
  void run_later(std::unique_lock<std::mutex>& lock);
  void look();
  MessageTaskPtr open_task() const;
  void arrive(MessageTaskPtr task);
  void end(MessageTaskPtr task);

  const std::shared_ptr<message::Endpoint> endpoint_;
  const std::function<Nanoseconds()> now_;
  const Told told_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<MessageTaskPtr> tasks_;
  std::vector<std::function<void()>> later_;
  bool cancelled_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace quadriga
