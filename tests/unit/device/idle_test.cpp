// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/idle_test.cpp: a real-clock backend with nothing to do uses no processor.
#include <gtest/gtest.h>
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

}  // namespace
}  // namespace quadriga
