// SPDX-License-Identifier: BSD-3-Clause
// src/message/endpoint_hold.h: an endpoint's lock, for its own functions.
#pragma once

#include "message/endpoint.h"

namespace quadriga::message {

// The lock; what transfers kept is let go after it.
class Endpoint::Hold {
 public:
  explicit Hold(Endpoint& endpoint) : self_(endpoint), lock_(endpoint.mutex_) {}
  ~Hold() {
    resume();
    kept_ = self_.traffic_.take_kept();
    lock_.unlock();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  void pause() {
    const auto kept = self_.traffic_.take_kept();
    lock_.unlock();
  }
  void resume() {
    if (!lock_.owns_lock()) lock_.lock();
  }

 private:
  std::vector<std::shared_ptr<void>> kept_;
  Endpoint& self_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace quadriga::message
