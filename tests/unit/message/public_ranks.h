// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/public_ranks.h: ranks of the public communicator that are threads.
#pragma once

#include <gtest/gtest.h>
#include <quadriga/message.h>

#include <functional>
#include <thread>
#include <vector>

namespace quadriga::message::testing {

/// Runs a function for each rank, in a thread of its own; what it throws fails the test.
inline void as_ranks(int count, const std::function<void(const Communicator&)>& run) {
  std::vector<std::thread> threads;
  for (const Communicator& each : local(count, 30))
    threads.emplace_back([&run, each] {
      try {
        run(each);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << each.rank() << ": " << error.what();
      }
    });
  for (std::thread& each : threads) each.join();
}

}  // namespace quadriga::message::testing
