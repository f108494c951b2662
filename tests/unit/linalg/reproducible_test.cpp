// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/reproducible_test.cpp: with Options::reproducible results are the same to the
// bit for any number of devices, also where plans for fast devices choose the tiles.
#include <fmt/format.h>

#include <set>

#include "base/config.h"
#include "linalg/device_group.h"
#include "linalg/product_plan.h"
#include "sanitized.h"
#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {
namespace {

constexpr int most_devices = 4;

/// The first GPUs of a description, whose kernels compute under the virtual clock.
std::unique_ptr<Engine> gpu_engine(int devices, double memory_bytes,
                                   std::optional<bool> reproducible = std::nullopt) {
  EngineOptions options;
  options.reproducible = reproducible;
  options.machine = Machine::parse(
      fmt::format("machine={}/machines/h200x4.json:{}", QUADRIGA_SOURCE_DIR, devices));
  for (Device& device : options.machine->devices)
    device.memory_bytes = static_cast<std::size_t>(memory_bytes);
  options.virtual_clock = true;
  return std::make_unique<Engine>(options);
}

std::unique_ptr<Engine> plain_engine(int devices) {
  return make_engine(fmt::format("emulated:{},memory=4MiB", devices).c_str());
}

const Options as_for_one = [] {
  Options options;
  options.reproducible = true;
  return options;
}();

/// Calls work(engine) on one to four devices; what it returns must be the same to the bit.
template <class Make, class Work>
void expect_identical(Make&& make, Work&& work) {
  const auto reference = work(*make(1));
  for (int devices = is_sanitized ? 3 : 2; devices <= most_devices; ++devices)
    EXPECT_TRUE(reference.same_bytes(work(*make(devices)))) << devices << " devices";
}

Array product(Engine& engine, std::int64_t n, const Options& options) {
  const Array a = random_matrix(n, n + 3, DType::float64, Lay::columns, 1);
  const Array b = random_matrix(n + 3, n, DType::float64, Lay::columns, 2);
  Array c(n, n, DType::float64);
  matmul(engine, 1, a.view(), Op::none, b.view(), Op::none, 0, c.view(), options);
  return c;
}

Array factor(Engine& engine, std::int64_t n, const Options& options) {
  Array c = spd_matrix(n, DType::float64, Lay::columns, 3);
  cholesky(engine, c.view(), c.view(), Uplo::lower, Other::zero, options);
  return c;
}

TEST(Reproducible, OnEmulatedDevices) {
  expect_identical(plain_engine, [](Engine& engine) { return product(engine, 333, as_for_one); });
  expect_identical(plain_engine, [](Engine& engine) { return factor(engine, 333, as_for_one); });
}

TEST(Reproducible, ByPlansOfFastDevices) {
  const auto make = [](int devices) { return gpu_engine(devices, 1e9); };
  expect_identical(make, [](Engine& engine) { return product(engine, 1101, as_for_one); });
  expect_identical(make, [](Engine& engine) { return factor(engine, 1101, as_for_one); });
}

/// Rows of A stay while the rest streams past.
TEST(Reproducible, WhereOperandsDontFit) {
  const auto make = [](int devices) { return gpu_engine(devices, 50e6); };
  expect_identical(make, [](Engine& engine) { return product(engine, 1101, as_for_one); });
}

TEST(Reproducible, CoresCountAsOne) {
  Problem problem{Problem::Kind::matmul, 2000, 2000, 2000, DType::float64};
  EXPECT_EQ(default_tile(*make_engine("cpu:1"), problem, as_for_one),
            default_tile(*make_engine("cpu:2"), problem, as_for_one));
  EXPECT_NE(default_tile(*make_engine("cpu:1"), problem),
            default_tile(*make_engine("cpu:2"), problem));
}

/// Else the tests above would hold without it.
TEST(Reproducible, IsNotWhatPlansDoByThemselves) {
  std::set<std::int64_t> products, reproducible;
  for (int devices = 1; devices <= most_devices; ++devices) {
    const auto engine = gpu_engine(devices, 140e9);
    const Problem about{Problem::Kind::matmul, 12000, 12000, 12000, DType::float64};
    const auto columns = [&](const Options& options) {
      return plan_product(*engine, group_of(*engine), about, options).cols.count();
    };
    products.insert(columns({}));
    reproducible.insert(columns(as_for_one));
  }
  EXPECT_GT(products.size(), 1u);
  EXPECT_EQ(reproducible.size(), 1u);
}

TEST(Reproducible, IsSaidByTheCallElseTheEngineElseTheSetting) {
  const Problem about{Problem::Kind::matmul, 12000, 12000, 12000, DType::float64};
  const auto bounds = [&](std::optional<bool> of_engine, std::optional<bool> of_call) {
    const auto engine = gpu_engine(4, 140e9, of_engine);
    Options options;
    options.reproducible = of_call;
    return plan_product(*engine, group_of(*engine), about, options).cols.bounds;
  };
  const auto same = bounds(std::nullopt, true);
  const auto other = bounds(std::nullopt, false);
  ASSERT_NE(same, other);
  for (const char* const setting : {"true", "false"}) {
    Config::global().set("reproducible", setting);
    for (const bool said : {true, false}) {
      EXPECT_EQ(bounds(said, std::nullopt), said ? same : other) << setting;
      EXPECT_EQ(bounds(!said, said), said ? same : other) << setting;
    }
  }
  Config::global().unset("reproducible");
}

TEST(Reproducible, IsSaidByAnEngineForResults) {
  const auto make = [](int devices) { return gpu_engine(devices, 1e9, true); };
  expect_identical(make, [](Engine& engine) { return product(engine, 1101, {}); });
  expect_identical(make, [](Engine& engine) { return factor(engine, 1101, {}); });
}

TEST(Reproducible, IsASetting) {
  Config::global().set("reproducible", "true");
  const auto engine = gpu_engine(4, 140e9);
  const Problem about{Problem::Kind::matmul, 12000, 12000, 12000, DType::float64};
  const Tiling by_setting = plan_product(*engine, group_of(*engine), about, {}).cols;
  Config::global().set("reproducible", "false");
  EXPECT_EQ(by_setting.bounds,
            plan_product(*engine, group_of(*engine), about, as_for_one).cols.bounds);
  EXPECT_NE(by_setting.bounds, plan_product(*engine, group_of(*engine), about, {}).cols.bounds);
}

}  // namespace
}  // namespace quadriga::linalg::testing
