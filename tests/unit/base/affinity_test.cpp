// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/base/affinity_test.cpp: threads that stay on their processors.
#include "base/affinity.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <stdexcept>
#include <thread>

namespace quadriga {
namespace {

std::vector<int> allowed() {
  cpu_set_t mask;
  EXPECT_EQ(::sched_getaffinity(0, sizeof(mask), &mask), 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &mask)) processors.push_back(i);
  return processors;
}

TEST(Affinity, AThreadStaysOnItsProcessors) {
  const std::vector<int> before = allowed();
  const int last = before.back();
  std::vector<int> inside;
  run_near({last, 100000}, [&] {
    inside = allowed();
    EXPECT_EQ(::sched_getcpu(), last);
  });
  EXPECT_EQ(inside, std::vector<int>{last});
  EXPECT_EQ(allowed(), before) << "the caller's own thread is not bound";
}

TEST(Affinity, WithoutOneThatItMayUseAThreadStaysAsItIs) {
  const std::vector<int> before = allowed();
  std::thread([&] {
    EXPECT_FALSE(bind_thread({}));
    EXPECT_FALSE(bind_thread({-1, 100000}));
    EXPECT_EQ(allowed(), before);
  }).join();
}

TEST(Affinity, WhatACallThrowsIsThrownToTheCaller) {
  const std::vector<int> first{allowed().front()};
  EXPECT_THROW(run_near(first, [] { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_THROW(run_near({}, [] { throw std::runtime_error("x"); }), std::runtime_error);
}

}  // namespace
}  // namespace quadriga
