// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/cores_test.cpp: rows on the host's cores beside devices, where that pays.
#include <algorithm>

#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

/// Two devices and two cores; gigabytes a second of each, of the links, and microseconds of these.
Machine machine_of(double device, double core, double link, double latency) {
  const std::string links = std::to_string(link) + "GB/s";
  Machine machine = Machine::parse("cpu:2;emulated:2,h2d=" + links + ",d2h=" + links +
                                   ",peer=" + links + ",latency=" + std::to_string(latency) + "us");
  for (const auto& [column, rate] : {std::pair("emulated", device), std::pair("cpu", core)}) {
    machine.kernels["bytes"][column][1000] = 1 / rate;
    machine.kernels["flops"][column][1000] = 1e9 / 5e12;
  }
  return machine;
}

EngineOptions on(Machine machine, bool is_virtual = true) {
  EngineOptions options;
  options.machine = std::move(machine);
  options.virtual_clock = is_virtual;
  return options;
}

bool has_cores(const Engine& engine, const PlanReport& plan) {
  return std::ranges::any_of(plan.devices, [&](DeviceId each) {
    return each != no_device && engine.machine().devices[each].kind == DeviceKind::cpu;
  });
}

TEST(CoresBesideDevices, GetTheirShareWhereThatPays) {
  const auto a = grid_matrix<double>({64, 32, 32, 27});
  Engine engine(on(machine_of(20, 5, 10, 1)));
  const Solver solver(engine, a.view());
  const PlanReport plan = solver.plan();
  ASSERT_EQ(plan.devices.size(), 4u);
  ASSERT_TRUE(has_cores(engine, plan));
  // Bytes are divided as rates are: 20, 20, 5 and 5.
  const double total =
      static_cast<double>(plan.bytes[0] + plan.bytes[1] + plan.bytes[2] + plan.bytes[3]);
  for (std::size_t part = 0; part < 4; ++part) {
    const bool is_core = engine.machine().devices[plan.devices[part]].kind == DeviceKind::cpu;
    EXPECT_NEAR(static_cast<double>(plan.bytes[part]) / total, is_core ? 0.1 : 0.4, 0.03);
  }
  // And iterations are shorter for it.
  SolverOptions alone;
  alone.parts = 2;
  const Solver without(engine, a.view(), alone);
  EXPECT_FALSE(has_cores(engine, without.plan()));
  EXPECT_LT(solver.measure_product(10), 0.9 * without.measure_product(10));
}

TEST(CoresBesideDevices, GetNoneWhereTheyCostMore) {
  const auto large = grid_matrix<double>({64, 32, 32, 27}), small = grid_matrix<double>({8, 8, 8});
  {
    Engine engine(on(machine_of(1000, 5, 10, 1)));
    EXPECT_FALSE(has_cores(engine, Solver(engine, large.view()).plan())) << "slow";
  }
  {
    Engine engine(on(machine_of(20, 5, 10, 1000)));
    EXPECT_FALSE(has_cores(engine, Solver(engine, large.view()).plan())) << "far";
  }
  {
    Engine engine(on(machine_of(20, 5, 0.01, 1)));
    EXPECT_FALSE(has_cores(engine, Solver(engine, large.view()).plan())) << "long halos";
  }
  {
    Engine engine(on(machine_of(20, 5, 10, 1)));
    EXPECT_FALSE(has_cores(engine, Solver(engine, small.view()).plan())) << "little to read";
    SolverOptions asked;
    asked.recorded = false;
    EXPECT_FALSE(has_cores(engine, Solver(engine, large.view(), asked).plan())) << "all devices";
  }
  {
    Machine machine = machine_of(20, 5, 10, 1);
    machine.kernels["bytes"].erase("cpu");
    Engine engine(on(std::move(machine)));
    EXPECT_FALSE(has_cores(engine, Solver(engine, large.view()).plan())) << "no rates";
  }
}

TEST(CoresBesideDevices, GiveTheBitsOfOneDevice) {
  const auto a = grid_matrix<double>({32, 32, 32, 27}, 0.1);
  const auto b = random_vector<double>(a.rows, 6);
  std::vector<double> expected(b.size());
  {
    Engine engine({"emulated:1"});
    SolverOptions options;
    options.precondition = Precondition::jacobi;
    options.method = CgMethod::classic;
    Solver(engine, a.view(), options).cg(b.data(), expected.data());
  }
  for (const bool is_virtual : {false, true})
    for (const Precondition m : {Precondition::jacobi, Precondition::chebyshev}) {
      Engine engine(on(machine_of(2, 1, 10, 0.001), is_virtual));
      SolverOptions options;
      options.precondition = m;
      options.method = CgMethod::classic;
      const Solver solver(engine, a.view(), options);
      ASSERT_TRUE(has_cores(engine, solver.plan())) << is_virtual;
      std::vector<double> x(b.size());
      EXPECT_EQ(solver.cg(b.data(), x.data()).reason, StopReason::converged);
      if (m == Precondition::jacobi) {
        EXPECT_EQ(x, expected);
      }
    }
}

}  // namespace
}  // namespace quadriga::sparse::testing
