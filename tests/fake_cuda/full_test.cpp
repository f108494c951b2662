// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/full_test.cpp: devices whose memory others hold, and allocations that fail, each
// in turn: an engine works with less, or one error says which device lacks how much.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/log.h"
#include "device/cuda/cuda_backend.h"
#include "device/preparation.h"
#include "fake_cuda/streams.h"
#include "linalg/kernels/handles_cuda.h"

namespace quadriga {
namespace {

using fake_cuda::faults;

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::int64_t rows = 64 * 1024;

/// What one engine's life came to.
struct Outcome {
  bool worked = false;
  std::size_t arena_bytes = 0;
  std::size_t library_bytes = 0;
  std::string error;
  std::string log;
};

class FullTest : public testing::Test {
 protected:
  void SetUp() override {
    faults().devices = 1;
    set_preparation(DeviceKind::cuda, kernels::cuda::prepare);
    uses_.name = "uses a library";
    uses_.signature = {Access::update};
    uses_.cuda = [this](const Arguments& call) {
      const auto handles = kernels::cuda::handles_of(call);
      static_cast<void>(handles->solver());
      static_cast<void>(handles->solver_scratch(24 * mebibyte));
      static_cast<void>(handles->try_scratch(48 * mebibyte));
      if (needs_more_) static_cast<void>(handles->scratch(48 * mebibyte));
      auto* const values = call.operands[0].as<double>();
      static_cast<cudaStream_t>(call.stream)->push([values] {
        for (std::int64_t i = 0; i < rows; ++i) values[i] += 1;
      });
    };
  }
  void TearDown() override {
    set_preparation(DeviceKind::cuda, {});
    refuse(-1, false);
    faults().taken_bytes = 0;
    faults().devices = fake_cuda::devices_by_default();
  }
  static void refuse(std::int64_t number, bool later) {
    faults().refused_allocation = number;
    faults().refuses_later = later;
    faults().allocations = 0;
  }
  /// An engine that takes what there is, and two tasks after each other.
  Outcome run() const {
    Outcome outcome;
    set_log_sink([&outcome](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) outcome.log += message;
    });
    std::vector<double> values(static_cast<std::size_t>(rows), 1.0);
    try {
      EngineOptions options;
      options.machine = discover_cuda();
      Engine engine(std::move(options));
      outcome.arena_bytes = engine.machine().devices.front().memory_bytes;
      EXPECT_EQ(engine.counters().devices.front().arena_bytes, outcome.arena_bytes);
      outcome.library_bytes = engine.counters().devices.front().library_bytes;
      const Data data = engine.add(values.data(), rows, 1, rows, DType::float64);
      SubmitOptions there;
      there.device = 0;
      engine.submit(uses_, {{data, Access::update}}, there);
      engine.submit(uses_, {{data, Access::update}}, there);
      engine.wait(60);
      outcome.worked = std::ranges::all_of(values, [](double each) { return each == 3; });
      EXPECT_TRUE(outcome.worked);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), Errc::deadline) << error.what();
      EXPECT_NE(error.code(), Errc::internal) << error.what();
      outcome.error = error.what();
    }
    set_log_sink({});
    return outcome;
  }

  Codelet uses_;
  bool needs_more_ = false;
};

bool says(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

TEST_F(FullTest, AnArenaIsWhatHandlesLeave) {
  const Outcome with = run();
  EXPECT_TRUE(with.worked) << with.error;
  set_preparation(DeviceKind::cuda, {});
  const Outcome without = run();
  // Four streams: a workspace of 32 MiB each, and three handles of 8 MiB.
  EXPECT_LT(with.arena_bytes + 4 * 48 * mebibyte, without.arena_bytes) << without.error;
  EXPECT_TRUE(says(with.log, "gives")) << with.log;
  EXPECT_GT(with.library_bytes, 4 * 48 * mebibyte);
  EXPECT_EQ(without.library_bytes, 0u);
}

TEST_F(FullTest, ADeviceThatOthersHoldWorksDownToWhatHandlesNeed) {
  const std::size_t all = std::size_t{2} << 30;
  std::size_t worked = all;
  for (std::size_t left = 1024 * mebibyte; left >= mebibyte; left /= 2) {
    faults().taken_bytes = all - left;
    const Outcome outcome = run();
    SCOPED_TRACE(std::to_string(left / mebibyte) + " MiB: " + outcome.error);
    if (outcome.worked)
      worked = left;
    else
      EXPECT_TRUE(says(outcome.error, "gpu0") && says(outcome.error, "free") &&
                  (says(outcome.error, "wanted") || says(outcome.error, "needs at least")));
  }
  EXPECT_LE(worked, 512 * mebibyte);
}

// Once, and from then on.
TEST_F(FullTest, EachAllocationThatFailsLeavesAnEngineOrOneClearError) {
  needs_more_ = true;
  for (const bool later : {false, true}) {
    int with_less = 0, refused = 0;
    bool reached = true;
    for (std::int64_t number = 0; reached; ++number) {
      refuse(number, later);
      const Outcome outcome = run();
      reached = faults().allocations > number;
      SCOPED_TRACE("allocation " + std::to_string(number) + ": " + outcome.error);
      if (!outcome.worked) {
        ++refused;
        const bool is_of_host = says(outcome.error, "pinning");
        EXPECT_TRUE(is_of_host || says(outcome.error, "gpu0")) << outcome.error;
        EXPECT_TRUE(is_of_host || says(outcome.error, "free")) << outcome.error;
        EXPECT_TRUE(is_of_host || says(outcome.error, "wanted")) << outcome.error;
        EXPECT_FALSE(says(outcome.error, "status"));
      }
      with_less += outcome.worked && reached ? 1 : 0;
    }
    EXPECT_GT(refused, 10);
    EXPECT_TRUE(later || with_less > 0);
  }
}

}  // namespace
}  // namespace quadriga
