// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/returned_field_test.cpp: fields whose size a kernel decides, in whole runs.
#include "pipeline/returned_field.h"

#include <gtest/gtest.h>

#include <mutex>

#include "pipeline/flow.h"
#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

/// A body's array, where it made it: by chunk.
struct Made {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<double>> of;
};
struct FillParams {
  const std::vector<double>* values;
};

class ReturnedFieldTest : public FlowTest {
 protected:
  ReturnedFieldTest() {
    halve_.name = "halve";
    halve_.access = {Access::read};
    halve_.cpu = [this](const Arguments& a) {
      const View& x = a.operands[0];
      const std::lock_guard lock(made_.mutex);
      made_.of[static_cast<std::uint64_t>(*x.as<double>())].assign(
          static_cast<std::size_t>(x.rows / 2), *x.as<double>());
    };
    fill_.name = "halve";
    fill_.access = {Access::write};
    fill_.cpu = [](const Arguments& a) {
      std::ranges::copy(*a.param<FillParams>().values, a.operands[0].as<double>());
    };
    halve_.cost = fill_.cost = [](const Arguments&) { return Cost::of_seconds(1e-6); };
  }

  std::vector<double>& made(const Chunk& chunk) {
    const std::lock_guard lock(made_.mutex);
    return made_.of.at(chunk.number());
  }
  ReturnedField returned() {
    ReturnedField field;
    field.name = "y";
    field.take = [this](Chunk& chunk, bool is_on_host, bool) {
      std::vector<double>& values = made(chunk);
      const auto rows = static_cast<std::int64_t>(values.size());
      const View view{values.data(), rows, 1, std::max<std::int64_t>(1, rows), DType::float64};
      if (is_on_host) return chunk.lend("y", view), view;
      return chunk.add("y", rows, 1, DType::float64);
    };
    field.fill = &fill_;
    field.fill_params = [this](const Chunk& chunk) {
      const FillParams params{&made(chunk)};
      const auto bytes = std::as_bytes(std::span(&params, 1));
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    field.filled = [](const Chunk&) {};
    return field;
  }

  Made made_;
  Codelet halve_;
  Codelet fill_;
};

TEST_P(ReturnedFieldTest, LaterKernelsAndTheHostSeeItsSize) {
  const std::vector<std::int64_t> lengths = random_lengths(100, 9);
  Stage first;
  first.kind = StageKind::kernel;
  first.name = "halve";
  first.codelet = &halve_;
  first.uses = reads("x");
  first.returns = {returned()};
  Stage second;
  second.kind = StageKind::kernel;
  second.name = "increment";
  second.codelet = &increment_;
  second.uses = updates("y");
  FlowOptions given;
  given.host_bytes = std::size_t{1} << 20;
  given.threads = 2;
  Flow flow(*engine_, {first, second}, numbers(lengths), given);
  bool is_late = false;
  std::uint64_t next = 0;
  while (const auto chunk = flow.next(true, -1, is_late)) {
    const auto y = chunk->values<double>("y");
    ASSERT_EQ(static_cast<std::int64_t>(y.size()), lengths[next] / 2);
    for (const double value : y) ASSERT_EQ(value, static_cast<double>(next) + 1);
    ++next;
  }
  EXPECT_EQ(next, 100u);
}

INSTANTIATE_TEST_SUITE_P(Engines, ReturnedFieldTest, all_engines(), engine_name);

}  // namespace
}  // namespace quadriga
