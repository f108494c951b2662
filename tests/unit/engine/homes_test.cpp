// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/homes_test.cpp: data at home in a device's memory, on emulated devices.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <algorithm>

#include "device_homes.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

constexpr std::int64_t rows = 8;
constexpr std::int64_t cols = 4;
constexpr std::int64_t ld = 10;
/// Of a tile's buffer on the host: a page.
constexpr std::size_t buffer_bytes = 4096;

class HomesTest : public testing::TestWithParam<Where> {
 protected:
  HomesTest() {
    plus_one_.name = "plus_one";
    plus_one_.access = {Access::read, Access::write};
    plus_one_.cpu = [](const Arguments& arguments) {
      const View& a = arguments.operands[0];
      const View& b = arguments.operands[1];
      for (std::int64_t j = 0; j < cols; ++j)
        for (std::int64_t i = 0; i < rows; ++i)
          b.as<double>()[i + j * b.ld] = a.as<double>()[i + j * a.ld] + 1;
    };
    plus_one_.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
    increment_.name = "increment";
    increment_.access = {Access::update};
    increment_.cpu = [](const Arguments& arguments) { *arguments.operands[0].as<double>() += 1; };
    increment_.cost = plus_one_.cost;
    sum_.name = "sum";
    sum_.access = {Access::read, Access::read, Access::update};
    sum_.cpu = [](const Arguments& arguments) {
      const auto first = [&](std::size_t i) { return arguments.operands[i].as<double>(); };
      *first(2) += *first(0) + *first(1);
    };
    sum_.cost = plus_one_.cost;
  }
  void make(const std::string& devices, std::function<void(WrappedOptions&)> change = {}) {
    WrappedOptions options;
    options.devices = devices;
    options.machine = Machine::parse(devices);
    for (const Device& device : options.machine->devices)
      options.machine->kernels["unit"][device.rates][1] = 1e-5;
    options.virtual_clock = is_virtual(GetParam());
    if (change) change(options);
    engine_ = EngineAccess::make_unique(homes_.around(options));
    for (const DeviceId device : {DeviceId{0}, DeviceId{1}}) {
      double* const home = take(device);
      std::fill_n(home, ld * cols, device == 0 ? 1.0 : 2.0);
      homes_at_[device] = home;
      data_[device] = engine_->data(device, home, rows, cols, ld, DType::float64);
    }
  }
  double* take(DeviceId device) {
    return reinterpret_cast<double*>(homes_.take(device, ld * cols * sizeof(double)));
  }
  /// Tiles at home on device 0, the i-th full of i; many_ says where.
  std::vector<Data> add_many(std::size_t count) {
    std::vector<Data> made;
    for (std::size_t i = 0; i < count; ++i) {
      many_.push_back(take(0));
      std::fill_n(many_.back(), ld * cols, static_cast<double>(i));
      made.push_back(engine_->data(0, many_.back(), rows, cols, ld, DType::float64));
    }
    return made;
  }
  std::uint64_t moved() const {
    std::uint64_t bytes = 0;
    for (const LinkCounters& link : engine_->counters().links) bytes += link.bytes;
    return bytes;
  }
  void run(DeviceId where, DeviceId from, DeviceId to) {
    engine_->submit(plus_one_, {{data_[from], Access::read}, {data_[to], Access::write}},
                    SubmitOptions{.device = where});
    engine_->wait(patience);
  }

  DeviceHomes homes_;
  Codelet plus_one_;   ///< b = a + 1, elementwise.
  Codelet increment_;  ///< Of the first element.
  Codelet sum_;        ///< c += a + b, of the first elements.
  std::unique_ptr<Engine> engine_;
  double* homes_at_[2] = {};
  std::vector<double*> many_;
  Data data_[2];
};

INSTANTIATE_TEST_SUITE_P(Engine, HomesTest, testing::Values(Where::emulated, Where::virtual_clock),
                         where_name);

constexpr const char* joined = "emulated:2,memory=1MiB,peer=4GB/s;cpu:1";
constexpr const char* apart = "emulated:2,memory=1MiB,peer=off;cpu:1";

TEST_P(HomesTest, TasksWhereTheDataAreUseThemInPlace) {
  make(joined);
  double* const other = take(0);
  const Data there = engine_->data(0, other, rows, cols, ld, DType::float64);
  engine_->submit(plus_one_, {{data_[0], Access::read}, {there, Access::write}},
                  SubmitOptions{.device = 0});
  engine_->wait(patience);
  EXPECT_EQ(other[0], 2);
  EXPECT_EQ(other[rows - 1 + (cols - 1) * ld], 2);
  EXPECT_EQ(moved(), 0u);
  EXPECT_EQ(engine_->counters().devices[0].most_bytes, 0u) << "homes take none of the arena";
  EXPECT_TRUE(engine_->valid(std::span(&there, 1), 1)[0]);
  engine_->remove(there);
}

TEST_P(HomesTest, WhatAnotherDeviceWroteGoesHomeByAPeerCopy) {
  make(joined);
  run(1, 1, 0);
  EXPECT_EQ(homes_at_[0][0], 3);
  EXPECT_EQ(homes_at_[0][rows], 1) << "the gap between columns is the caller's";
  const std::uint64_t bytes = rows * cols * sizeof(double);
  EXPECT_EQ(moved(), bytes) << "one way, and not by the host";
}

TEST_P(HomesTest, WithoutARouteTheWayIsByTheHost) {
  make(apart);
  run(1, 0, 1);
  EXPECT_EQ(homes_at_[1][0], 2);
  run(0, 1, 0);
  EXPECT_EQ(homes_at_[0][0], 3);
  run(0, 0, 1);
  EXPECT_EQ(homes_at_[1][0], 4) << "written on device 0, whose peer can't be reached";
}

TEST_P(HomesTest, MoreMayPassTheHostThanItsBuffersHold) {
  make(apart, [](WrappedOptions& options) { options.host_memory = 3 * buffer_bytes; });
  constexpr int count = 12;
  std::vector<double*> results;
  for (int i = 0; i < count; ++i) {
    double* const from = take(0);
    std::fill_n(from, ld * cols, i);
    results.push_back(take(1));
    const Data source = engine_->data(0, from, rows, cols, ld, DType::float64);
    const Data target = engine_->data(1, results.back(), rows, cols, ld, DType::float64);
    engine_->submit(plus_one_, {{source, Access::read}, {target, Access::write}},
                    SubmitOptions{.device = 1});
  }
  engine_->wait(patience);
  for (int i = 0; i < count; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)][0], i + 1);
}

TEST_P(HomesTest, CoresMayUpdateMoreThanTheHostsBuffersHold) {
  make(joined, [](WrappedOptions& options) { options.host_memory = 3 * buffer_bytes; });
  constexpr std::size_t count = 12;
  const std::vector<Data> tiles = add_many(count);
  for (int round = 0; round < 3; ++round)
    for (const Data tile : tiles)
      engine_->submit(increment_, {{tile, Access::update}}, SubmitOptions{.device = 2});
  engine_->wait(patience);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(many_[i][0], static_cast<double>(i) + 3) << i;
}

TEST_P(HomesTest, WhatWasReadOnTheHostLeavesItsBuffersToOthers) {
  make(joined, [](WrappedOptions& options) { options.host_memory = 4 * buffer_bytes; });
  const std::vector<Data> tiles = add_many(5);
  engine_->submit(plus_one_, {{tiles[0], Access::read}, {tiles[1], Access::write}},
                  SubmitOptions{.device = 2});
  engine_->wait(patience);
  engine_->submit(sum_,
                  {{tiles[2], Access::read}, {tiles[3], Access::read}, {tiles[4], Access::update}},
                  SubmitOptions{.device = 2});
  engine_->wait(patience);
  EXPECT_EQ(many_[4][0], 2 + 3 + 4);
}

TEST_P(HomesTest, CoresNeedNoMoreBuffersThanATaskHasOperands) {
  make(apart, [](WrappedOptions& options) { options.host_memory = 2 * buffer_bytes; });
  constexpr std::size_t count = 6;
  const std::vector<Data> tiles = add_many(count);
  for (std::size_t i = 0; i + 1 < count; ++i)
    engine_->submit(plus_one_, {{tiles[i], Access::read}, {tiles[i + 1], Access::write}},
                    SubmitOptions{.device = 2});
  engine_->wait(patience);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(many_[i][0], static_cast<double>(i)) << i;
}

TEST_P(HomesTest, OneBufferLetsAllOperandsOfATaskPass) {
  make(apart, [](WrappedOptions& options) { options.host_memory = buffer_bytes; });
  const std::vector<Data> tiles = add_many(3);
  engine_->submit(sum_,
                  {{tiles[0], Access::read}, {tiles[1], Access::read}, {tiles[2], Access::update}},
                  SubmitOptions{.device = 1});
  engine_->wait(patience);
  EXPECT_EQ(many_[2][0], 3);
}

TEST_P(HomesTest, TasksWithMoreOperandsThanTheHostHasBuffersRunElsewhere) {
  make("emulated:2,memory=1MiB,peer=4GB/s",
       [](WrappedOptions& options) { options.host_memory = buffer_bytes; });
  const std::vector<Data> tiles = add_many(2);
  const auto submit = [&] {
    engine_->submit(plus_one_, {{tiles[0], Access::read}, {tiles[1], Access::write}},
                    SubmitOptions{.device = 2});
  };
  submit();
  engine_->wait(patience);
  EXPECT_EQ(many_[1][0], 1);
  EXPECT_EQ(engine_->counters().devices[2].tasks, 0u);
  plus_one_.host_only = true;
  try {
    submit();
    FAIL() << "two tiles of a page each had one page";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large) << error.what();
    for (const char* const part : {"8 KiB", "4 KiB", "host_memory"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_P(HomesTest, WhatCannotPassTheHostIsNamedWhereItIsWaitedFor) {
  make(apart, [](WrappedOptions& options) { options.host_memory = buffer_bytes; });
  // The only buffer holds what no device does: a tile without a home, written on the host.
  const Data homeless = engine_->temporary(rows, cols, DType::float64);
  const std::vector<Data> tiles = add_many(1);
  Codelet set;
  set.name = "set";
  set.access = {Access::write};
  set.cpu = [](const Arguments& arguments) { *arguments.operands[0].as<double>() = 7; };
  set.cost = plus_one_.cost;
  engine_->submit(set, {{homeless, Access::write}}, SubmitOptions{.device = 2});
  engine_->submit(set, {{tiles[0], Access::write}}, SubmitOptions{.device = 1});
  for (int i = 0; i < 2; ++i) {
    try {
      engine_->wait(patience);
      FAIL() << "went home without a way";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::too_large) << error.what();
    }
  }
  engine_->remove(std::span(&homeless, 1), true);
  engine_->wait(patience);
  EXPECT_EQ(many_[0][0], 7);
}

TEST_P(HomesTest, CoresWorkOnACopyThatGoesBack) {
  make(joined);
  run(2, 0, 1);
  EXPECT_EQ(homes_at_[1][0], 2);
  engine_->remove(data_);
}

TEST_P(HomesTest, SayWhoseMemoryItIs) {
  make(joined);
  EXPECT_EQ(engine_->device_of(homes_at_[1]), 1);
  double on_host = 0;
  EXPECT_EQ(engine_->device_of(&on_host), no_device);
  engine_->synchronize(0);
  const auto refusal = [](auto&& call) {
    try {
      call();
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  const auto refused = [&](DeviceId device, void* home) {
    return refusal([&] { engine_->data(device, home, 1, 1, 1, DType::float64); });
  };
  EXPECT_NE(refusal([&] { engine_->synchronize(7); }).find("0 to 2"), std::string::npos);
  EXPECT_NE(refused(9, &on_host).find("0 to 2"), std::string::npos);
  EXPECT_NE(refused(0, homes_at_[1]).find("emulated1"), std::string::npos);
  EXPECT_NE(refused(0, &on_host).find("the host"), std::string::npos);
  EXPECT_EQ(refused(2, &on_host), "") << "cores work on the host's memory";
}

TEST_P(HomesTest, TakeNoRoomOfTheArena) {
  make("emulated:2,memory=1MiB;cpu:1");
  constexpr std::int64_t large = 512;  // 2 MiB of doubles: twice the arena
  auto* const home = reinterpret_cast<double*>(homes_.take(0, large * large * sizeof(double)));
  const Data data = engine_->data(0, home, large, large, large, DType::float64);
  Codelet set;
  set.name = "set";
  set.access = {Access::update};
  set.cpu = [](const Arguments& arguments) { *arguments.operands[0].as<double>() = 5; };
  set.cost = [](const Arguments&) { return Cost{"unit", 1, 1}; };
  engine_->submit(set, {{data, Access::update}}, SubmitOptions{.device = 0});
  engine_->wait(patience);
  EXPECT_EQ(home[0], 5) << "only where it is at home does it fit";
}

TEST_P(HomesTest, ALostDeviceNamesTheDataThatWereAtHomeThere) {
  make(joined, [](WrappedOptions& options) {
    options.wrap_backend = [](std::unique_ptr<Backend> backend) {
      FaultPlan plan;
      plan.losses = {{0, 1}};
      return make_faulty_backend(std::move(backend), plan);
    };
  });
  const Data there = engine_->data(0, take(0), rows, cols, ld, DType::float64);
  const auto failure = [&](DeviceId where, Data from, Data to) {
    try {
      engine_->submit(plus_one_, {{from, Access::read}, {to, Access::write}},
                      SubmitOptions{.device = where});
      engine_->wait(patience);
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::device_lost) << error.what();
      return std::string(error.what());
    }
  };
  EXPECT_EQ(failure(0, data_[0], there), "");
  EXPECT_NE(failure(0, there, data_[0]), "");
  EXPECT_NE(
      failure(1, data_[1], there).find("8 x 4 float64 tile is in the memory of device 'emulated0'"),
      std::string::npos);
  const Data well = engine_->data(1, take(1), rows, cols, ld, DType::float64);
  EXPECT_EQ(failure(1, data_[1], well), "") << "what was home elsewhere is intact";
}

}  // namespace
}  // namespace quadriga
