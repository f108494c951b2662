// SPDX-License-Identifier: BSD-3-Clause
// src/message/stream_order.cpp: asks and tells the port of a stream.
#include "message/stream_order.h"

#include <utility>

namespace quadriga::message {

StreamOrder::StreamOrder(std::shared_ptr<DevicePort> port, DeviceId device, std::uintptr_t stream,
                         StreamSide side)
    : port_(std::move(port)),
      device_(device),
      stream_(stream),
      mark_(port_->streams().mark(device_, stream_)),
      can_lead_(side == StreamSide::before_and_after) {}

bool StreamOrder::is_reached() {
  if (is_reached_) return true;
  is_reached_ = port_->streams().is_reached(mark_);
  if (is_reached_) mark_ = {};
  return is_reached_;
}

bool StreamOrder::lead(PortLane lane) {
  return can_lead_ = can_lead_ && port_->streams().lead(device_, lane, stream_);
}

}  // namespace quadriga::message
