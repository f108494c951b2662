// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/idle_test.cpp: a real-clock backend with nothing to do uses no processor; to
// look whether something has ended takes no sleep.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>

#include "device/factory.h"

namespace quadriga {
namespace {

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(Idle, ThreadsWithoutWorkSleep) {
  const auto backend = make_emulated_backend(Machine::parse("emulated:4"));
  const Kernel kernel = [](const Arguments&) {};
  Launch launch;
  launch.kernel = &kernel;
  for (int i = 0; i < 16; ++i) {
    const auto device = static_cast<DeviceId>(i % 4);
    backend->launch(backend->create_stream(device, StreamKind::compute), launch);
  }
  Completion done;
  for (int i = 0; i < 16; ++i) backend->next_completion({&done, 1}, never);
  // The least of some periods: what the system and sanitizers do on the side isn't ours.
  constexpr Nanoseconds period = 300'000'000;
  double least = 1;
  for (int i = 0; i < 4; ++i) {
    const double before = processor_seconds();
    EXPECT_EQ(backend->next_completion({&done, 1}, backend->now() + period), 0u);
    least = std::min(least, processor_seconds() - before);
  }
  EXPECT_LT(least, 0.003) << "1 % of a core";
}

// A sleep until a moment that has passed sets a timer, and lasts until the thread's timer slack has
// passed too: a long one shows it.
TEST(Idle, ALookDoesNotSleep) {
  constexpr unsigned long slack = 10'000'000, default_slack = 0;
  ::prctl(PR_SET_TIMERSLACK, slack, 0UL, 0UL, 0UL);
  const auto count_sleeps = [] {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  const auto backend = make_emulated_backend(Machine::parse("emulated:2"));
  Completion done;
  const long before = count_sleeps();
  constexpr int looks = 20;
  for (int i = 0; i < looks; ++i)
    EXPECT_EQ(backend->next_completion({&done, 1}, backend->now()), 0u);
  EXPECT_LT(count_sleeps() - before, looks / 4) << "voluntary switches of context";
  ::prctl(PR_SET_TIMERSLACK, default_slack, 0UL, 0UL, 0UL);
}

}  // namespace
}  // namespace quadriga
