// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/idle_test.cpp: a real-clock backend with nothing to do uses no processor.
#include <gtest/gtest.h>
#include <sys/resource.h>

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
  const double before = processor_seconds();
  const Nanoseconds second = 1'000'000'000;
  EXPECT_EQ(backend->next_completion({&done, 1}, backend->now() + second / 2), 0u);
  EXPECT_LT(processor_seconds() - before, 0.005) << "1 % of a core for half a second";
}

}  // namespace
}  // namespace quadriga
