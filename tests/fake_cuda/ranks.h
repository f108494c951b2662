// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/ranks.h: ranks that are processes with CUDA devices: this program once more each,
// with one of its tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message/communicator.h"
#include "message/device_moves.h"
#include "message/join.h"
#include "message/ports.h"
#include "unit/message/processes.h"

extern char** environ;

namespace quadriga::message::testing {

inline const Patience enough{90, {}};

/// Memory of the current device that somebody else allocated, with the runtime's functions.
struct Numbers {
  explicit Numbers(std::vector<double> content, bool is_pooled = false) : host(std::move(content)) {
    const std::size_t bytes = host.size() * sizeof(double);
    void* made = nullptr;
    if ((is_pooled ? cudaMallocAsync(&made, bytes, cudaStreamPerThread)
                   : cudaMalloc(&made, bytes)) != cudaSuccess)
      throw std::bad_alloc();
    memory = static_cast<std::byte*>(made);
    write_all(place(), std::as_bytes(std::span(host)));
  }
  ~Numbers() { cudaFree(memory); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  MessageBuffer place(ElementType type = ElementType::float64) const {
    const auto port = ports::cuda_at(memory);
    const std::size_t count = host.size() * sizeof(double) / size_of(type);
    return {Layout::contiguous(static_cast<std::int64_t>(count), type), memory, port, 0};
  }
  std::vector<double> content() {
    read_all(place(), std::as_writable_bytes(std::span(host)));
    return host;
  }
  std::vector<double> host;
  std::byte* memory = nullptr;
};

inline int rank_of_this() {
  const char* const given = std::getenv("QUADRIGA_TEST_RANK");
  return given ? std::atoi(given) : -1;
}
inline bool is_rank() { return rank_of_this() >= 0; }

inline CommunicatorCore joined(int ranks = 2) {
  const char* const address = std::getenv("QUADRIGA_TEST_ADDRESS");
  const Token token = parse_token("00112233445566778899aabbccddeeff");
  return CommunicatorCore(join({address, rank_of_this(), ranks, token}, enough));
}

/// Runs a test of this program as ranks from 0 on; how they ended.
inline std::vector<int> run_ranks(const std::string& suite, const std::string& test,
                                  int ranks = 2) {
  const std::string filter = "--gtest_filter=" + suite + "." + test;
  const std::string address = "QUADRIGA_TEST_ADDRESS=file:" + ::testing::TempDir() +
                              "quadriga-cuda-" + std::to_string(getpid()) + test;
  const std::string devices = "QUADRIGA_TEST_DEVICES=" + std::to_string(ranks);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string number = "QUADRIGA_TEST_RANK=" + std::to_string(rank);
    std::vector<char*> variables;
    for (char** each = environ; *each; ++each)
      if (!std::string_view(*each).starts_with("TSAN_OPTIONS=")) variables.push_back(*each);
    // Streams of a lost device are given up, and the threads that stand for them.
    variables.push_back(const_cast<char*>("TSAN_OPTIONS=halt_on_error=1:report_thread_leaks=0"));
    variables.push_back(const_cast<char*>(number.c_str()));
    variables.push_back(const_cast<char*>(address.c_str()));
    variables.push_back(const_cast<char*>(devices.c_str()));
    variables.push_back(nullptr);
    char* const words[] = {const_cast<char*>("rank"), const_cast<char*>(filter.c_str()), nullptr};
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, words, variables.data()), 0);
    children.push_back(child);
  }
  return states_of(children);
}
inline const std::vector<int> passed{0, 0};

}  // namespace quadriga::message::testing
