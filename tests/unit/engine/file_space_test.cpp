// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/file_space_test.cpp: data without homes that need more than devices and the
// host's buffers have go to a file that the machine describes, and come back.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <vector>

namespace quadriga {
namespace {

constexpr std::int64_t rows = 512;
constexpr std::size_t tile_bytes = rows * sizeof(double);
constexpr int tiles = 24;

/// A device of three tiles and a file of so many.
Machine machine_with_file(std::size_t file_tiles) {
  Machine machine = Machine::parse("emulated:1,memory=12KiB,h2d=1GB/s,d2h=1GB/s");
  machine.kernels["step"]["emulated"][1] = 1e-6;
  Device file;
  file.name = "file";
  file.kind = DeviceKind::file;
  file.space = 2;
  file.memory_bytes = file_tiles * tile_bytes;
  machine.devices.push_back(file);
  machine.links.push_back({.name = "disk", .bytes_per_second = 1e8, .latency_seconds = 1e-5});
  const int disk = static_cast<int>(machine.links.size()) - 1;
  machine.routes.push_back({.from = host_space, .to = 2, .links = {disk}});
  machine.routes.push_back({.from = 2, .to = host_space, .links = {disk}});
  return machine;
}

Codelet step(const char* name, std::vector<Access> signature, Kernel kernel) {
  Codelet codelet;
  codelet.name = name;
  codelet.access = std::move(signature);
  codelet.cpu = std::move(kernel);
  codelet.cost = [](const Arguments&) { return Cost{"step", 1, 1}; };
  return codelet;
}

/// Fills tiles, adds to each, and sums up the first elements. Returns the counters.
Counters run(bool virtual_clock, std::size_t file_tiles, double& sum) {
  EngineOptions options;
  options.machine = machine_with_file(file_tiles);
  options.virtual_clock = virtual_clock;
  options.host_memory = 3 * tile_bytes;
  Engine engine(std::move(options));
  const Codelet fill = step("fill", {Access::write}, [](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i) call.operands[0].as<double>()[i] = 1;
  });
  const Codelet add = step("add", {Access::update}, [](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i) call.operands[0].as<double>()[i] += 1;
  });
  const Codelet gather = step("gather", {Access::read, Access::update}, [](const Arguments& call) {
    for (std::int64_t i = 0; i < rows; ++i)
      *call.operands[1].as<double>() += call.operands[0].as<double>()[i];
  });
  SubmitOptions there;
  there.device = 0;
  const Data total = engine.data(&sum, 1, 1, 1, DType::float64);
  std::vector<Data> data;
  for (int i = 0; i < tiles; ++i) {
    data.push_back(engine.temporary(rows, 1, DType::float64));
    engine.submit(fill, {{data.back(), Access::write}}, there);
  }
  for (const Data& each : data) engine.submit(add, {{each, Access::update}}, there);
  for (const Data& each : data)
    engine.submit(gather, {{each, Access::read}, {total, Access::update}}, there);
  engine.wait(60);
  return engine.counters();
}

class FileSpaceTest : public testing::TestWithParam<bool> {};

TEST_P(FileSpaceTest, HoldsWhatTheHostHasNoBuffersFor) {
  double sum = 0;
  const Counters counters = run(GetParam(), 2 * tiles, sum);
  EXPECT_EQ(sum, 2.0 * rows * tiles);
  std::uint64_t out = 0, in = 0;
  for (const LinkCounters& link : counters.links) {
    if (link.target == 2) out += link.bytes;
    if (link.source == 2) in += link.bytes;
  }
  EXPECT_GT(out, (tiles - 8) * tile_bytes);
  EXPECT_GT(in, (tiles - 8) * tile_bytes);
  EXPECT_EQ(counters.devices[1].tasks, 0u) << "nothing runs in a file";
  EXPECT_LE(counters.spill_bytes, 3 * tile_bytes);
}

TEST_P(FileSpaceTest, ThatIsFullAsWellFailsATaskAndSaysWhy) {
  double sum = 0;
  try {
    run(GetParam(), 4, sum);
    FAIL() << "24 tiles have no room in 10";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Clock, FileSpaceTest, testing::Bool());

}  // namespace
}  // namespace quadriga
