// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/estimate_test.cpp: an estimate says what the run then does; tiles chosen by
// default.
#include "linalg/kernels/codelets.h"
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
