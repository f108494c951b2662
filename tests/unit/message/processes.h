// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/processes.h: ranks that are processes, for tests of messages.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sanitized.h"

namespace quadriga::message::testing {

/// What waitpid() says of processes that end; waits for all.
inline std::vector<int> states_of(const std::vector<pid_t>& processes) {
  std::vector<int> states;
  for (const pid_t process : processes) {
    int state = 0;
    waitpid(process, &state, 0);
    states.push_back(state);
  }
  return states;
}

/// A place to meet that no other test uses.
inline std::string file_address() {
  static int count = 0;
  return "file:" + ::testing::TempDir() + "quadriga-join-" + std::to_string(getpid()) + "-" +
         std::to_string(count++);
}

/// Fails in a child, where gtest's own checks tell nobody.
inline void expect(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(what);
}

/// Runs each rank in a process of its own; says how each ended. None outlives the test.
inline std::vector<int> as_processes(int size, const std::function<void(int rank)>& body) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    alarm(is_sanitized ? 250 : 100);  // Before the whole test's time is over.
    try {
      body(rank);
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      _exit(1);
    }
  }
  return states_of(children);
}

}  // namespace quadriga::message::testing
