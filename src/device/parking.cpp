// SPDX-License-Identifier: BSD-3-Clause
// src/device/parking.cpp: what is parked, and when it goes on.
#include "device/parking.h"

namespace quadriga {

Parking::Place& Parking::place(StreamId stream) {
  if (stream >= places_.size()) places_.resize(stream + 1);
  return places_[stream];
}

void Parking::add(StreamId stream, const Operation& operation) {
  Place& here = place(stream);
  if (!here.held && here.parked.empty() && can_queue_(stream, operation)) {
    queue_(stream, operation);
    return;
  }
  if (here.parked.empty()) order_.push_back(stream);
  here.parked.push_back(operation);
}

bool Parking::queue_front(StreamId stream) {
  Place& here = place(stream);
  if (here.held || here.parked.empty() || !can_queue_(stream, here.parked.front())) return false;
  const Operation operation = std::move(here.parked.front());
  here.parked.pop_front();
  queue_(stream, operation);
  return true;
}

// What one stream queues may be what another one waits for.
bool Parking::look() {
  bool any = false;
  for (bool moved = true; moved; any |= moved) {
    moved = false;
    for (const StreamId stream : order_)
      while (queue_front(stream)) moved = true;
  }
  std::erase_if(order_, [this](StreamId stream) { return place(stream).parked.empty(); });
  return any;
}

}  // namespace quadriga
