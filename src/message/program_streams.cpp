// SPDX-License-Identifier: BSD-3-Clause
// src/message/program_streams.cpp: streams of the program beside a port's own: CUDA's, or those
// that the port opens on emulated devices.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "base/log.h"
#include "message/device_port.h"

namespace quadriga::message {
namespace {

// CUDA's numbers 0 to 2 are no handles.
constexpr std::uintptr_t first_handle = 3;

StreamId id_of(std::uintptr_t stream) { return static_cast<StreamId>(stream - first_handle); }

}  // namespace

std::uintptr_t DevicePort::open_stream(DeviceId device) {
  require(!is_cuda_, "open_stream: streams of CUDA devices are the program's own");
  require(device < machine().devices.size(), fmt::format("open_stream: device {}; expected 0 to {}",
                                                         device, machine().devices.size() - 1));
  const std::lock_guard lock(mutex_);
  const StreamId made = backend_->create_stream(device, StreamKind::compute);
  reached_.resize(made + 1);
  issued_.resize(made + 1);
  program_streams_.push_back(made);
  return made + first_handle;
}

void DevicePort::call(std::uintptr_t stream, std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  require(std::ranges::count(program_streams_, id_of(stream)) == 1,
          "call: these devices have no such stream");
  // It ends with its call, on the stream's thread: it may hold what only that may destroy.
  const auto held = std::make_shared<std::function<void()>>(std::move(function));
  const auto logged = [held](const Arguments&) {
    try {
      (*held)();
    } catch (const std::exception& error) {
      log(LogLevel::error, std::string("what a stream called failed: ") + error.what());
    } catch (...) {
      log(LogLevel::error, "what a stream called failed: it threw no std::exception");
    }
    *held = nullptr;
  };
  launch_on(id_of(stream), logged, true);
}

void DevicePort::synchronize(DeviceId device, std::uintptr_t stream) {
  if (is_cuda_) return backend_->synchronize(device, stream);
  wait_for(mark(device, stream));
}

StreamMark DevicePort::mark(DeviceId device, std::uintptr_t stream) {
  if (is_cuda_) return {backend_->mark(device, stream)};
  if (stream < first_handle) return {};
  const std::lock_guard lock(mutex_);
  const StreamId id = id_of(stream);
  require(std::ranges::count(program_streams_, id) == 1,
          "the stream isn't one of the devices that have the array; expected one of their "
          "open_stream()");
  return {nullptr, {id, issued_[id]}};
}

bool DevicePort::is_reached(const StreamMark& mark) {
  return (!mark.event || mark.event->is_reached()) && has_ended(mark.ticket);
}

// What ends after the look changes `ended_` after `before`.
void DevicePort::wait_for(const StreamMark& mark) {
  while (true) {
    const std::uint32_t before = ended_.load();
    if (is_reached(mark)) return;
    if (tells_)
      ended_.wait(before);
    else
      std::this_thread::yield();
  }
}

bool DevicePort::lead(DeviceId device, Lane lane, std::uintptr_t stream) {
  if (!is_cuda_) {
    if (stream < first_handle) return false;
    const std::lock_guard lock(mutex_);
    const StreamId own = this->stream(device, lane);
    if (issued_[own] > 0) {
      backend_->wait(id_of(stream), {own, issued_[own]});
      launch_on(
          id_of(stream), [](const Arguments&) {}, true);  // Marks come behind it.
    }
    return true;
  }
  // The variant is called where the lane's operations are queued, after all that came before.
  enum class Led : std::uint8_t { not_yet, yes, no };
  const auto led = std::make_shared<std::atomic<Led>>(Led::not_yet);
  const PortTicket ticket =
      launch(device, lane, [this, led, device, stream](const Arguments& call) {
        bool done = false;
        try {
          done = backend_->lead(device, call.stream, stream);
        } catch (...) {
          *led = Led::no;
          throw;
        }
        *led = done ? Led::yes : Led::no;
      });
  while (*led == Led::not_yet && !has_ended(ticket)) std::this_thread::yield();
  return *led == Led::yes;
}

}  // namespace quadriga::message
