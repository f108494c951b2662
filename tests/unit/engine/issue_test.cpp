// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/issue_test.cpp: how far ahead tasks are issued, by the virtual clock.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

namespace quadriga {
namespace {

constexpr std::int64_t megabyte = 1 << 20;

Codelet codelet(Access access, std::string_view kernel) {
  Codelet made;
  made.name = kernel;
  made.access = {access};
  made.cpu = [](const Arguments&) {};
  made.cost = [kernel](const Arguments&) { return Cost{kernel, 1, 1}; };
  return made;
}

// A queue of kernels that take no time, each behind a copy of a millisecond, is long all the same:
// what becomes ready meanwhile and is more urgent must not stand behind it.
TEST(Issue, CopiesCountInWhatIsIssuedAhead) {
  EngineOptions options;
  options.machine = Machine::parse("emulated:2,memory=256MiB,h2d=1GB/s,d2h=1GB/s,peer=1GB/s");
  options.machine->kernels["short"]["emulated"] = {{1, 1e-5}};
  options.machine->kernels["long"]["emulated"] = {{1, 3e-3}};
  options.virtual_clock = true;
  Engine engine(options);
  const Codelet makes = codelet(Access::update, "long");
  const Codelet reads = codelet(Access::read, "short");
  std::vector<std::byte> home(100 * megabyte);
  double first = 0;
  const Data urgent = engine.data(&first, 1, 1, 1, DType::float64);
  for (int i = 0; i < 100; ++i) {
    std::byte* const place = home.data() + i * megabyte;
    engine.submit(reads, {{engine.data(place, megabyte, 1, megabyte, DType::bytes)}},
                  {.device = 0});
  }
  engine.submit(makes, {{urgent, Access::update}}, {.priority = 1, .device = 1});
  const Future last = engine.submit(reads, {{urgent}}, {.priority = 1, .device = 0});
  engine.wait(last);
  EXPECT_LT(engine.now(), 10'000'000);
  engine.wait();
  EXPECT_GT(engine.now(), 100'000'000);
}

// On how many streams of a device tasks of a kernel run whose rates at orders 1 and 2 are 1
// and `at_two`.
std::size_t streams_used(double at_two) {
  EngineOptions options;
  options.machine = Machine::parse("emulated:1,memory=64MiB,streams=4");
  options.machine->kernels["kernel"]["emulated"] = {{1, 1e-3}, {2, 8e-3 / at_two}};
  options.virtual_clock = options.trace = true;
  Engine engine(options);
  const Codelet writes = codelet(Access::write, "kernel");
  for (int i = 0; i < 8; ++i)
    engine.submit(writes, {{engine.temporary(4, 4, DType::float64), Access::write}});
  engine.wait();
  std::set<int> streams;
  const nlohmann::json trace = nlohmann::json::parse(engine.trace_json());
  for (const nlohmann::json& event : trace["traceEvents"])
    if (event["ph"] == "X" && event["cat"] != "copy") streams.insert(event["tid"].get<int>());
  return streams.size();
}

TEST(Issue, KernelsThatFillTheDeviceRunOneAfterTheOther) {
  EXPECT_EQ(streams_used(1.05), 1);
  EXPECT_EQ(streams_used(2), 4);
}

// A device that issued last leaves the next tile to another, which fetches it from the host.
TEST(Issue, DevicesTakeTurnsFromOneCallToTheNext) {
  EngineOptions options;
  options.machine = Machine::parse("emulated:2,memory=64MiB,h2d=1GB/s,d2h=1GB/s,peer=10GB/s");
  options.machine->kernels["kernel"]["emulated"] = {{1, 1e-5}};
  options.virtual_clock = true;
  Engine engine(options);
  const Codelet reads = codelet(Access::read, "kernel");
  std::vector<std::byte> home(2 * megabyte);
  const auto add = [&](std::int64_t at) {
    return engine.data(home.data() + at * megabyte, megabyte, 1, megabyte, DType::bytes);
  };
  engine.submit(reads, {{add(0)}}, {.owner = 0});
  engine.wait();
  const Data shared = add(1);
  engine.submit(reads, {{shared}}, {.owner = 0});
  engine.submit(reads, {{shared}}, {.owner = 1});
  engine.wait();
  std::int64_t second = 0;
  for (const LinkCounters& link : engine.counters().links)
    if (link.source == host_space && link.target == 2)
      second += static_cast<std::int64_t>(link.bytes);
  EXPECT_EQ(second, megabyte);
}

}  // namespace
}  // namespace quadriga
