// SPDX-License-Identifier: BSD-3-Clause
// src/message/nccl/nccl_group.cpp: calls NCCL, asks how far it is, and ends it.
#include "message/nccl/nccl_group.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <functional>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/process.h"
#include "base/thread.h"

namespace quadriga::message {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto nccl_looks_each = std::chrono::microseconds(100);

// Whether it came true in time.
bool comes_true(const std::function<bool()>& is_true, Clock::duration patience) {
  const auto until = Clock::now() + patience;
  while (!is_true()) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(nccl_looks_each);
  }
  return true;
}

}  // namespace

NcclGroup::NcclGroup(const NcclLibrary& library, Home home, int ranks, int rank, const NcclId& id)
    : library_(library),
      home_(std::move(home)),
      ranks_(ranks),
      owner_(process_id()),
      handle_(std::make_shared<NcclHandle>(nullptr)) {
  int result = nccl_success;
  home_.port->operations().prepare(home_.device, PortLane::nccl, [&](const Arguments& call) {
    stream_ = call.stream;
    result = library_.start(*handle_, ranks, id, rank);
  });
  if (result == nccl_success || result == nccl_in_progress) return;
  abandon();
  check(result);
}

NcclGroup::~NcclGroup() {
  if (state_ == State::dead || process_id() != owner_) return;
  if (state_ != State::idle || !end_with_others()) abandon();
}

void NcclGroup::check(int result) const {
  if (result != nccl_success && result != nccl_in_progress)
    fail(Errc::unavailable,
         fmt::format("NCCL {} failed: {}", library_.version_text(), library_.error_text(result)));
}

bool NcclGroup::is_through() {
  const int result = library_.async_error(*handle_);
  check(result);
  return result == nccl_success;
}

bool NcclGroup::is_joined() {
  if (state_ == State::joining && is_through()) state_ = State::idle;
  return state_ != State::joining;
}

void NcclGroup::start(const NcclCall& call, const void* from, void* into) {
  const int type = call.numbers.type;
  const int operation = call.numbers.operation;
  const bool is_of_parts =
      call.kind == TreeCollective::all_gather || call.kind == TreeCollective::reduce_scatter;
  const auto count =
      static_cast<std::size_t>(call.bytes / call.numbers.item_bytes / (is_of_parts ? ranks_ : 1));
  const auto result = [&] {
    switch (call.kind) {
      case TreeCollective::broadcast:
        return library_.broadcast(from, into, count, type, call.root, *handle_, stream_);
      case TreeCollective::reduce:
        return library_.reduce(from, into, count, type, operation, call.root, *handle_, stream_);
      case TreeCollective::all_reduce:
        return library_.all_reduce(from, into, count, type, operation, *handle_, stream_);
      case TreeCollective::reduce_scatter:
        return library_.reduce_scatter(from, into, count, type, operation, *handle_, stream_);
      case TreeCollective::all_gather:
        break;
    }
    return library_.all_gather(from, into, count, type, *handle_, stream_);
  }();
  state_ = State::queueing;
  last_ = {};
  check(result);
}

bool NcclGroup::has_ended() {
  if (state_ == State::queueing && is_through()) {
    // Its end is that of what is queued behind it.
    last_ = home_.port->operations().launch(home_.device, PortLane::nccl, [](const Arguments&) {});
    state_ = State::running;
  }
  if (state_ != State::running) return state_ == State::idle;
  if (home_.port->operations().has_ended(last_)) {
    state_ = State::idle;
    return true;
  }
  static_cast<void>(is_through());
  return false;
}

// Others may still read what NCCL has here.
bool NcclGroup::end_with_others() noexcept {
  try {
    check(library_.finalize(*handle_));
    if (!comes_true([&] { return is_through(); }, patience_for_end)) return false;
    state_ = State::dead;
    library_.destroy(*handle_);
    return true;
  } catch (const std::exception& error) {
    log(LogLevel::debug, std::string("messages: ") + error.what());
    return false;
  }
}

// NCCL waits for the device there: not in the caller's thread, which mustn't wait for ever.
void NcclGroup::abandon() noexcept {
  const State before = std::exchange(state_, State::dead);
  if (before == State::dead || *handle_ == nullptr) return;
  try {
    const auto ended = std::make_shared<std::atomic<bool>>(false);
    start_thread("quadriga nccl", [library = &library_, handle = handle_, ended] {
      library->abort(*handle);
      *ended = true;
    }).detach();
    bool is_over = comes_true([&] { return ended->load(); }, patience_for_abort);
    PortOperations& operations = home_.port->operations();
    if (is_over && before == State::queueing)
      last_ = operations.launch(home_.device, PortLane::nccl, [](const Arguments&) {});
    if (is_over && (before == State::queueing || before == State::running))
      is_over = comes_true([&] { return operations.has_ended(last_); }, patience_for_abort);
    if (!is_over)
      log(LogLevel::error,
          "messages: NCCL doesn't end a collective that was given up; it may still use its arrays");
  } catch (const std::exception& error) {
    log(LogLevel::debug, std::string("messages: ") + error.what());
  }
}

}  // namespace quadriga::message
