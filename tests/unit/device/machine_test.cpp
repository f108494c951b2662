// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/machine_test.cpp: device lists, JSON descriptions, their errors, and what a
// machine answers.
#include <gtest/gtest.h>
#include <quadriga/codelet.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/config.h"
#include "device/factory.h"

namespace quadriga {
namespace {

const std::string idgraf = std::string(QUADRIGA_SOURCE_DIR) + "/machines/idgraf.json";

constexpr const char* small = R"({
  "name": "small",
  "devices": [{"name": "gpu0", "kind": "gpu", "memory": 1e6, "compute_streams": 2,
               "hardware_queues": 1},
              {"name": "cpu", "kind": "cpu", "cores": 3},
              {"name": "gpu1", "kind": "gpu", "memory": 2000000}],
  "links": {"bus": {"bandwidth": 1e9, "latency": 1e-6},
            "slot0": {"bandwidth": 3e9, "runs": {"65536": 1, "16384": 0.5, "4096": 0.25}},
            "slot1": {"bandwidth": 3e9, "latency": 2e-6}},
  "routes": [{"from": "host", "to": "gpu0", "links": ["bus", "slot0"]},
             {"from": "gpu0", "to": "host", "links": ["slot0", "bus"]},
             {"from": "host", "to": "gpu1", "links": ["bus", "slot1"]},
             {"from": "gpu0", "to": "gpu1", "links": ["slot0", "bus", "bus", "slot1"]}],
  "kernels": {"dgemm": {"gpu": {"100": 0.001, "200": 0.004}, "cpu": {"100": 0.1}}},
  "launch": 5e-6,
  "message": {"latency": 3e-5, "busy": 4e-6},
  "planning": {"engine": 1e-4, "task": 3e-6, "listed": 2e-7, "product": 1e-6}})";

// The message of the Error that a call throws, or "".
template <class Call>
std::string message_of(Errc code, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(MachineJson, ReadsWhatIsThere) {
  const Machine machine = Machine::from_json(small);
  ASSERT_EQ(machine.devices.size(), 3u);
  EXPECT_EQ(machine.devices[0].kind, DeviceKind::emulated);
  EXPECT_EQ(machine.devices[0].rates, "gpu");
  EXPECT_EQ(machine.devices[0].memory_bytes, 1000000u);
  EXPECT_EQ(machine.devices[0].compute_streams, 2);
  EXPECT_EQ(machine.devices[0].hardware_queues, 1);
  EXPECT_EQ(machine.devices[2].hardware_queues, 0);
  EXPECT_EQ(machine.devices[1].kind, DeviceKind::cpu);
  EXPECT_EQ(machine.devices[1].space, host_space);
  EXPECT_EQ(machine.devices[1].cores, 3);
  EXPECT_EQ(machine.devices[1].rates, "cpu");
  EXPECT_EQ(machine.devices[2].space, 2);
  EXPECT_EQ(machine.spaces(), 3);
  EXPECT_EQ(machine.launch_seconds, 5e-6);
  EXPECT_EQ(machine.message, (MessageCost{3e-5, 4e-6}));
  EXPECT_EQ(machine.planning, (PlanningCost{1e-4, 3e-6, 2e-7, 1e-6}));
  EXPECT_EQ(Machine::from_json(machine.to_json()).planning, machine.planning);
  EXPECT_EQ(Machine::from_json(machine.to_json()).message, machine.message);
  ASSERT_NE(machine.route(1, 2), nullptr);
  EXPECT_EQ(machine.route(1, 2)->links, (std::vector<int>{1, 0, 0, 2}));
  EXPECT_EQ(machine.route(2, 1), nullptr);
}

TEST(MachineJson, IsTheSameAfterWritingAndReading) {
  for (const Machine& machine : {Machine::from_json(small), Machine::from_file(idgraf),
                                 Machine::parse("cpu:2;emulated:2,peer=1GB/s")}) {
    const std::string text = machine.to_json();
    const Machine again = Machine::from_json(text);
    EXPECT_EQ(again.to_json(), text);
    ASSERT_EQ(again.devices.size(), machine.devices.size());
    EXPECT_EQ(again.devices.back().kind, machine.devices.back().kind);
    EXPECT_EQ(again.kernels, machine.kernels);
    ASSERT_EQ(again.links.size(), machine.links.size());
    for (std::size_t i = 0; i < again.links.size(); ++i)
      EXPECT_EQ(again.links[i].runs, machine.links[i].runs);
  }
}

TEST(MachineJson, ErrorsNameTheKey) {
  const auto refused = [](const std::string& from, const std::string& to) {
    std::string text = small;
    text.replace(text.find(from), from.size(), to);
    return message_of(Errc::invalid_argument, [&] { Machine::from_json(text); });
  };
  expect_in(refused("\"memory\": 1e6", "\"memory\": -4"), "devices[0].memory");
  expect_in(refused("\"memory\": 1e6", "\"storage\": 4"), "devices[0].memory is missing");
  expect_in(refused("\"kind\": \"cpu\"", "\"kind\": \"tpu\""), "devices[1].kind");
  expect_in(refused("\"cores\": 3", "\"cores\": 2.5"), "devices[1].cores");
  expect_in(refused("\"memory\": 1e6", "\"memory\": 1e6, \"pitch_alignment\": 96"),
            "devices[0].pitch_alignment: expected a power of two up to 4096");
  expect_in(refused("\"hardware_queues\": 1", "\"hardware_queues\": 0"),
            "devices[0].hardware_queues: expected a number from 1");
  expect_in(refused("\"hardware_queues\": 1", "\"hardware_queues\": 1.5"),
            "devices[0].hardware_queues: expected a whole number");
  expect_in(refused("\"gpu1\"", "\"gpu0\""), "devices[2].name");
  expect_in(refused("\"bandwidth\": 1e9", "\"bandwidth\": \"1e9\""), "links.bus.bandwidth");
  expect_in(refused("\"busy\": 4e-6", "\"busy\": 4e-5"),
            "message.busy: expected a number from 0 to 3e-05");
  expect_in(refused("\"listed\": 2e-7", "\"listed\": 0"),
            "planning.listed: expected a number from 1e-12 to 1");
  expect_in(refused("\"listed\"", "\"lists\""), "planning.listed is missing");
  expect_in(refused("[\"bus\", \"slot0\"]", "[\"bus\", \"slot9\"]"), "routes[0].links[1]");
  expect_in(refused("[\"bus\", \"slot0\"]", "[]"), "routes[0].links");
  expect_in(refused("\"from\": \"host\"", "\"from\": \"cpu\""), "routes[0].from");
  expect_in(refused("\"to\": \"host\"", "\"to\": \"gpu0\""), "routes[1].to");
  expect_in(refused("\"65536\": 1", "\"64 KiB\": 1"), "links.slot0.runs.64 KiB: expected bytes");
  expect_in(refused("\"4096\"", "\"0\""), "links.slot0.runs.0");
  expect_in(refused("0.25", "0"), "links.slot0.runs.4096: expected a number");
  expect_in(refused("0.25", "1.5"), "links.slot0.runs.4096");
  expect_in(refused("0.25", "\"all\""), "links.slot0.runs.4096");
  expect_in(refused("\"65536\": 1", "\"65536\": 0.9"),
            "links.slot0.runs: expected a share of 1, which is the whole rate, for the longest");
  expect_in(refused("{\"65536\": 1, \"16384\": 0.5, \"4096\": 0.25}", "[]"),
            "links.slot0.runs: expected an object");
  expect_in(refused("\"65536\": 1, \"16384\": 0.5, \"4096\": 0.25", ""), "links.slot0.runs");
  expect_in(refused("\"100\": 0.001", "\"big\": 0.001"), "kernels.dgemm.gpu.big");
  expect_in(refused("\"100\": 0.001", "\"100\": 0"), "kernels.dgemm.gpu.100");
  expect_in(refused("\"name\": \"small\"", "\"nom\": \"small\""), "name");
  expect_in(message_of(Errc::invalid_argument, [] { Machine::from_json("{"); }), "JSON");
  expect_in(message_of(Errc::invalid_argument, [] { Machine::from_json("[]"); }), "object");
}

TEST(MachineFile, ThatIsNotThereIsNamed) {
  expect_in(message_of(Errc::io, [] { Machine::from_file("/no/such.json"); }), "/no/such.json");
  expect_in(message_of(Errc::io, [] { Machine::from_file("/"); }), "/: is a folder");
}

TEST(Machine, CopyTakesLatencyAndTheNarrowestLink) {
  const Machine machine = Machine::from_json(small);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(0, 1, 1e6), 1e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(1, 2, 1e6), 4e-6 + 2e-3) << "the bus counts twice";
  EXPECT_TRUE(std::isinf(machine.copy_seconds(2, 1, 1)));
}

TEST(Machine, ShortRunsReachAShareOfALink) {
  const Machine machine = Machine::from_json(small);
  const Link& slot = machine.links[1];
  ASSERT_EQ(slot.name, "slot0");
  EXPECT_DOUBLE_EQ(slot.share(4096), 0.25);
  EXPECT_DOUBLE_EQ(slot.share(16384), 0.5);
  EXPECT_DOUBLE_EQ(slot.share(8192), 0.375) << "half way, counted in doublings";
  EXPECT_DOUBLE_EQ(slot.share(32768), 0.75);
  EXPECT_DOUBLE_EQ(slot.share(65536), 1);
  EXPECT_DOUBLE_EQ(slot.share(1e9), 1);
  EXPECT_DOUBLE_EQ(slot.share(1024), 0.0625) << "a run takes no less time than the shortest";
  EXPECT_DOUBLE_EQ(machine.links[0].share(1), 1) << "without a table all runs are alike";
}

TEST(Machine, CopiesByRunsAreAsFastAsTheSlowestLink) {
  const Machine machine = Machine::from_json(small);
  EXPECT_DOUBLE_EQ(machine.copy_rate(*machine.route(0, 1), 1e9), 1e9) << "the bus";
  EXPECT_DOUBLE_EQ(machine.copy_rate(*machine.route(0, 1), 4096), 0.75e9) << "the slot";
  EXPECT_DOUBLE_EQ(machine.copy_rate(*machine.route(0, 2), 4096), 1e9);
  EXPECT_DOUBLE_EQ(machine.copy_rate(*machine.route(1, 2), 4096), 0.5e9) << "the bus twice";
}

TEST(Machine, TimeAndWorkAreStatedToo) {
  Machine machine = Machine::from_json(small);
  const Device& gpu = machine.devices[0];
  const auto seconds = [&](const Cost& cost) {
    return machine.kernel_seconds(gpu, cost.kernel, cost.order, cost.volume);
  };
  EXPECT_EQ(seconds(Cost::of_seconds(0.5)), 0.5);
  const Cost work = Cost::of_work(2e9, 3e6);
  EXPECT_FALSE(machine.has_kernel(gpu, work.kernel));
  expect_in(message_of(Errc::unavailable, [&] { (void)seconds(work); }), "flops");
  machine.kernels["flops"][gpu.rates][1] = 1e-12;
  EXPECT_FALSE(machine.has_kernel(gpu, work.kernel)) << "bytes are still unknown";
  machine.kernels["bytes"][gpu.rates][1000] = 1;
  EXPECT_TRUE(machine.has_kernel(gpu, work.kernel));
  EXPECT_DOUBLE_EQ(seconds(work), 3e-3) << "the bytes are slower";
  EXPECT_DOUBLE_EQ(seconds(Cost::of_work(2e9, 1e3)), 2e-3);
}

TEST(Machine, NoTableSaysThatASmallerKernelTakesLonger) {
  Machine machine = Machine::from_json(small);
  const Device& gpu = machine.devices[0];
  auto& table = machine.kernels["dgemm"][gpu.rates];
  // Short kernels take what a launch takes, and a measurement may have them even slower.
  table = {{256, 8e-6}, {384, 7e-6}};
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(gpu, "dgemm", 16, 16 * 16 * 16), 8e-6);
  // Nor does the rate rise where orders fall.
  table = {{256, 1e-6}, {512, 16e-6}};
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(gpu, "dgemm", 128, 128 * 128 * 128), 0.125e-6);
}

TEST(Machine, WorkThatIsOnlyBytesHasATimeByRowsOfSeveralOrders) {
  Machine machine = Machine::from_json(small);
  const Device& gpu = machine.devices[0];
  machine.kernels["flops"][gpu.rates] = {{100, 1e-5}, {1000, 1e-3}};
  machine.kernels["bytes"][gpu.rates] = {{100, 2e-5}, {1000, 2e-3}};
  const auto seconds = [&](const Cost& cost) {
    return machine.kernel_seconds(gpu, cost.kernel, cost.order, cost.volume);
  };
  EXPECT_DOUBLE_EQ(seconds(Cost::of_work(0, 1e9)), 2e-3);
  EXPECT_DOUBLE_EQ(seconds(Cost::of_work(1e9, 0)), 1e-3);
  EXPECT_EQ(seconds(Cost::of_work(0, 0)), 0);
  // An order that nobody stated is no reason for a time without end.
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(gpu, "dgemm", 0, 1e6), 1e-3);
}

TEST(Machine, TellsWhatItsHostCopies) {
  Machine machine = Machine::parse("emulated:1,h2d=6GB/s,d2h=5GB/s");
  Device host;
  host.name = "host cpu";
  const Device& device = machine.devices.front();
  EXPECT_TRUE(machine.has_kernel(host, "dmove"));
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(host, "dmove", 100, 64e4), 2 * 8 * 1e4 / 6e9);
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(host, "zmove", 100, 64e4), 2 * 16 * 1e4 / 6e9);
  EXPECT_FALSE(machine.has_kernel(device, "dmove"));
  machine.kernels["dgemm"][host.rates] = {{100, 1e-3}};
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(host, "dmove", 100, 64e4), 0.64e-3);
  machine.routes.clear();
  EXPECT_FALSE(machine.has_kernel(host, "smove"));
  const std::string told =
      message_of(Errc::unavailable, [&] { machine.kernel_seconds(host, "smove", 100, 64e4); });
  expect_in(told, "neither a time of kernel 'sgemm'");
  expect_in(told, "nor a link of the host");
}

TEST(Machine, KernelTimesAreInterpolatedOnTheRate) {
  const Machine machine = Machine::from_json(small);
  const Device& gpu = machine.devices[0];
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(gpu, "dgemm", 100, 1e6), 1e-3);
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(gpu, "dgemm", 200, 8e6), 4e-3);
  // Rates 1e9 and 2e9: 1.5e9 half way.
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(gpu, "dgemm", 150, 3e6), 2e-3);
  // Below, the rate goes on falling as it does from 200 to 100: here with the order.
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(gpu, "dgemm", 10, 1e3), 1e-5);
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(machine.devices[1], "dgemm", 10, 1e3), 1e-4)
      << "constant where there is one entry";
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(gpu, "dgemm", 900, 2e6), 1e-3) << "and above";
  EXPECT_DOUBLE_EQ(machine.kernel_seconds(machine.devices[1], "dgemm", 100, 1e6), 0.1);
  EXPECT_TRUE(machine.has_kernel(gpu, "dgemm"));
  EXPECT_FALSE(machine.has_kernel(gpu, "sgemm"));
  const std::string message =
      message_of(Errc::unavailable, [&] { (void)machine.kernel_seconds(gpu, "sgemm", 1, 1); });
  expect_in(message, "sgemm");
  expect_in(message, "gpu0");
}

TEST(DeviceList, EmulatedDevicesGetWhatIsStated) {
  const Machine machine =
      Machine::parse("emulated:3,memory=64MiB,h2d=6GB/s,d2h=4GB/s,latency=10us,streams=2");
  ASSERT_EQ(machine.devices.size(), 3u);
  EXPECT_EQ(machine.devices[2].name, "emulated2");
  EXPECT_EQ(machine.devices[2].memory_bytes, std::size_t{64} << 20);
  EXPECT_EQ(machine.devices[2].compute_streams, 2);
  EXPECT_EQ(machine.devices[2].space, 3);
  EXPECT_EQ(machine.links.size(), 6u);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(0, 3, 6e9), 1.00001);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(3, 0, 4e9), 1.00001);
  EXPECT_EQ(machine.route(1, 2), nullptr) << "peer copies are off unless asked for";
}

TEST(DeviceList, DefaultsAreStated) {
  const Machine machine = Machine::parse("emulated");
  ASSERT_EQ(machine.devices.size(), 1u);
  EXPECT_EQ(machine.devices[0].memory_bytes, std::size_t{1} << 30);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(0, 1, 6e9), 1);
  EXPECT_EQ(Machine::parse("emulated:2,peer=off").routes.size(), 4u);
}

TEST(DeviceList, PeersShareALinkInAndOut) {
  const Machine machine = Machine::parse("emulated:3,peer=20GB/s");
  EXPECT_EQ(machine.routes.size(), 6u + 6u);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(1, 3, 20e9), 1);
  EXPECT_EQ(machine.route(1, 2)->links[0], machine.route(1, 3)->links[0]);
  EXPECT_EQ(machine.route(1, 3)->links[1], machine.route(2, 3)->links[1]);
}

TEST(DeviceList, ListsAreJoined) {
  const Machine machine = Machine::parse("cpu:2; emulated:1,memory=1GiB ;emulated:2");
  ASSERT_EQ(machine.devices.size(), 4u);
  EXPECT_EQ(machine.devices[0].cores, 2);
  EXPECT_EQ(machine.devices[1].name, "emulated0");
  EXPECT_EQ(machine.devices[3].name, "emulated2");
  EXPECT_EQ(machine.devices[3].space, 3);
  EXPECT_EQ(machine.links[machine.route(0, 3)->links[0]].name, "emulated2 h2d");
}

TEST(DeviceList, CpuIsThisComputer) {
  const Machine machine = Machine::parse("cpu");
  ASSERT_EQ(machine.devices.size(), 1u);
  EXPECT_GE(machine.devices[0].cores, 1);
  EXPECT_EQ(machine.devices[0].kind, DeviceKind::cpu);
  EXPECT_EQ(machine.spaces(), 1);
}

TEST(DeviceList, AutoIsAllGpusOrElseTheCores) {
  const Machine machine = Machine::parse("auto");
  ASSERT_FALSE(machine.devices.empty());
  const DeviceKind expected = Machine::cuda_absence().empty() ? DeviceKind::cuda : DeviceKind::cpu;
  for (const Device& device : machine.devices) EXPECT_EQ(device.kind, expected);
}

TEST(DeviceList, DescriptionGivesItsFirstAccelerators) {
  const Machine machine = Machine::parse("machine=" + idgraf + ":4,memory=600e6");
  ASSERT_EQ(machine.devices.size(), 4u);
  EXPECT_EQ(machine.devices[3].name, "gpu3");
  EXPECT_EQ(machine.devices[3].memory_bytes, 600000000u);
  EXPECT_EQ(machine.routes.size(), 4u * 5u);
  EXPECT_TRUE(machine.has_kernel(machine.devices[0], "dgemm"));
  const Machine whole = Machine::from_file(idgraf);
  for (SpaceId from = 0; from <= 4; ++from) {
    for (SpaceId to = 0; to <= 4; ++to) {
      EXPECT_EQ(machine.copy_seconds(from, to, 1e6), whole.copy_seconds(from, to, 1e6));
    }
  }
  EXPECT_LT(machine.links.size(), whole.links.size()) << "links that no one crosses are left out";
  EXPECT_EQ(Machine::parse("machine=" + idgraf).devices.size(), 8u);
  EXPECT_EQ(Machine::parse("machine=" + idgraf + ":1,cpu=on").devices.size(), 2u);
}

TEST(DeviceList, KeysOverrideADescription) {
  const Machine machine = Machine::parse(
      "machine=" + idgraf + ":2,memory=1.5GiB,h2d=0.54GB/s,d2h=0.5GB/s,peer=off,streams=3");
  EXPECT_EQ(machine.routes.size(), 4u);
  EXPECT_EQ(machine.links.size(), 4u);
  EXPECT_EQ(machine.devices[1].compute_streams, 3);
  EXPECT_EQ(machine.route(1, 2), nullptr);
  const double latency = Machine::from_file(idgraf).copy_seconds(0, 1, 0);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(0, 1, 0.54e9), 1 + latency) << "the latency is kept";
}

TEST(DeviceList, StatedRatesKeepWhatShortRunsReach) {
  const std::string path = testing::TempDir() + "runs-" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << small;
  const Machine machine = Machine::parse("machine=" + path + ":1,h2d=2GB/s,d2h=2GB/s");
  std::remove(path.c_str());
  EXPECT_DOUBLE_EQ(machine.copy_rate(*machine.route(0, 1), 4096), 0.5e9);
  EXPECT_DOUBLE_EQ(machine.copy_rate(*machine.route(1, 0), 65536), 2e9);
}

TEST(DeviceList, ErrorsNameTheItemAndWhatIsAccepted) {
  for (const char* list :
       {"", ";", "gpu:2", "emulated:x", "emulated:0", "emulated:2,memory", "emulated,memory=x",
        "emulated,memory=0", "emulated,h2d=-1", "emulated,speed=3", "emulated,peer=maybe",
        "cpu:2,memory=1GB", "cpu;cpu", "emulated,streams=0", "emulated:2;;cpu"}) {
    SCOPED_TRACE(list);
    const std::string message = message_of(Errc::invalid_argument, [&] { Machine::parse(list); });
    expect_in(message, "accepted are");
  }
  expect_in(message_of(Errc::invalid_argument, [] { Machine::parse("cpu;emulated,h2d=fast"); }),
            "emulated,h2d=fast");
  expect_in(message_of(Errc::invalid_argument,
                       [] { Machine::parse("emulated:2,memory=1MiB, memory =2MiB"); }),
            "'memory' is given twice");
  expect_in(message_of(Errc::invalid_argument, [] { Machine::parse(std::string("a\0b", 3)); }),
            "'a\\0b': ");
  expect_in(message_of(Errc::invalid_argument, [] { Machine::parse("machine=" + idgraf + ":9"); }),
            "8 accelerators");
  expect_in(message_of(Errc::io, [] { Machine::parse("machine=/no/such.json:2"); }), "such.json");
  if (!Machine::cuda_absence().empty())
    expect_in(message_of(Errc::unavailable, [] { Machine::parse("cuda:1"); }), "CUDA");
}

TEST(Backends, AreChosenByTheMachine) {
  EXPECT_FALSE(make_backend(Machine::parse("cpu:1"))->is_virtual());
  EXPECT_NE(make_backend(Machine::parse("cpu:1;emulated"))->allocate(1, 4096), nullptr);
  BackendOptions options;
  options.virtual_clock = true;
  EXPECT_TRUE(make_backend(Machine::parse("emulated"), options)->is_virtual());
  EXPECT_THROW(make_backend(Machine()), Error);
}

// Writes a description to a file that the setting `machine` names, until the test ends.
class ConfiguredDescription : public testing::Test {
 protected:
  ~ConfiguredDescription() override {
    Config::global().unset("machine");
    std::remove(path_.c_str());
  }
  void use(const std::string& text) {
    std::ofstream(path_) << text;
    Config::global().set("machine", path_);
  }

 private:
  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("machine-" + std::to_string(::getpid()))).string();
};

TEST_F(ConfiguredDescription, StandsForSupposedRatesAndNotForStatedOnes) {
  use(Machine::parse("emulated:3,h2d=3GB/s,d2h=2GB/s,peer=9GB/s").to_json());
  const Machine machine = Machine::parse("emulated:2,memory=4MiB,h2d=7GB/s");
  EXPECT_EQ(machine.devices[0].memory_bytes, std::size_t{4} << 20);
  EXPECT_NEAR(machine.copy_seconds(1, host_space, 2e9), 1, 1e-6);
  EXPECT_NEAR(machine.copy_seconds(host_space, 1, 7e9), 1, 1e-6);
  EXPECT_NEAR(machine.copy_seconds(1, 2, 9e9), 1, 1e-6);
  EXPECT_EQ(machine.route(3, host_space), nullptr);
}

TEST_F(ConfiguredDescription, OfOtherDevicesSaysNothingOfEmulatedOnes) {
  use(small);
  EXPECT_EQ(Machine::parse("emulated:2").route(1, 2), nullptr);
}

TEST_F(ConfiguredDescription, OfTooFewIsRefused) {
  use(Machine::parse("emulated:1").to_json());
  expect_in(message_of(Errc::invalid_argument, [] { Machine::parse("emulated:2"); }),
            "describes emulated0; here is machine 'emulated' with emulated0, emulated1");
}

TEST(MachineJson, TellsWhatProductsOfShortSumsReach) {
  const std::string text =
      R"({"name": "m", "devices": [{"name": "gpu0", "kind": "gpu", "memory": 1e6,
                               "sums": {"512": 0.5, "2048": 1}}]})";
  const Machine machine = Machine::from_json(text);
  const Device& device = machine.devices[0];
  EXPECT_DOUBLE_EQ(device.share_of_sum(256), 0.25) << "as long as the shortest";
  EXPECT_DOUBLE_EQ(device.share_of_sum(1024), 0.75);
  EXPECT_DOUBLE_EQ(device.share_of_sum(4096), 1);
  EXPECT_DOUBLE_EQ(Device().share_of_sum(1), 1) << "without a table all sums are alike";
  EXPECT_EQ(Machine::from_json(machine.to_json()).devices[0].sums, device.sums);
  std::string wrong = text;
  wrong.replace(wrong.find("\"2048\": 1"), 9, "\"2048\": 0.9");
  expect_in(message_of(Errc::invalid_argument, [&] { Machine::from_json(wrong); }),
            "devices[0].sums: expected a share of 1");
}

TEST(MachineJson, KeepsWhereDevicesArePluggedIn) {
  Machine machine = Machine::parse("emulated:2,peer=1GB/s");
  machine.devices[0].model = "NVIDIA H200";
  machine.devices[0].pci_address = "0000:17:00.0";
  machine.devices[0].pitch_alignment = 128;
  machine.devices[0].pcie_generation = 5;
  machine.devices[0].pcie_lanes = 16;
  machine.devices[0].node = 0;
  machine.nodes = {{0, 1024, 2, {0, 1, 4}}, {1, 2048, 0}};
  const Machine again = Machine::from_json(machine.to_json());
  EXPECT_EQ(again.to_json(), machine.to_json());
  EXPECT_EQ(again.devices[0].model, "NVIDIA H200");
  EXPECT_EQ(again.devices[0].pcie_lanes, 16);
  EXPECT_EQ(again.devices[0].pitch_alignment, 128u);
  EXPECT_EQ(again.devices[1].pitch_alignment, 1u);
  EXPECT_EQ(again.devices[0].node, 0);
  EXPECT_EQ(again.devices[1].node, -1);
  ASSERT_EQ(again.nodes.size(), 2u);
  EXPECT_EQ(again.nodes[0].processors, (std::vector<int>{0, 1, 4}));
  EXPECT_EQ(again.nodes[1].memory_bytes, 2048u);
  const std::string wrong = R"({"name": "m", "devices": [{"name": "cpu", "kind": "cpu"}],
                                "nodes": [{"processors": "0-"}]})";
  expect_in(message_of(Errc::invalid_argument, [&] { Machine::from_json(wrong); }),
            "nodes[0].processors");
}

}  // namespace
}  // namespace quadriga
