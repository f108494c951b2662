// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/host_buffers_test.cpp: pinned memory of chunks: bounded, and used again.
#include "pipeline/host_buffers.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/random.h"

namespace quadriga {
namespace {

constexpr std::size_t kibibyte = 1024;

class HostBuffersTest : public testing::Test {
 protected:
  std::shared_ptr<HostBuffers> made(std::size_t most_bytes) {
    return std::make_shared<HostBuffers>(
        HostBuffers::Pinning{[this](std::byte* memory, std::size_t bytes) {
                               ++pins_;
                               return pinned_.emplace(memory, bytes).second;
                             },
                             [this](std::byte* memory, std::size_t bytes) {
                               EXPECT_EQ(pinned_.at(memory), bytes);
                               pinned_.erase(memory);
                             }},
        most_bytes);
  }
  bool is_pinned(const std::byte* memory) const {
    const auto next = pinned_.upper_bound(const_cast<std::byte*>(memory));
    if (next == pinned_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(next);
    return memory < begin + bytes;
  }

  std::map<std::byte*, std::size_t> pinned_;
  int pins_ = 0;
};

TEST_F(HostBuffersTest, SizesAreRoundedUpByAnEighthAtMost) {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    const std::size_t bytes = 64 * kibibyte + random.below(std::size_t{1} << 30);
    const std::size_t size = HostBuffers::rounded(bytes);
    EXPECT_GE(size, bytes);
    EXPECT_LE(size - bytes, bytes / 8);
    EXPECT_EQ(HostBuffers::rounded(size), size);
    EXPECT_EQ(size % 4096, 0u);
  }
}

TEST_F(HostBuffersTest, WhatWasPinnedOnceIsUsedAgain) {
  const auto buffers = made(1024 * kibibyte);
  for (int i = 0; i < 100; ++i) {
    const auto one = buffers->take(100 * kibibyte);
    const auto other = buffers->take(100 * kibibyte - static_cast<std::size_t>(i));
    EXPECT_TRUE(is_pinned(one.get()) && is_pinned(other.get()));
    std::memset(one.get(), i, 100 * kibibyte);
  }
  EXPECT_EQ(pins_, 2);
}

TEST_F(HostBuffersTest, TheyNeverTakeMoreThanWasStated) {
  const auto buffers = made(1024 * kibibyte);
  Random random(5);
  std::vector<std::shared_ptr<std::byte[]>> held;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t bytes = 1 + random.below(300 * kibibyte);
    held.push_back(buffers->take(bytes));
    std::memset(held.back().get(), 1, bytes);
    if (held.size() > 6) held.erase(held.begin() + static_cast<std::ptrdiff_t>(random.below(6)));
    EXPECT_LE(buffers->bytes(), 1024 * kibibyte);
  }
  held.clear();
  EXPECT_TRUE(is_pinned(buffers->take(900 * kibibyte).get())) << "free ones make room";
}

TEST_F(HostBuffersTest, ABufferMayBeKeptBeyondTheRun) {
  auto buffers = made(1024 * kibibyte);
  const auto kept = buffers->take(100 * kibibyte);
  buffers->take(200 * kibibyte).reset();
  buffers->close();
  EXPECT_TRUE(pinned_.empty());
  EXPECT_FALSE(is_pinned(buffers->take(100 * kibibyte).get())) << "plain memory from here on";
  buffers.reset();
  std::memset(kept.get(), 7, 100 * kibibyte);
}

}  // namespace
}  // namespace quadriga
