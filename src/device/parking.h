// SPDX-License-Identifier: BSD-3-Clause
// src/device/parking.h: operations that can't be queued on their streams yet, kept in order.
//
// Invariants
//   1. Operations of a stream are queued in the order of add(): while one of them is parked, or
//      the stream is held, later ones are parked behind it.
//   2. `order_` lists each stream with parked operations once.
//   3. It knows no thread and no device; its caller says which operations can be queued. One thread
//      at a time uses it.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "device/operation.h"

namespace quadriga {

class Parking {
 public:
  /// `can_queue` tells of an operation at the front of its stream whether it may be queued;
  /// `queue` does it, and may hold the stream.
  Parking(std::function<bool(StreamId, const Operation&)> can_queue,
          std::function<void(StreamId, const Operation&)> queue)
      : can_queue_(std::move(can_queue)), queue_(std::move(queue)) {}

  /// Queues an operation, or parks it.
  void add(StreamId stream, const Operation& operation);
  /// Parks all that comes on a stream until release(): an operation of it is still being queued.
  void hold(StreamId stream) { place(stream).held = true; }
  void release(StreamId stream) { place(stream).held = false; }
  /// Queues what can be queued by now; false if there is nothing. Called after anything that
  /// changes this, as release().
  bool look();
  /// Whether nothing is parked.
  bool empty() const noexcept { return order_.empty(); }

 private:
  struct Place {
    bool held = false;
    std::deque<Operation> parked;
  };

  Place& place(StreamId stream);
  bool queue_front(StreamId stream);

  const std::function<bool(StreamId, const Operation&)> can_queue_;
  const std::function<void(StreamId, const Operation&)> queue_;
  std::deque<Place> places_;  // By stream; never moved.
  std::vector<StreamId> order_;
};

}  // namespace quadriga
