// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/cancelled_overlap_test.cpp: what ran before a cancellation is kept, though
// tasks on data that overlap it were to bring it home.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace quadriga {
namespace {

constexpr std::int64_t order = 12;
constexpr std::int64_t first_column = 3;
constexpr std::int64_t columns = 4;
constexpr std::int64_t inner_column = 5;  // One of these; its data overlap theirs.

void add_one(const Arguments& arguments) {
  const View& view = arguments.operands[0];
  for (std::int64_t j = 0; j < view.cols; ++j)
    for (std::int64_t i = 0; i < view.rows; ++i) ++view.as<double>()[i + j * view.ld];
}

Codelet made(std::string name, std::vector<Access> access, Kernel body) {
  Codelet codelet;
  codelet.name = std::move(name);
  codelet.access = std::move(access);
  codelet.cpu = std::move(body);
  return codelet;
}

/// A matrix of 13 everywhere. A task adds 1 to some columns, and is running while others are
/// submitted and cancelled: one that writes a column of them, and, if wanted, one that reads them
/// all, so that they would be brought up to date.
class CancelledOverlap : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const Future ran = submit(runs_, {{wide_, Access::update}});
    const Future cancelled = submit(adds_, {{inner_, Access::update}});
    if (GetParam()) submit(reads_, {{wide_, Access::read}, {sum_, Access::write}});
    begun_.wait();
    std::jthread later([this] { opened_.count_down(); });
    engine_.cancel();
    EXPECT_EQ(code_of([&] { engine_.wait(); }), std::nullopt);
    ASSERT_EQ(code_of([&] { engine_.wait(ran); }), std::nullopt) << "it had begun";
    was_cancelled_ = code_of([&] { engine_.wait(cancelled); }) == Errc::cancelled;
  }

  Future submit(const Codelet& codelet, std::vector<Operand> operands) {
    return engine_.submit(codelet, operands, {}, {.device = 0});
  }
  template <class Call>
  static std::optional<Errc> code_of(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return {};
  }
  double at(std::int64_t column) const { return matrix_[static_cast<std::size_t>(column * order)]; }

  std::vector<double> matrix_ = std::vector<double>(order * order, 13);
  double total_ = 0;
  std::latch begun_{1};
  std::latch opened_{1};
  bool was_cancelled_ = false;
  Codelet runs_ = made("runs", {Access::update}, [this](const Arguments& arguments) {
    begun_.count_down();
    opened_.wait();
    add_one(arguments);
  });
  Codelet adds_ = made("adds", {Access::update}, add_one);
  Codelet sets_ = made("sets", {Access::write}, [](const Arguments& arguments) {
    std::fill_n(arguments.operands[0].as<double>(), order, 7);
  });
  Codelet reads_ = made("reads", {Access::read, Access::write}, [](const Arguments& arguments) {
    double& total = arguments.operands[1].as<double>()[0] = 0;
    const View& view = arguments.operands[0];
    for (std::int64_t j = 0; j < view.cols; ++j)
      for (std::int64_t i = 0; i < view.rows; ++i) total += view.as<double>()[i + j * view.ld];
  });
  Engine engine_{EngineOptions{.devices = "emulated:1,memory=1MiB"}};
  Data wide_ =
      engine_.data(matrix_.data() + first_column * order, order, columns, order, DType::float64);
  Data inner_ =
      engine_.data(matrix_.data() + inner_column * order, order, 1, order, DType::float64);
  Data sum_ = engine_.data(&total_, 1, 1, 1, DType::float64);
};

TEST_P(CancelledOverlap, WhatRanIsAtHome) {
  for (std::int64_t column = first_column; column < first_column + columns; ++column) {
    if (column != inner_column) EXPECT_EQ(at(column), 14) << column;
  }
  if (!was_cancelled_) EXPECT_EQ(at(inner_column), 15);
}

TEST_P(CancelledOverlap, WhatRanIsReadOnceTheLossIsOverwritten) {
  const auto read = [&] {
    engine_.wait(submit(reads_, {{wide_, Access::read}, {sum_, Access::write}}));
  };
  if (was_cancelled_) EXPECT_EQ(code_of(read), Errc::cancelled);
  submit(sets_, {{inner_, Access::write}});
  EXPECT_EQ(code_of(read), std::nullopt);
  engine_.wait();
  EXPECT_EQ(total_, order * (3 * 14 + 7));
  EXPECT_EQ(at(first_column), 14);
  EXPECT_EQ(at(inner_column), 7);
}

INSTANTIATE_TEST_SUITE_P(All, CancelledOverlap, testing::Bool(), [](const auto& tested) {
  return tested.param ? "TheReaderIsCancelledToo" : "NoneReads";
});

}  // namespace
}  // namespace quadriga
