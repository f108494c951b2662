// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/pipeline/per_stream_test.cpp: values of streams are made once, and not shared.
#include <gtest/gtest.h>
#include <quadriga/per_stream.h>

#include <atomic>
#include <stdexcept>

#include "unit/pipeline/flow_fixture.h"

namespace quadriga {
namespace {

/// Counts those that live, and notices that two use it at once.
struct Plan {
  explicit Plan(std::atomic<int>& given) : living(&given) { ++*living; }
  Plan(Plan&& other) noexcept : living(std::exchange(other.living, nullptr)) {}
  ~Plan() {
    if (living) --*living;
  }
  std::atomic<int>* living;
  std::atomic<int> users{0};
};

class PerStreamTest : public FlowTest {};

TEST_P(PerStreamTest, EachStreamHasAValueThatNobodyElseUses) {
  std::atomic<int> living{0};
  std::atomic<int> most{0};
  std::atomic<bool> is_shared{false};
  {
    Codelet library = increment_;
    library.cpu = [&, plans = per_stream([&](const Arguments&) { return Plan(living); }),
                   inner = increment_.cpu](const Arguments& arguments) {
      Plan& plan = plans->of(arguments);
      is_shared = is_shared || plan.users.fetch_add(1) > 0;
      inner(arguments);
      most = std::max(most.load(), living.load());
      plan.users.fetch_sub(1);
    };
    Pipeline pipeline(options());
    std::uint64_t seen = 0;
    pipeline.source(numbers(random_lengths(100, 1))).kernel(library, {updates("x")});
    while (const auto chunk = pipeline.next())
      EXPECT_EQ(chunk->values<double>("x")[0], static_cast<double>(seen++) + 1);
    EXPECT_EQ(seen, 100u);
  }
  EXPECT_FALSE(is_shared);
  EXPECT_GE(most, 1);
  EXPECT_LE(most, 8);
  EXPECT_EQ(living, 0);
}

TEST_P(PerStreamTest, ALibraryIsCalledWithItsPlan) {
  std::atomic<int> made{0};
  {
    const LibraryCall<std::vector<double>> scale{
        .name = "scale",
        .cpu =
            [](std::vector<double>& plan, const Arguments& a) {
              for (std::int64_t i = 0; i < a.operands[1].rows; ++i)
                a.operands[1].as<double>()[i] += plan[0] * a.operands[0].as<double>()[i];
            },
        .cost = double_.cost};
    Pipeline pipeline(options());
    pipeline.source(numbers(random_lengths(20, 1)))
        .kernel(double_, {reads("x"), writes("y", like_x)})
        .library(scale, per_stream([&made](const Arguments&) {
                   ++made;
                   return std::vector<double>{10};
                 }),
                 {reads("x"), updates("y")});
    std::uint64_t seen = 0;
    while (const auto chunk = pipeline.next()) {
      const auto expected = 12 * static_cast<double>(seen++);
      EXPECT_TRUE(GetParam() == Where::virtual_clock || chunk->values<double>("y")[0] == expected)
          << seen;
    }
    EXPECT_EQ(seen, 20u);
  }
  EXPECT_GE(made, GetParam() == Where::virtual_clock ? 0 : 1);
}

TEST_P(PerStreamTest, ALibraryUpdatesWhatTheKernelBeforeChanges) {
  const LibraryCall<int> call{.name = "negate",
                              .cpu =
                                  [](int&, const Arguments& a) {
                                    for (std::int64_t i = 0; i < a.operands[0].rows; ++i)
                                      a.operands[0].as<double>()[i] *= -1;
                                  },
                              .cost = double_.cost};
  const auto plans = per_stream([](const Arguments&) { return 0; });
  Pipeline pipeline(options());
  pipeline.source(numbers({3, 2}))
      .kernel(double_, {reads("x"), writes("y", like_x)})
      .library(call, plans)
      .library(call, plans)
      .library(call, plans);
  while (const auto chunk = pipeline.next())
    EXPECT_TRUE(GetParam() == Where::virtual_clock ||
                chunk->values<double>("y")[0] == -2.0 * static_cast<double>(chunk->number()))
        << chunk->number();

  Pipeline first(options());
  EXPECT_THROW(first.source(numbers({1})).library(call, plans), Error);
  const LibraryCall<int> none{.name = "none"};
  EXPECT_THROW(first.library(none, plans, {updates("x")}), Error);
}

INSTANTIATE_TEST_SUITE_P(Engines, PerStreamTest, all_engines(), engine_name);

TEST(PerStream, DevicesStreamsAreToldApartAndAFailureIsTriedAgain) {
  int made = 0;
  const auto values = per_stream([&](const Arguments&) {
    if (made++ == 0) throw std::runtime_error("no memory");
    return made;
  });
  int streams[2];
  Arguments first;
  first.stream = &streams[0];
  Arguments second;
  second.stream = &streams[1];
  EXPECT_THROW(values->of(first), std::runtime_error);
  EXPECT_EQ(values->of(first), 2);
  EXPECT_EQ(values->of(second), 3);
  EXPECT_EQ(values->of(Arguments()), 4);
  EXPECT_EQ(values->of(first), 2);
}

}  // namespace
}  // namespace quadriga
