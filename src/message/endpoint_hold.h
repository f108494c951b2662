// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint_hold.h: an endpoint's lock, for its own functions.
#pragma once

#include <optional>

#include "message/endpoint.h"

namespace quadriga::message {

// The lock; what transfers kept is let go, and what is to be logged is logged, after it.
class Endpoint::Hold {
 public:
  explicit Hold(Endpoint& endpoint) : self_(endpoint), lock_(endpoint.mutex_) {}
  ~Hold() {
    resume();
    left_.emplace(self_.traffic_.take_left());
    lock_.unlock();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  void pause() {
    const Leftovers left = self_.traffic_.take_left();
    lock_.unlock();
  }
  void resume() {
    if (!lock_.owns_lock()) lock_.lock();
  }

 private:
  std::optional<Leftovers> left_;
  Endpoint& self_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace quadriga::message
