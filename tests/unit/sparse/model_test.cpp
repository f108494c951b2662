// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/model_test.cpp: predictions beside the paper's, and by a machine's description.
#include "sparse/model.h"

#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

constexpr double link_rate = 13.2e9;
constexpr double memory_rate = 549e9;

/// Two devices of the paper: no link between them, so that copies go by way of the host.
Machine paper_machine(bool has_peer) {
  Machine machine = Machine::parse(has_peer ? "emulated:2,h2d=13.2GB/s,d2h=13.2GB/s,peer=37GB/s"
                                            : "emulated:2,h2d=13.2GB/s,d2h=13.2GB/s,peer=off");
  machine.kernels["bytes"]["emulated"][1000] = 1e9 / memory_rate;
  machine.kernels["flops"]["emulated"][1000] = 1e9 / 5.3e12;
  return machine;
}

TEST(Model, GivesThePapersGainOfOverlap) {
  // 987 products of Serena in 1.89 s on one device; each of two needs half of the vector.
  constexpr double rows = 1391349;
  const ProductModel model{1.89 / 987 / 2, 2 * (rows / 2 * 8) / link_rate};
  EXPECT_NEAR(model.largest_gain(), 0.4691, 0.002);
  EXPECT_EQ(model.overlapped_seconds(), model.compute_seconds);
  EXPECT_EQ(model.in_turn_seconds(), model.compute_seconds + model.exchange_seconds);
  EXPECT_EQ(ProductModel{}.largest_gain(), 0);
}

TEST(Model, FollowsTheMachinesDescription) {
  const auto a = grid_matrix<double>({64, 32, 32, 27});
  for (const bool has_peer : {false, true}) {
    EngineOptions options;
    options.machine = paper_machine(has_peer);
    Engine engine(options);
    const PlanReport plan = Solver(engine, a.view()).plan();
    ASSERT_EQ(plan.models.size(), 2u);
    const double halo_bytes = 64 * 32 * 8;
    const double rate = has_peer ? 37e9 : link_rate / 2;
    for (std::size_t part = 0; part < 2; ++part) {
      EXPECT_EQ(plan.halo_rows[part], 64 * 32);
      EXPECT_NEAR(plan.models[part].exchange_seconds, halo_bytes / rate, 1e-3 * halo_bytes / rate);
      const double rows = static_cast<double>(a.rows) / 2;
      const double bytes = static_cast<double>(plan.bytes[part]) + rows * 16 + halo_bytes;
      EXPECT_NEAR(plan.models[part].compute_seconds, bytes / memory_rate,
                  1e-3 * bytes / memory_rate);
    }
  }
}

// What a second device saves of reading it loses by waiting, where there is little to read.
TEST(Model, LeavesOutDevicesThatMakeAnIterationLonger) {
  const auto small = grid_matrix<double>({8, 8, 8}), large = grid_matrix<double>({64, 32, 32, 27});
  EngineOptions options;
  options.machine = Machine::parse("emulated:3,latency=10us");
  options.machine->kernels["bytes"]["emulated"][1000] = 1e9 / 2e9;
  options.machine->kernels["flops"]["emulated"][1000] = 1e9 / 5e12;
  options.machine->launch_seconds = 3e-6;
  Engine engine(options);
  EXPECT_EQ(Solver(engine, small.view()).plan().devices, std::vector<DeviceId>{0});
  EXPECT_EQ(Solver(engine, large.view()).plan().devices, (std::vector<DeviceId>{0, 1, 2}));
  SolverOptions asked;
  asked.recorded = false;
  EXPECT_EQ(Solver(engine, small.view(), asked).plan().devices.size(), 3u);
  asked = {};
  asked.parts = 3;
  EXPECT_EQ(Solver(engine, small.view(), asked).plan().devices.size(), 3u);
}

// Links and launches that cost nothing say that two devices pay, which takes them much longer.
TEST(Model, MeasuresWhatWaitingTakesWhereFiguresDontDecide) {
  const auto a = grid_matrix<double>({8, 8, 8});
  EngineOptions options;
  options.machine = Machine::parse("emulated:2,latency=0.01us");
  options.machine->kernels["bytes"]["emulated"][1000] = 1e9 / 100e9;
  options.machine->kernels["flops"]["emulated"][1000] = 1e9 / 5e12;
  Engine engine(options);
  EXPECT_EQ(Solver(engine, a.view()).plan().devices.size(), 1u);
  options.virtual_clock = true;
  Engine by_figures(options);
  EXPECT_EQ(Solver(by_figures, a.view()).plan().devices.size(), 2u);
}

TEST(Model, IsUnknownWithoutRates) {
  const auto a = grid_matrix<double>({8, 8, 8});
  for (const char* const devices : {"cpu:2", "emulated:2"}) {
    Engine engine({devices});
    EXPECT_TRUE(Solver(engine, a.view()).plan().models.empty());
  }
}

}  // namespace
}  // namespace quadriga::sparse::testing
