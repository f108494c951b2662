// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/mixed_test.cpp: machines whose devices differ in speed and memory.
#include <string>

#include "sanitized.h"
#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {
namespace {

/// So many H200s, of which the last `lesser` compute at a third of the rate and have one `share`th
/// of the memory.
Machine mixed(std::size_t count, std::size_t lesser, std::size_t share = 8) {
  Machine machine = Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x4.json:" +
                                   std::to_string(count));
  for (auto& [kernel, columns] : machine.kernels) {
    const auto first = columns.begin()->second;
    for (const auto& [order, seconds] : first) columns["lesser"][order] = 3 * seconds;
  }
  for (std::size_t i = count - lesser; i < count; ++i) {
    machine.devices[i].rates = "lesser";
    machine.devices[i].memory_bytes /= share;
  }
  return machine;
}

double seconds(const Machine& machine, Problem::Kind kind, std::int64_t n) {
  EngineOptions options;
  options.machine = machine;
  options.virtual_clock = true;
  options.compute = false;
  const Engine engine(options);
  return estimate(engine, {kind, n, n, n, DType::float64, false, false}).seconds;
}

/// By the rates of all together, if four equal ones take so long.
constexpr double share_of(double equal, double faster, double lesser) {
  return equal * 4 / (faster + lesser / 3);
}

class Mixed : public ::testing::TestWithParam<Problem::Kind> {
 protected:
  void SetUp() override {
    if (is_thread_sanitized) GTEST_SKIP() << "one thread does everything";
  }
};

TEST_P(Mixed, EachDeviceDoesWhatItsRateAllows) {
  constexpr std::int64_t n = 32768;
  const double equal = seconds(mixed(4, 0), GetParam(), n);
  // Plans of products share evenly; who is quick then takes from others. Tiles of a factorization
  // are planned for each machine: those of equal devices end closer together.
  constexpr double slack = 1.12;
  EXPECT_LE(seconds(mixed(4, 2), GetParam(), n), slack * share_of(equal, 2, 2));
  EXPECT_LE(seconds(mixed(4, 1), GetParam(), n), slack * share_of(equal, 3, 1));
}

TEST_P(Mixed, SmallerMemoryOfSomeHardlySlowsTheOthers) {
  constexpr std::int64_t n = 32768;
  const double whole = seconds(mixed(4, 2, 1), GetParam(), n);
  EXPECT_LE(seconds(mixed(4, 2, 64), GetParam(), n), 1.08 * whole);
  // There is room for tiles of 2048 rows, which are copied by short runs; and factorizations that
  // don't fit aren't tried, those beside them are, which takes 7 % from `whole`, as forwarding in
  // slices takes 2 %.
  EXPECT_LE(seconds(mixed(4, 2, 128), GetParam(), n), 1.24 * whole);
}

TEST_P(Mixed, SlowDevicesDontHinderASmallProblem) {
  constexpr std::int64_t n = 16384;
  EXPECT_LE(seconds(mixed(4, 2), GetParam(), n), 1.07 * seconds(mixed(2, 0), GetParam(), n));
}

// Its tiles come and go by way of the others, as the plans know.
TEST_P(Mixed, ASlowLinkToTheHostHardlySlowsTheOthers) {
  constexpr std::int64_t n = 16384;
  Machine machine = mixed(4, 0);
  for (Link& link : machine.links)
    if (link.name.starts_with("pcie3 ")) link.bytes_per_second /= 5;
  EXPECT_LE(seconds(machine, GetParam(), n), 1.3 * seconds(mixed(4, 0), GetParam(), n));
}

INSTANTIATE_TEST_SUITE_P(, Mixed, ::testing::Values(Problem::Kind::matmul, Problem::Kind::cholesky),
                         [](const auto& given) {
                           return std::string(given.param == Problem::Kind::matmul ? "Product"
                                                                                   : "Cholesky");
                         });

}  // namespace
}  // namespace quadriga::linalg::testing
