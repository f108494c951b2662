// SPDX-License-Identifier: BSD-3-Clause
// src/message/program_streams.cpp: marks, calls and waits: on CUDA's streams by the backend, on
// those of emulated devices by their tickets.
#include "message/program_streams.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace quadriga::message {
namespace {

// CUDA's numbers 0 to 2 are no handles.
constexpr std::uintptr_t first_handle = 3;

// Stands for all streams of a CUDA device.
constexpr std::uintptr_t every_stream = 0;

// The end of what all streams of a device hold, for which no event stands: a thread waits there.
class DeviceEnd final : public ForeignEvent {
 public:
  void queue_wait(void*) const override {
    ended_.wait(false);
    static_cast<void>(is_reached());
  }
  bool is_reached() const override {
    if (!ended_.load()) return false;
    if (error_) std::rethrow_exception(error_);
    return true;
  }
  void end(std::exception_ptr error) noexcept {
    error_ = std::move(error);
    ended_.store(true);
    ended_.notify_all();
  }

 private:
  std::exception_ptr error_;  // Written before `ended_` is.
  std::atomic<bool> ended_{false};
};

StreamId id_of(std::uintptr_t stream) { return static_cast<StreamId>(stream - first_handle); }

}  // namespace

ProgramStreams::ProgramStreams(Backend& backend, PortOperations& operations, bool is_cuda,
                               std::function<std::shared_ptr<void>()> hold)
    : backend_(backend), operations_(operations), is_cuda_(is_cuda), hold_(std::move(hold)) {
  tells_ = !is_cuda_ && backend_.tell([this] {
    ++ended_;
    ended_.notify_all();
  });
}

std::uintptr_t ProgramStreams::open(DeviceId device) {
  require(!is_cuda_, "open_stream: streams of CUDA devices are the program's own");
  const std::size_t devices = backend_.machine().devices.size();
  require(device < devices,
          fmt::format("open_stream: device {}; expected 0 to {}", device, devices - 1));
  const StreamId made = operations_.open(device);
  const std::lock_guard lock(mutex_);
  opened_.push_back(made);
  return made + first_handle;
}

// Errors: invalid_argument with those words if none was opened by that number.
StreamId ProgramStreams::opened(std::uintptr_t stream, const char* why_not) {
  const std::lock_guard lock(mutex_);
  require(std::ranges::count(opened_, id_of(stream)) == 1, why_not);
  return id_of(stream);
}

void ProgramStreams::call(std::uintptr_t stream, std::function<void()> function) {
  const StreamId id = opened(stream, "call: these devices have no such stream");
  // It ends with its call, on the stream's thread: it may hold what only that may destroy.
  const auto held = std::make_shared<std::function<void()>>(std::move(function));
  operations_.call(id, [held](const Arguments&) {
    try {
      (*held)();
    } catch (const std::exception& error) {
      log(LogLevel::error, std::string("what a stream called failed: ") + error.what());
    } catch (...) {
      log(LogLevel::error, "what a stream called failed: it threw no std::exception");
    }
    *held = nullptr;
  });
}

void ProgramStreams::synchronize(DeviceId device, std::uintptr_t stream) {
  if (is_cuda_) return backend_.synchronize(device, stream);
  wait_for(mark(device, stream));
}

// A thread waits for the device, and holds the port for as long as that is at work, even if nobody
// asks any more. Null: the port is about to go.
// What is queued after this call may count, too: the thread is about to ask the device.
std::shared_ptr<ForeignEvent> ProgramStreams::end_of_all(DeviceId device) {
  std::shared_ptr<void> held = hold_();
  if (!held) return nullptr;
  auto made = std::make_shared<DeviceEnd>();
  auto begun = std::make_shared<std::atomic<bool>>(false);
  start_thread("quadriga waiter", [this, made, begun, held = std::move(held), device] {
    begun->store(true);
    begun->notify_all();
    std::exception_ptr error;
    try {
      backend_.synchronize(device, every_stream);
    } catch (...) {
      error = std::current_exception();
    }
    made->end(std::move(error));
  }).detach();
  begun->wait(false);
  return made;
}

StreamMark ProgramStreams::mark(DeviceId device, std::uintptr_t stream) {
  if (is_cuda_ && stream == every_stream)
    if (std::shared_ptr<ForeignEvent> end = end_of_all(device)) return {std::move(end)};
  if (is_cuda_) return {backend_.mark(device, stream)};
  if (stream < first_handle) return {};
  return {nullptr, operations_.last(opened(
                       stream,
                       "the stream isn't one of the devices that have the array; expected one of "
                       "their open_stream()"))};
}

bool ProgramStreams::is_reached(const StreamMark& mark) {
  return (!mark.event || mark.event->is_reached()) && operations_.has_ended(mark.ticket);
}

// What ends after the look changes `ended_` after `before`.
void ProgramStreams::wait_for(const StreamMark& mark) {
  while (true) {
    const std::uint32_t before = ended_.load();
    if (is_reached(mark)) return;
    if (tells_)
      ended_.wait(before);
    else
      std::this_thread::yield();
  }
}

bool ProgramStreams::lead(DeviceId device, PortLane lane, std::uintptr_t stream) {
  if (!is_cuda_) {
    if (stream < first_handle) return false;
    operations_.follow(id_of(stream), device, lane);
    return true;
  }
  // The variant is called where the lane's operations are queued, after all that came before.
  enum class Led : std::uint8_t { not_yet, yes, no };
  const auto led = std::make_shared<std::atomic<Led>>(Led::not_yet);
  const PortTicket ticket =
      operations_.launch(device, lane, [this, led, device, stream](const Arguments& call) {
        bool done = false;
        try {
          done = backend_.lead(device, call.stream, stream);
        } catch (...) {
          *led = Led::no;
          throw;
        }
        *led = done ? Led::yes : Led::no;
      });
  while (*led == Led::not_yet && !operations_.has_ended(ticket)) std::this_thread::yield();
  return *led == Led::yes;
}

}  // namespace quadriga::message
