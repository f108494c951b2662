// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/believed_test.cpp: plans by wrong figures: who chooses by them, and that time
// doesn't pass by them.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <vector>

#include "engine/engine_access.h"

namespace quadriga {
namespace {

/// Two devices; a kernel takes a millisecond on the first, and as told on the second.
Machine two_devices(double second_seconds) {
  Machine machine = Machine::parse("emulated:2,memory=1MiB,h2d=1GB/s,d2h=1GB/s,peer=off");
  for (std::size_t d = 0; d < 2; ++d) machine.devices[d].rates = machine.devices[d].name;
  machine.kernels["step"]["emulated0"] = {{1, 1e-3}};
  machine.kernels["step"]["emulated1"] = {{1, second_seconds}};
  return machine;
}

EngineOptions options_for(const Machine& machine, const std::optional<Machine>& believed) {
  EngineOptions options;
  options.machine = machine;
  options.believed = believed;
  options.virtual_clock = true;
  options.compute = false;
  options.policy = "earliest-finish";
  return options;
}

/// Milliseconds that eight tasks of their own data take.
double milliseconds(const EngineOptions& options) {
  Engine engine(options);
  Codelet work;
  work.name = "step";
  work.access = {Access::update};
  work.cpu = [](const Arguments&) {};
  work.cost = [](const Arguments&) { return Cost{"step", 1, 1}; };
  std::vector<double> numbers(8);
  for (double& number : numbers)
    engine.submit(work, {{engine.data(&number, 1, 1, 1, DType::float64), Access::update}});
  engine.wait();
  return static_cast<double>(engine.counters().elapsed) * 1e-6;
}

TEST(Believed, TheRightDescriptionChangesNothing) {
  const Machine machine = two_devices(4e-3);
  EXPECT_EQ(milliseconds(options_for(machine, machine)), milliseconds(options_for(machine, {})));
}

TEST(Believed, ChoicesFollowItAndTimeDoesNot) {
  const Machine alike = two_devices(1e-3), slow = two_devices(20e-3);
  EXPECT_NEAR(milliseconds(options_for(alike, {})), 4, 0.1);
  EXPECT_NEAR(milliseconds(options_for(slow, {})), 8, 0.1);  // all on the first
  EXPECT_NEAR(milliseconds(options_for(alike, slow)), 8, 0.1);
  EXPECT_GT(milliseconds(options_for(slow, alike)), 20);  // some on the second
}

TEST(Believed, MachinesAreToldApart) {
  const Machine truth = two_devices(1e-3), believed = two_devices(2e-3);
  const Engine engine(options_for(truth, believed));
  const auto second = [](const Machine& machine) {
    return machine.kernels.at("step").at("emulated1").at(1);
  };
  EXPECT_EQ(second(engine.machine()), 2e-3);
  EXPECT_EQ(second(EngineAccess::truth(engine)), 1e-3);
  const Engine plain(options_for(truth, {}));
  EXPECT_EQ(&plain.machine(), &EngineAccess::truth(plain));
}

std::string refusal(const EngineOptions& options) {
  try {
    const Engine engine(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(Believed, OtherDevicesAndRoutesAreRefused) {
  const Machine truth = two_devices(1e-3);
  const auto said_of = [&](const Machine& believed) {
    return refusal(options_for(truth, believed));
  };
  EXPECT_NE(said_of(Machine::parse("emulated:3")).find("3 devices"), std::string::npos);
  EXPECT_NE(said_of(Machine::parse("cpu:1;emulated:1")).find("of kind cpu"), std::string::npos);
  EXPECT_NE(said_of(Machine::parse("emulated:2,peer=1GB/s"))
                .find("a route from emulated0 to emulated1, which the machine lacks"),
            std::string::npos);
  EngineOptions real = options_for(truth, truth);
  real.virtual_clock = false;
  EXPECT_NE(refusal(real).find("virtual clock"), std::string::npos);
}

}  // namespace
}  // namespace quadriga
