// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/estimate_test.cpp: an estimate says what the run then does, also where it is
// extrapolated; tiles chosen by default.
#include "linalg/estimate.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/simulate.h>

#include <chrono>
#include <ctime>
#include <ostream>

#include "linalg/kernels/codelets.h"
#include "sanitized.h"
#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {
namespace {

TEST(Estimate, SaysWhatTheRunDoes) {
  const auto engine = make_engine("virtual:emulated:2,memory=40KiB,h2d=1GB/s,d2h=1GB/s");
  Options options;
  options.tile = 16;
  const Estimate estimated =
      estimate(*engine, {Problem::Kind::matmul, 100, 80, 60, DType::float64, false, true}, options);
  const Array a = random_matrix(100, 60, DType::float64, Lay::columns, 1);
  const Array b = random_matrix(60, 80, DType::float64, Lay::columns, 2);
  Array c = random_matrix(100, 80, DType::float64, Lay::columns, 3);
  matmul(*engine, 1, a.view(), Op::none, b.view(), Op::none, 1, c.view(), options);
  const Counters counters = engine->counters();
  EXPECT_EQ(estimated.host_bytes, static_cast<double>(counters.host_bytes()));
  EXPECT_EQ(estimated.seconds, static_cast<double>(counters.elapsed) / 1e9);
  EXPECT_EQ(estimated.tasks, counters.ended);
  EXPECT_EQ(estimated.tile, 16);
  EXPECT_EQ(estimated.tile_cols, 16);
  EXPECT_LE(estimated.bound_seconds, estimated.seconds);
  EXPECT_EQ(estimated.matrix_bytes, (100U * 60 + 60 * 80 + 100 * 80) * sizeof(double));
  ASSERT_EQ(estimated.device_bytes.size(), engine->machine().devices.size());
  EXPECT_GT(estimated.device_bytes[0], 20000U);
  EXPECT_LE(estimated.device_bytes[0], 40U * 1024);
}

/// Without data.
Engine virtual_gpus(int count, std::size_t memory_bytes) {
  EngineOptions options;
  options.machine = Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x4.json:" +
                                   std::to_string(count));
  for (Device& device : options.machine->devices)
    if (device.kind != DeviceKind::cpu) device.memory_bytes = memory_bytes;
  options.virtual_clock = true;
  options.compute = false;
  return Engine(options);
}

TEST(Simulate, IsTheEstimateOfASmallCallAndNothingIsExtrapolatedOfALargeOne) {
  constexpr std::size_t memory = std::size_t{2} << 30;
  Engine small = virtual_gpus(2, memory);
  const Problem problem{.kind = Problem::Kind::cholesky, .m = 8192};
  const Estimate expected = estimate(small, problem);
  const Estimate found = simulate(small, problem);
  EXPECT_EQ(found.seconds, expected.seconds);
  EXPECT_EQ(found.tasks, expected.tasks);
  EXPECT_EQ(found.tile, expected.tile);
  EXPECT_EQ(found.tasks, small.counters().ended);

  Engine large = virtual_gpus(2, memory);
  Options fine;
  fine.tile = 256;
  EXPECT_EQ(simulate(large, {.kind = Problem::Kind::cholesky, .m = 16384}, fine).tasks,
            64U * 65 * 66 / 6);
}

TEST(Simulate, RefusesOtherEnginesAndMachinesWithoutTimes) {
  const Problem problem{.kind = Problem::Kind::cholesky, .m = 512};
  const auto refused = [&](Engine& engine, const std::string& words) {
    try {
      simulate(engine, problem);
      ADD_FAILURE() << words;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const auto real = make_engine("emulated:1,memory=1MiB");
  refused(*real, "virtual clock");
  Engine used = virtual_gpus(1, std::size_t{1} << 30);
  simulate(used, problem);
  refused(used, "ran nothing else");
  EngineOptions options;
  options.devices = "machine=" QUADRIGA_SOURCE_DIR "/machines/p100x2.json:1";
  options.virtual_clock = true;
  options.compute = false;
  Engine without(options);
  refused(without, "no time of kernel 'dgemm' for device 'gpu0'");
}

// Products there are planned: their tiles are tall, and of several sizes.
TEST(Estimate, SaysWhatPlannedProductsDo) {
  constexpr std::int64_t n = 8192;
  for (const int count : {1, 2, 4})
    for (const std::size_t memory : {std::size_t{64} << 30, std::size_t{600} << 20}) {
      SCOPED_TRACE(std::to_string(count) + " of " + std::to_string(memory));
      Engine engine = virtual_gpus(count, memory);
      const Estimate estimated = estimate(engine, {Problem::Kind::matmul, n, n, n});
      const auto view = [](std::uintptr_t which) {
        return MatrixView::columns(reinterpret_cast<void*>(which << 44), n, n, DType::float64);
      };
      matmul(engine, 1, view(1), Op::none, view(2), Op::none, 0, view(3));
      const Counters counters = engine.counters();
      EXPECT_EQ(estimated.seconds, static_cast<double>(counters.elapsed) / 1e9);
      EXPECT_EQ(estimated.host_bytes, static_cast<double>(counters.host_bytes()));
      EXPECT_EQ(estimated.tasks, counters.ended);
      EXPECT_GE(estimated.tile, estimated.tile_cols);
    }
}

TEST(Estimate, SpillOfAFactorThatFitsNoDevice) {
  const auto engine = make_engine("emulated:2,memory=1MiB");
  const Estimate estimated =
      estimate(*engine, {Problem::Kind::cho_solve, 1000, 3, 0, DType::float64, true, false});
  EXPECT_GT(estimated.buffer_bytes, 1U << 20);
  EXPECT_EQ(estimated.matrix_bytes, 1000U * 3 * sizeof(double));
  EXPECT_GT(estimated.seconds, 0);
}

TEST(Estimate, GpusComputeASourceThemselves) {
  if (!kernels::covariance_codelet(DType::float64).cuda) GTEST_SKIP() << "a build without CUDA";
  EngineOptions options;
  options.machine = Machine::from_file(QUADRIGA_SOURCE_DIR "/machines/h200x1.json");
  std::erase_if(options.machine->devices,
                [](const Device& device) { return device.kind == DeviceKind::cpu; });
  options.machine->devices.front().kind = DeviceKind::cuda;
  options.virtual_clock = true;
  options.compute = false;
  const Engine engine(options);
  const Estimate estimated =
      estimate(engine, {Problem::Kind::cho_solve, 100000, 1, 0, DType::float64, true, false});
  EXPECT_LT(estimated.host_bytes, 8 * 4 * 100000);
  EXPECT_LT(estimated.buffer_bytes, 1U << 30);
  EXPECT_LE(estimated.bound_seconds, estimated.seconds);
  // The whole lower triangle stays there.
  EXPECT_GE(estimated.device_bytes[0], 8ULL * 100000 * 100000 / 2);
}

TEST(Estimate, OnCoresByMeasuredTimes) {
  const auto engine = make_engine("cpu:2");
  const Estimate estimated =
      estimate(*engine, {Problem::Kind::cholesky, 2000, 0, 0, DType::float32, false, false});
  EXPECT_GT(estimated.seconds, 1e-4);
  EXPECT_LT(estimated.seconds, 100);
  EXPECT_EQ(estimated.host_bytes, 0);
}

struct LargeCase {
  std::string devices;
  Problem problem;
  std::int64_t tile;
};

/// A machine by its description, or of emulated devices with times for every kernel.
Engine model_of(const std::string& devices) {
  EngineOptions options;
  if (devices.starts_with("machine="))
    options.machine = Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/" +
                                     devices.substr(std::string("machine=").size()));
  else
    options.machine = timed_machine(devices);
  options.virtual_clock = true;
  options.compute = false;
  return Engine(options);
}

Problem factorization_of(std::int64_t order) {
  return {Problem::Kind::cholesky, order, 0, 0, DType::float64, false, false};
}
Problem product_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {Problem::Kind::matmul, m, n, k, DType::float64, false, false};
}

/// The test's name in reports.
void PrintTo(const LargeCase& test, std::ostream* out) {
  const Problem& problem = test.problem;
  const char* const kind = problem.kind == Problem::Kind::cholesky    ? "Cholesky"
                           : problem.kind == Problem::Kind::cho_solve ? "solve"
                                                                      : "product";
  *out << fmt::format("{} of {} rows on {}", kind, problem.m, test.devices);
}

class ExtrapolatedEstimate : public ::testing::TestWithParam<LargeCase> {};

// What is said of a program that is too large to be simulated holds where it isn't.
TEST_P(ExtrapolatedEstimate, IsAsUncertainAsItSays) {
  const auto& [devices, problem, tile] = GetParam();
  if (is_sanitized && problem.m > 10000) GTEST_SKIP() << "takes long where each access is checked";
  const Engine engine = model_of(devices);
  Options options;
  options.tile = tile;
  const Estimate full = estimate(engine, problem, options, 1e9);
  const Estimate found = estimate(engine, problem, options, 4000);
  ASSERT_GT(full.tasks, 4000U);
  ASSERT_EQ(found.extrapolated_from.size(), 3U);
  EXPECT_TRUE(full.extrapolated_from.empty());
  EXPECT_EQ(full.seconds_uncertainty, 0);
  for (const std::uint64_t tasks : found.extrapolated_from) EXPECT_LE(tasks, 4000U);
  EXPECT_NEAR(found.seconds / full.seconds, 1, found.seconds_uncertainty);
  EXPECT_LT(found.seconds_uncertainty, 1);
  EXPECT_GE(found.seconds, found.bound_seconds);
  EXPECT_NEAR(found.bound_seconds / full.bound_seconds, 1, 0.05);
  if (full.host_bytes > 0) {
    EXPECT_NEAR(found.host_bytes / full.host_bytes, 1, found.bytes_uncertainty);
  }
  EXPECT_NEAR(static_cast<double>(found.tasks) / static_cast<double>(full.tasks), 1, 0.01);
  EXPECT_EQ(found.matrix_bytes, full.matrix_bytes);
  EXPECT_EQ(found.tile, full.tile);
  const auto device = [](const Estimate& of) { return static_cast<double>(of.device_bytes[0]); };
  EXPECT_NEAR(device(found), device(full), 0.2 * device(full));
}

const Problem factor_of_source{Problem::Kind::cho_solve, 8000, 100, 0, DType::float64, true, false};

INSTANTIATE_TEST_SUITE_P(
    Machines, ExtrapolatedEstimate,
    ::testing::Values(
        LargeCase{"cpu:2", factorization_of(10000), 256},
        LargeCase{"cpu:2", product_of(8000, 6000, 4000), 256},
        // All of it on the devices, most of it, and hardly a column of tiles.
        LargeCase{"emulated:2,memory=1GiB,h2d=6GB/s,d2h=6GB/s", factorization_of(9000), 256},
        LargeCase{"emulated:2,memory=100MiB,h2d=1GB/s,d2h=1GB/s,peer=off", factorization_of(9000),
                  256},
        LargeCase{"emulated:2,memory=8MiB,h2d=1GB/s,d2h=1GB/s", factorization_of(9000), 256},
        LargeCase{"emulated:2,memory=8MiB,h2d=10GB/s,d2h=10GB/s", factor_of_source, 256},
        LargeCase{"emulated:2,memory=64MiB,h2d=200MB/s,d2h=200MB/s,peer=off",
                  product_of(6000, 6000, 6000), 256},
        LargeCase{"emulated:1,memory=20MiB,h2d=2GB/s,d2h=2GB/s", product_of(3000, 9000, 6000), 256},
        LargeCase{"machine=idgraf.json:4", factorization_of(30000), 0},
        LargeCase{"machine=idgraf.json:2,memory=64MiB", product_of(20000, 20000, 20000), 0},
        LargeCase{"machine=h200x4.json", factorization_of(70000), 2048},
        LargeCase{"machine=h200x1.json,memory=1GiB", product_of(90000, 90000, 90000), 0},
        LargeCase{"machine=h200x4.json,memory=4GiB", factorization_of(50000), 1024}));

// Order 1,000,000 on any machine: minutes by tasks, seconds by smaller ones.
TEST(Estimate, OfAnyOrderTakesSeconds) {
  if (is_sanitized) GTEST_SKIP() << "takes minutes where each access is checked";
  for (const char* const devices :
       {"cpu:2", "emulated:2,memory=1GiB", "machine=idgraf.json:2", "machine=h200x4.json"})
    for (const Problem& problem :
         {factorization_of(1'000'000), product_of(1'000'000, 1'000'000, 1'000'000)}) {
      SCOPED_TRACE(devices);
      const auto begin = std::chrono::steady_clock::now();
      const Estimate found = estimate(model_of(devices), problem);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      EXPECT_LT(took.count(), 120);
      EXPECT_GE(found.seconds, found.bound_seconds);
      EXPECT_GT(found.bound_seconds, 0);
      EXPECT_LT(found.seconds_uncertainty, 0.5);
    }
}

// Its plans may be tried for a quarter of an hour, a tenth of its time. In seconds of processors,
// as the machine may be busy; trials of all plans took 29.
TEST(Estimate, OfLargeProductsTriesLittle) {
  if (is_sanitized) GTEST_SKIP() << "takes long where each access is checked";
  Problem problem = product_of(1'000'000, 1'000'000, 1'000'000);
  problem.dtype = DType::float32;
  Engine engine = model_of("machine=h200x4.json:4");
  const std::clock_t begin = std::clock();
  const Estimate found = estimate(engine, problem);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 15);
  const Estimate full = simulate(engine, problem);
  EXPECT_NEAR(found.seconds / full.seconds, 1, found.seconds_uncertainty + 1e-9);
  EXPECT_NEAR(found.host_bytes / full.host_bytes, 1, found.bytes_uncertainty + 1e-9);
}

// Its tiles nearly fill the devices: each trial takes a second, and all of them 40.
TEST(Estimate, OfFactorizationsThatFillTheDevicesTriesLittle) {
  if (is_sanitized) GTEST_SKIP() << "takes long where each access is checked";
  const std::uint64_t before = tasks_tried();
  const Estimate found = estimate(model_of("machine=h200x8.json:8"), factorization_of(400'000));
  EXPECT_GT(tasks_tried() - before, 20'000U) << "two trials choose better than none";
  EXPECT_LT(tasks_tried() - before, 120'000U);
  constexpr double by_all_trials = 50.99;
  EXPECT_NEAR(found.seconds / by_all_trials, 1, 0.005);
}

TEST(Estimate, OfFactorizationsWithRoomTriesAllThatSeemsGood) {
  const std::uint64_t before = tasks_tried();
  const Estimate found = estimate(model_of("machine=h200x4.json:4"), factorization_of(65'536));
  constexpr std::uint64_t places = 24;
  EXPECT_GT(tasks_tried() - before, places * found.tasks);
}

TEST(Estimate, RefusesMatricesThatNoAddressReaches) {
  const auto engine = make_engine("cpu:2");
  try {
    estimate(*engine, factorization_of(1'000'000'000'000));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large);
    EXPECT_NE(std::string(error.what()).find("up to 1 EiB"), std::string::npos) << error.what();
  }
}

TEST(DefaultTile, DependsOnSizesAndMemoryButNotOnTheNumberOfDevices) {
  const auto tile = [](const char* devices, std::int64_t order) {
    return default_tile(*make_engine(devices),
                        {Problem::Kind::cholesky, order, 0, 0, DType::float64, false, false});
  };
  EXPECT_EQ(tile("cpu:1", 4096), tile("cpu:2", 4096));
  EXPECT_EQ(tile("emulated:1,memory=64MiB", 8000), tile("emulated:4,memory=64MiB", 8000));
  EXPECT_LT(tile("emulated:1,memory=1MiB", 8000), tile("emulated:1,memory=64MiB", 8000));
  EXPECT_LE(tile("cpu:2", 4096), 512);
  EXPECT_GE(tile("cpu:2", 1), 1);
}

}  // namespace
}  // namespace quadriga::linalg::testing
