// SPDX-License-Identifier: BSD-3-Clause
// src/message/program_streams.h: streams of the program beside a port's lanes: CUDA's, or those
// that are opened here on emulated devices.
//
// Invariants
//   1. `mutex_` guards `opened_`; a stream that is there stays.
//   2. What the program's streams call runs for as long as it likes: who waits for it holds no
//      lock, and sleeps until `ended_` has changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "device/backend.h"
#include "message/port_operations.h"

namespace quadriga::message {

/// A point in a stream of the program's.
struct StreamMark {
  std::shared_ptr<ForeignEvent> event = {};  ///< Of CUDA; null: it was reached.
  PortTicket ticket = {};                    ///< Of an emulated device.
};

class ProgramStreams {
 public:
  /// Nothing is queued yet. `hold` keeps all of these for a while; null: they are about to go.
  ProgramStreams(Backend& backend, PortOperations& operations, bool is_cuda,
                 std::function<std::shared_ptr<void>()> hold);

  /// A stream for the program, where devices are emulated; its number, as CUDA's have one.
  std::uintptr_t open(DeviceId device);
  /// Queues a function there; what it throws is logged. It may wait for as long as it likes, and
  /// be the last to hold the port.
  void call(std::uintptr_t stream, std::function<void()> function);
  /// Waits until what others queued on a stream has ended, as Backend::synchronize() counts them.
  void synchronize(DeviceId device, std::uintptr_t stream);

  /// What a stream of the program holds now.
  StreamMark mark(DeviceId device, std::uintptr_t stream);
  /// Whether it has come there. Errors: device_lost.
  bool is_reached(const StreamMark& mark);
  /// Waits until it has. Errors: device_lost.
  void wait_for(const StreamMark& mark);
  /// Makes what is queued later on a stream of the program wait for what a lane holds. False if it
  /// can't, as Backend::lead().
  bool lead(DeviceId device, PortLane lane, std::uintptr_t stream);

 private:
  StreamId opened(std::uintptr_t stream, const char* why_not);
  std::shared_ptr<ForeignEvent> end_of_all(DeviceId device);

  Backend& backend_;
  PortOperations& operations_;
  const bool is_cuda_;
  const std::function<std::shared_ptr<void>()> hold_;
  bool tells_ = false;                   ///< `ended_` counts; const once this is made.
  std::atomic<std::uint32_t> ended_{0};  ///< Changes once an operation's end can be looked up.
  std::mutex mutex_;
  std::vector<StreamId> opened_;
};

}  // namespace quadriga::message
