// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/random_calls_test.cpp: random calls of linear algebra on GPUs of a few tiles give one
// core's results within rounding.
//
// QUADRIGA_TEST_TIMES=N as many times more calls, and as long.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "device/cuda/cuda_backend.h"
#include "model/linalg/random_calls.h"

namespace quadriga::linalg::testing {
namespace {

/// Devices without a place of their own: GPUs stand for them in turn.
std::unique_ptr<Engine> gpus(const std::string& devices, const std::string& policy) {
  EngineOptions options;
  options.policy = policy;
  options.machine = Machine::parse(devices);
  for (Device& device : options.machine->devices)
    if (device.kind == DeviceKind::emulated) device.kind = DeviceKind::cuda;
  return std::make_unique<Engine>(options);
}

/// The largest difference, in roundings of the largest element.
double difference(const Array& found, const Array& expected) {
  double largest = 0;
  double worst = 0;
  for (std::int64_t j = 0; j < found.cols(); ++j)
    for (std::int64_t i = 0; i < found.rows(); ++i) {
      largest = std::max(largest, std::abs(expected.get(i, j)));
      worst = std::max(worst, std::abs(found.get(i, j) - expected.get(i, j)));
    }
  return worst == 0 ? 0 : worst / (largest * epsilon(found.view().dtype));
}

TEST(RandomCalls, GpusGiveWhatOneCoreGives) {
  if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  using Clock = std::chrono::steady_clock;
  const char* const set = std::getenv("QUADRIGA_TEST_TIMES");
  const int times = set ? std::atoi(set) : 1;
  const Clock::time_point until = Clock::now() + times * std::chrono::seconds(40);
  const auto reference = make_engine("cpu:1");
  const std::unique_ptr<Engine> engines[] = {
      gpus("emulated:1,memory=20KiB", "affinity"),
      gpus("emulated:3,memory=25KiB", "steal"),
      gpus("emulated:4,memory=40KiB,peer=4GB/s", "affinity"),
  };
  int done = 0;
  double worst = 0;
  for (std::uint64_t seed = 1; done < 1000 * times && Clock::now() < until; ++seed, ++done) {
    const Array expected = Call(seed).run(*reference);
    const double found = difference(Call(seed).run(*engines[seed % std::size(engines)]), expected);
    ASSERT_LT(found, 500) << "seed " << seed;
    worst = std::max(worst, found);
  }
  std::printf("%d calls; at most %.1f roundings of the largest element\n", done, worst);
  EXPECT_GT(done, 0);
}

}  // namespace
}  // namespace quadriga::linalg::testing
