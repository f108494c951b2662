// SPDX-License-Identifier: BSD-3-Clause
// src/message/started_collectives.cpp: the thread that carries collectives out, and who waits.
#include "message/started_collectives.h"

#include <quadriga/error.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/process.h"
#include "base/thread.h"
#include "message/waiting.h"

namespace quadriga::message {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Any number that nobody else uses.
constexpr std::uint64_t of_started = 0x73746172746564;

// Between questions of an interrupt.
constexpr auto asks_each = 50ms;

}  // namespace

StartedCollective::StartedCollective(CallKind kind, const CommunicatorCore& core, Call call)
    : kind_(kind),
      endpoint_(core.shared_endpoint()),
      group_(std::make_shared<Group>(core.group())),
      owner_(process_id()),
      call_(std::move(call)) {}

bool StartedCollective::has_ended() const {
  const std::lock_guard lock(mutex_);
  return is_over_;
}

void StartedCollective::end(std::exception_ptr error) noexcept {
  {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    is_over_ = true;
  }
  ended_.notify_all();
}

void StartedCollective::wait(const Patience& patience) const {
  check_not_forked(owner_, "this communicator");
  const auto begin = Clock::now();
  const Clock::time_point until = end_of(patience, begin);
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    const auto now = Clock::now();
    if (now >= until) {
      lock.unlock();
      Posting what;
      what.operation = kind_;
      what.peer = any_source;
      what.group = group_;
      // Its error says what each rank waits for.
      endpoint_->wait_for([this] { return has_ended(); }, what, {patience.seconds, {}, begin});
      lock.lock();
      continue;
    }
    ended_.wait_until(lock, std::min(until, now + asks_each));
    if (is_over_ || !patience.interrupt) continue;
    lock.unlock();
    patience.interrupt();
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
}

bool StartedCollective::test() const {
  check_not_forked(owner_, "this communicator");
  const std::lock_guard lock(mutex_);
  if (is_over_ && error_) std::rethrow_exception(error_);
  return is_over_;
}

StartedCollectives::StartedCollectives(const CommunicatorCore& communicator)
    : core_(communicator.apart(of_started)), owner_(process_id()) {}

StartedCollectives::~StartedCollectives() {
  if (process_id() != owner_) {
    if (thread_.joinable()) thread_.detach();
    return;
  }
  if (!thread_.joinable()) return;
  bool is_busy = false;
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    is_busy = !queue_.empty();
  }
  if (is_busy) core_.give_up("its communicator was dropped");
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<StartedCollective> StartedCollectives::start(CallKind kind,
                                                             StartedCollective::Call call) {
  check_not_forked(owner_, "this communicator");
  auto made = std::make_shared<StartedCollective>(kind, core_, std::move(call));
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = start_thread("quadriga starts", [this] { run(); });
    queue_.push_back(made);
  }
  changed_.notify_all();
  return made;
}

void StartedCollectives::refuse(CallKind kind, const std::string& why) {
  start(kind, [kind, why](CommunicatorCore& core) { core.refuse(kind, why, {}); });
}

void StartedCollectives::force(const TreeOptions& options) {
  start(CallKind::none, [options](CommunicatorCore& core) { core.force(options); });
}

// One is in the queue as long as it runs, so that the destructor knows of it; not when its waiters
// see its end, after which they may drop the communicator while other ranks still carry it out.
// After a loss, or once the context is over, those that follow end at once by the same error.
void StartedCollectives::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::shared_ptr<StartedCollective> next = queue_.front();
    lock.unlock();
    std::exception_ptr error;
    try {
      next->call_(core_);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    queue_.pop_front();
    lock.unlock();
    next->end(std::move(error));
    next.reset();  // It may let memory go.
    lock.lock();
  }
}

}  // namespace quadriga::message
