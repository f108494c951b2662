// SPDX-License-Identifier: BSD-3-Clause
// tests/model/graph/replay_test.cpp: what a scheduler decided in a run, on threads or by the
// virtual clock, well or beside faults, follows from its log alone.
#include <fmt/format.h>
#include <quadriga/engine.h>

#include <utility>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "base/random.h"
#include "device/factory.h"
#include "full_disk.h"
#include "model/graph/logged_run.h"
#include "model/graph/random_program.h"
#include "sanitized.h"

namespace quadriga {
namespace {

constexpr std::uint64_t programs = is_thread_sanitized ? 10 : is_sanitized ? 20 : 60;

std::string log_of(std::uint64_t seed, bool virtual_clock, bool fails) {
  ProgramRun made = make_run(seed, virtual_clock);
  FaultPlan plan;
  plan.seed = seed;
  plan.copy_probability = 0.02;
  plan.launch_probability = 0.01;
  if (seed % 2 == 0) plan.losses.push_back({0, 1 + seed % 60});
  if (fails)
    made.options.wrap_backend = [&plan](std::unique_ptr<Backend> backend) {
      return make_faulty_backend(std::move(backend), plan);
    };
  int lost = 0;
  return logged_run([&] {
    const std::string wrong = fails ? made.program.run_despite_faults(made.options, lost)
                                    : made.program.run(made.options);
    EXPECT_EQ(wrong, "") << "QUADRIGA_TEST_SEED=" << seed;
  });
}

struct Runs {
  const char* name;
  bool virtual_clock;
  bool fails;
};

void PrintTo(const Runs& runs, std::ostream* out) { *out << runs.name; }

class ReplayTest : public testing::TestWithParam<Runs> {};

TEST_P(ReplayTest, GivesTheSameInstructions) {
  set_log_level(LogLevel::off);
  const Seeds seeds = test_seeds(500'001, programs);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const std::string log = log_of(seed, GetParam().virtual_clock, GetParam().fails);
    const ReplayResult result = replay_text(log);
    ASSERT_EQ(result.difference, "") << "QUADRIGA_TEST_SEED=" << seed;
    // A device is lost early in some.
    EXPECT_GT(result.instructions, GetParam().fails ? 0u : 50u);
    EXPECT_GT(result.events, result.tasks);
  }
}

INSTANTIATE_TEST_SUITE_P(, ReplayTest,
                         testing::Values(Runs{"Virtual", true, false}, Runs{"Real", false, false},
                                         Runs{"VirtualFaults", true, true},
                                         Runs{"RealFaults", false, true}),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(ReplayLogTest, FindsAnEventThatIsMissing) {
  std::string log = log_of(500'001, true, false);
  const std::size_t begin = log.find("[\"ready\"");
  ASSERT_NE(begin, std::string::npos);
  log.erase(begin, log.find('\n', begin) + 1 - begin);
  EXPECT_NE(replay_text(log).difference, "");
}

/// Two devices, each near a node of the host; the other node is farther than the other device.
Machine two_nodes() {
  Machine machine =
      Machine::parse("emulated:2,memory=256KiB,h2d=10GB/s,d2h=10GB/s,peer=3GB/s,latency=0");
  machine.kernels["unit"]["emulated"][1] = 1e-6;
  machine.nodes = {{.index = 0, .memory_bytes = 1 << 30}, {.index = 1, .memory_bytes = 1 << 29}};
  const int between = static_cast<int>(machine.links.size());
  machine.links.push_back({.name = "between", .bytes_per_second = 1e9});
  for (Device& device : machine.devices) {
    device.node = device.space == 1 ? 0 : 1;
    for (const bool is_in : {false, true}) {
      Route far = is_in ? *machine.route(host_space, device.space)
                        : *machine.route(device.space, host_space);
      far.links.push_back(between);
      far.node = 1 - device.node;
      machine.routes.push_back(far);
    }
  }
  return machine;
}

TEST(ReplayLogTest, KnowsOnWhichNodesOfTheHostBuffersLie) {
  Codelet fill{.name = "fill", .access = {Access::write}, .cpu = [](const Arguments&) {}};
  fill.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
  Codelet look = fill;
  look.access = {Access::read};
  for (const std::string& spill : {std::string(), testing::TempDir() + "spill-of-replay"}) {
    const std::string log = logged_run([&] {
      EngineOptions options;
      options.machine = two_nodes();
      options.virtual_clock = true;
      options.host_memory = 1 << 20;
      options.spill = spill;
      Engine engine(std::move(options));
      std::vector<Data> data;
      for (int i = 0; i < 8; ++i) {  // More than a device holds.
        data.push_back(engine.temporary(8192, 1, DType::float64));
        engine.submit(fill, {{data.back(), Access::write}}, {.device = 1});
      }
      for (const Data& each : data) {
        engine.submit(look, {{each, Access::read}}, {.device = 1});
        engine.submit(look, {{each, Access::read}}, {.device = 0});
      }
      engine.wait(60);
    });
    const ReplayResult result = replay_text(log);
    EXPECT_EQ(result.difference, "") << spill;
    EXPECT_GT(result.instructions, 0u);
  }
}

TEST(ReplayLogTest, WhereTheDiskWasFullItIsFullAgain) {
  set_log_level(LogLevel::off);
  constexpr std::int64_t order = 512;  // Two megabytes a tile; the log stays far below the limit.
  constexpr std::size_t tile = order * order * sizeof(double);
  Codelet fill{.name = "fill", .access = {Access::write}, .cpu = [](const Arguments&) {}};
  fill.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
  std::string log = logged_run([&] {
    const FullDisk disk(4 * tile);
    Config::global().set("spill_rate", "1GB/s");
    EngineOptions options;
    options.machine =
        Machine::parse("emulated:2,memory=6MiB,h2d=10GB/s,d2h=10GB/s,peer=3GB/s,latency=0");
    options.machine->kernels["unit"]["emulated"][1] = 1e-6;
    options.host_memory = 4 * tile;
    options.spill = testing::TempDir() + "full-disk-of-replay";
    Engine engine(std::move(options));
    Config::global().unset("spill_rate");
    std::vector<Data> data;
    for (int i = 0; i < 16; ++i) {  // More than devices and disk hold.
      data.push_back(engine.temporary(order, order, DType::float64));
      engine.submit(fill, {{data.back(), Access::write}});
    }
    try {
      engine.wait();
      ADD_FAILURE() << "the disk isn't full";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("can't grow"), std::string::npos) << error.what();
    }
  });
  const ReplayResult result = replay_text(log);
  EXPECT_EQ(result.difference, "");
  EXPECT_GT(result.instructions, 0u);
}

TEST(ReplayLogTest, BuffersThatTheSystemRefusedAreRefusedAgain) {
  Codelet fill{.name = "fill", .access = {Access::write}, .cpu = [](const Arguments&) {}};
  fill.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
  std::string log = logged_run([&] {
    EngineOptions options;
    options.machine = Machine::parse("emulated:1,memory=256KiB,h2d=10GB/s,d2h=10GB/s");
    options.machine->kernels["unit"]["emulated"][1] = 1e-6;
    options.virtual_clock = true;
    Engine engine(std::move(options));
    for (int i = 0; i < 16; ++i)  // More than the device holds.
      engine.submit(fill, {{engine.temporary(8192, 1, DType::float64), Access::write}});
    engine.wait(60);
  });
  EXPECT_EQ(replay_text(log).difference, "");
  // As if the system had refused all of them.
  constexpr int questions = 100;
  for (int question = 1; question <= questions; ++question)
    log.insert(log.find("[\"task\""), fmt::format("[\"refused\",{}]\n", question));
  EXPECT_NE(replay_text(log).difference, "") << "it is decided otherwise";
}

TEST(ReplayLogTest, RefusesWhatIsNoLog) {
  EXPECT_THROW(replay_text(""), Error);
  EXPECT_THROW(replay_text("[\"step\"\n"), Error);
  EXPECT_THROW(replay_text("[\"options\"]\n[\"kernel_streams\",[]]\n"), Error);
}

}  // namespace
}  // namespace quadriga
