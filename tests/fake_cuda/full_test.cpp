// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/full_test.cpp: devices whose memory others hold, and allocations that fail, each
// in turn: an engine works with less, or one error says which device lacks how much.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <functional>
#include <span>
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
// Of each tile: what tasks compute with matters less here than how large it is.
constexpr std::int64_t used_rows = 1024;

/// Of the task that uses a library.
constexpr std::size_t workspace_bytes = 64 * 1024;

void add_one(const Arguments& call) {
  const View& tile = call.operands[0];
  static_cast<cudaStream_t>(call.stream)->push([values = tile.as<double>()] {
    for (std::int64_t i = 0; i < used_rows; ++i) values[i] += 1;
  });
}

bool are(std::span<const double> values, double value) {
  return std::ranges::all_of(values.first(used_rows), [=](double each) { return each == value; });
}

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
    uses_.access = {Access::update};
    uses_.cuda = [this](const Arguments& call) {
      const auto handles = kernels::cuda::handles_of(call);
      static_cast<void>(handles->solver());
      static_cast<void>(handles->solver_scratch(24 * mebibyte));
      if (takes_what_it_can_) static_cast<void>(handles->try_scratch(48 * mebibyte));
      if (needs_more_) static_cast<void>(handles->scratch(48 * mebibyte));
      EXPECT_EQ(call.workspace.size(), workspace_bytes);
      static_cast<cudaStream_t>(call.stream)->push([workspace = call.workspace] {
        std::ranges::fill(workspace, std::byte{0xff});
      });
      add_one(call);
    };
    uses_.workspace = [](const Arguments&, DeviceKind) { return workspace_bytes; };
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
      const Data data = engine.data(values.data(), rows, 1, rows, DType::float64);
      SubmitOptions there;
      there.device = 0;
      engine.submit(uses_, {{data, Access::update}}, there);
      engine.submit(uses_, {{data, Access::update}}, there);
      engine.wait(60);
      outcome.worked = are(values, 3);
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
  bool takes_what_it_can_ = true;
};

/// An engine that is at work before others take what it left free.
class TakenLaterTest : public FullTest {
 protected:
  void SetUp() override {
    FullTest::SetUp();
    set_preparation(DeviceKind::cuda, {});  // handles are made by the first tasks
    takes_what_it_can_ = false;
  }
  /// Four tasks on each of some tiles; before the third, which uses a library, `taken` is called.
  /// Beside what was taken before, the engine finds less free than twice its arena.
  Outcome run_on(std::size_t tiles, const std::function<void()>& taken) const {
    Outcome outcome;
    set_log_sink([&outcome](LogLevel level, std::string_view message) {
      if (level == LogLevel::warning) outcome.log += message;
    });
    std::vector<std::vector<double>> values(tiles);
    Codelet plain = uses_;
    plain.cuda = add_one;
    plain.workspace = nullptr;
    faults().taken_bytes = taken_before_;
    try {
      Machine machine = discover_cuda();
      machine.devices.front().memory_bytes = arena_bytes;
      machine.devices.front().compute_streams = streams_;
      EngineOptions options;
      options.machine = machine;
      Engine engine(std::move(options));
      std::vector<Data> data;
      for (std::vector<double>& each : values) {
        each.assign(tile_rows, 1.0);
        data.push_back(engine.data(each.data(), tile_rows, 1, tile_rows, DType::float64));
      }
      const auto submit = [&](const Codelet& codelet) {
        for (const Data& each : data) engine.submit(codelet, {{each, Access::update}});
      };
      submit(plain);
      engine.wait(60);
      taken();
      submit(plain);
      submit(uses_);
      submit(plain);
      engine.wait(60);
      outcome.arena_bytes = engine.counters().devices.front().arena_bytes;
      outcome.worked =
          std::ranges::all_of(values, [](const std::vector<double>& each) { return are(each, 5); });
      EXPECT_TRUE(outcome.worked);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), Errc::deadline) << error.what();
      EXPECT_NE(error.code(), Errc::internal) << error.what();
      outcome.error = error.what();
    }
    set_log_sink({});
    return outcome;
  }

  std::size_t taken_before_ = 1152 * mebibyte;
  int streams_ = 4;
  static constexpr std::int64_t tile_rows = used_rows;
  static constexpr std::size_t arena_bytes = 512 * mebibyte;
  static constexpr std::size_t reserve_bytes = 32 * mebibyte;
};

bool says(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

/// How much, or that it is more than what is free: libraries don't say.
bool says_what_is_needed(const std::string& text) {
  return says(text, "wanted") || says(text, "it needs more than");
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
                  (says_what_is_needed(outcome.error) || says(outcome.error, "needs at least") ||
                   says(outcome.error, "at least 4096 are needed")));
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
        EXPECT_TRUE(is_of_host || says_what_is_needed(outcome.error)) << outcome.error;
        EXPECT_FALSE(says(outcome.error, "status"));
      }
      with_less += outcome.worked && reached ? 1 : 0;
    }
    EXPECT_GT(refused, 10);
    EXPECT_TRUE(later || with_less > 0);
  }
}

TEST_F(TakenLaterTest, AnArenaInUseGivesLibrariesWhatTheyLack) {
  // Handles and workspaces of one stream take 56 MiB, and others leave 40.
  streams_ = 1;
  for (const bool waits : {false, true}) {
    uses_.waits_to_queue = waits;
    const Outcome outcome = run_on(140, [] { faults().taken_bytes = 1496 * mebibyte; });
    EXPECT_TRUE(outcome.worked) << outcome.error;
    EXPECT_EQ(outcome.arena_bytes, arena_bytes - reserve_bytes);
    EXPECT_TRUE(says(outcome.log, "gpu0") && says(outcome.log, "gets 32 MiB")) << outcome.log;
  }
}

// An engine that leaves others more than it takes keeps nothing for libraries.
TEST_F(TakenLaterTest, WhereThereIsPlentyTilesHaveAllOfTheArena) {
  taken_before_ = 0;
  const Outcome outcome = run_on(8, [] {});
  EXPECT_TRUE(outcome.worked) << outcome.error;
  EXPECT_EQ(outcome.arena_bytes, arena_bytes);
}

TEST_F(TakenLaterTest, WhatAnArenaCannotGiveFailsWithAClearError) {
  needs_more_ = true;
  const Outcome outcome = run_on(8, [] { faults().taken_bytes = std::size_t{2} << 30; });
  EXPECT_FALSE(outcome.worked);
  EXPECT_TRUE(says(outcome.error, "free") && says_what_is_needed(outcome.error)) << outcome.error;
}

// What reports another error while there is plenty of memory isn't tried again.
TEST_F(TakenLaterTest, EachAllocationThatFailsOnceIsTriedAgainOrFails) {
  needs_more_ = true;
  int with_less = 0;
  bool reached = true;
  for (std::int64_t number = 0; reached; ++number) {
    const Outcome outcome = run_on(8, [&] { refuse(number, false); });
    reached = faults().allocations > number;
    SCOPED_TRACE("allocation " + std::to_string(number));
    EXPECT_TRUE(outcome.worked || !outcome.error.empty());
    with_less += outcome.worked && says(outcome.log, "gets") ? 1 : 0;
    refuse(-1, false);
  }
  EXPECT_GT(with_less, 5);
}

}  // namespace
}  // namespace quadriga
