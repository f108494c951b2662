// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/discovery_test.cpp: machines on which CUDA is absent, old, full, mixed or without
// peer access.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <string>
#include <vector>

#include "base/config.h"
#include "base/log.h"
#include "device/cuda/copies.h"
#include "device/cuda/cuda_backend.h"
#include "fake_cuda/streams.h"
#include "gpu/host_body.h"

namespace quadriga {
namespace {

using fake_cuda::faults;

class OddMachines : public testing::Test {
 protected:
  void SetUp() override {
    faults().devices = 2;
    set_log_sink([this](LogLevel, std::string_view message) { said_ += message; });
  }
  void TearDown() override {
    set_log_sink({});
    faults().devices = fake_cuda::devices_by_default();
    faults().absence = cudaSuccess;
    faults().driver_version = 13000;
    faults().without_kernels = -1;
    faults().without_peers = false;
    faults().are_mixed = false;
    faults().taken_bytes = 0;
    faults().refused_host_allocations = 0;
  }
  static std::string refusal() {
    try {
      EngineOptions options;
      options.devices = "cuda";
      const Engine engine(options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::unavailable) << error.what();
      return error.what();
    }
    return {};
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  std::string said_;
};

TEST_F(OddMachines, WithoutADriverTheReasonIsSaid) {
  faults().absence = cudaErrorInsufficientDriver;
  faults().driver_version = 0;
  EXPECT_TRUE(has(refusal(), "there is no CUDA driver")) << refusal();
}

TEST_F(OddMachines, AutoDoesNotPassOverADescriptionOfAnotherMachine) {
  Config::global().set("machine", QUADRIGA_SOURCE_DIR "/machines/h200x1.json");
  std::string why;
  try {
    Machine::parse("auto");
  } catch (const Error& error) {
    why = error.what();
  }
  Config::global().unset("machine");
  EXPECT_TRUE(has(why, "here is machine 'cuda'")) << why;
}

TEST_F(OddMachines, AutoTakesGpusAndDoesWithoutThem) {
  EXPECT_EQ(Machine::parse("auto").devices.front().kind, DeviceKind::cuda);
  faults().absence = cudaErrorInsufficientDriver;
  faults().driver_version = 0;
  EXPECT_EQ(Machine::parse("auto").devices.front().kind, DeviceKind::cpu);
}

TEST_F(OddMachines, ADriverThatIsTooOldIsNamedWithWhatIsNeeded) {
  faults().absence = cudaErrorInsufficientDriver;
  faults().driver_version = 12020;
  EXPECT_TRUE(has(refusal(), "the driver is for CUDA 12.2, this build needs 13.0")) << refusal();
}

TEST_F(OddMachines, WithoutADeviceTheReasonIsSaid) {
  faults().absence = cudaErrorNoDevice;
  EXPECT_TRUE(has(refusal(), "no CUDA device is visible")) << refusal();
}

TEST_F(OddMachines, AnArchitectureWithoutKernelsIsLeftOut) {
  faults().without_kernels = 0;
  const Machine machine = discover_cuda();
  ASSERT_EQ(machine.devices.size(), 1u);
  EXPECT_EQ(machine.devices[0].name, "gpu1");
  EXPECT_EQ(cuda::ordinals_of(machine), std::vector<int>{1});
  EXPECT_TRUE(has(said_, "device 0, none, is left out")) << said_;
  EXPECT_TRUE(has(said_, "kernels for 9.0")) << said_;
  EXPECT_NE(machine.route(host_space, machine.devices[0].space), nullptr);
}

TEST_F(OddMachines, MixedDevicesHaveMemoryAndRatesOfTheirOwn) {
  faults().are_mixed = true;
  const Machine machine = discover_cuda();
  ASSERT_EQ(machine.devices.size(), 2u);
  const Device& better = machine.devices[0];
  const Device& lesser = machine.devices[1];
  EXPECT_GT(better.memory_bytes, 3 * lesser.memory_bytes);
  EXPECT_NE(better.rates, lesser.rates);
  EXPECT_EQ(lesser.pitch_alignment, 128u);
  const double volume = 4096.0 * 4096 * 4096;
  EXPECT_LT(machine.kernel_seconds(better, "dgemm", 4096, volume),
            machine.kernel_seconds(lesser, "dgemm", 4096, volume));
  // Half the bus, half the rate of memory.
  const Cost reading = Cost::of_work(0, 1e9);
  const auto seconds = [&](const Device& device) {
    return machine.kernel_seconds(device, reading.kernel, reading.order, reading.volume);
  };
  EXPECT_NEAR(seconds(lesser), 2 * seconds(better), 1e-9);
}

/// Two devices that hand a tile to and fro, none of them seeing the other.
TEST_F(OddMachines, WithoutPeerAccessCopiesGoByWayOfTheHost) {
  faults().without_peers = true;
  EngineOptions options;
  options.machine = discover_cuda();
  for (Device& device : options.machine->devices) device.memory_bytes = std::size_t{1} << 20;
  std::vector<int> both = options.machine->route(1, host_space)->links;
  const std::vector<int>& second = options.machine->route(host_space, 2)->links;
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(options.machine->route(1, 2)->links, both);
  Codelet plus;
  plus.name = "plus";
  plus.access = {Access::update};
  plus.cuda = on_stream([](const Arguments& call) { call.operands[0].as<double>()[0] += 1; });
  double value = 0;
  Engine engine(options);
  const Data data = engine.data(&value, 1, 1, 1, DType::float64);
  for (DeviceId i = 0; i < 20; ++i) {
    SubmitOptions where;
    where.device = i % 2;
    engine.submit(plus, {{data, Access::update}}, where);
  }
  engine.wait(300);
  EXPECT_EQ(value, 20);
}

TEST_F(OddMachines, ADeviceThatOthersFilledGivesWhatItHas) {
  EngineOptions options;
  options.machine = discover_cuda();
  const std::size_t asked = options.machine->devices[0].memory_bytes;
  faults().taken_bytes = std::size_t{1280} << 20;  // since it was asked for
  const Engine engine(options);
  EXPECT_LT(engine.machine().devices[0].memory_bytes, std::size_t{768} << 20);
  EXPECT_GT(engine.machine().devices[0].memory_bytes, std::size_t{512} << 20);
  EXPECT_LT(engine.machine().devices[0].memory_bytes, asked);
  EXPECT_TRUE(has(said_, "device 'gpu0' gives")) << said_;
}

TEST_F(OddMachines, MemoryThatCannotBePinnedFailsATaskAndNotTheEngine) {
  EngineOptions options;
  options.machine = discover_cuda();
  for (Device& device : options.machine->devices) device.memory_bytes = std::size_t{16} << 20;
  Codelet plus;
  plus.name = "plus";
  plus.access = {Access::update};
  plus.cuda = [](const Arguments& call) {
    static_cast<cudaStream_t>(call.stream)->push([first = call.operands[0].as<double>()] {
      *first += 1;
    });
  };
  std::vector<double> values(std::size_t{1} << 17);
  Engine engine(options);
  const auto size = static_cast<std::int64_t>(values.size());
  const Data bad = engine.data(values.data(), size, 1, size, DType::float64);
  faults().refused_host_allocations = 1000;
  engine.submit(plus, {{bad, Access::update}});
  try {
    engine.wait(300);
    ADD_FAILURE() << "nothing was pinned, and nothing said";
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "pinning")) << error.what();
  }
  faults().refused_host_allocations = 0;
  std::vector<double> others(std::size_t{1} << 17);
  const Data good = engine.data(others.data(), size, 1, size, DType::float64);
  engine.submit(plus, {{good, Access::update}});
  engine.wait(300);
  EXPECT_EQ(others[0], 1);
  EXPECT_EQ(values[0], 0);
}

}  // namespace
}  // namespace quadriga
