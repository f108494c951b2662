// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/special_cases_test.cpp: plans without one of the planner's special cases.
#include "linalg/special_cases.h"

#include "linalg/product_plan.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <string>

namespace quadriga::linalg {
namespace {

ProductPlan plan_of(std::int64_t order) {
  EngineOptions options;
  options.machine = Machine::parse("machine=" QUADRIGA_SOURCE_DIR "/machines/h200x4.json:1");
  options.virtual_clock = true;
  options.compute = false;
  const Engine engine(options);
  return plan_product(engine, group_of(engine),
                      {Problem::Kind::matmul, order, order, order, DType::float64}, {});
}

TEST(SpecialCases, AreLeftOutByNameOneAtATime) {
  const auto names = special_case_names();
  EXPECT_EQ(special_cases_left_out(), 0u);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const WithoutSpecialCase without(names[i]);
    for (std::size_t j = 0; j < names.size(); ++j)
      EXPECT_EQ(uses(static_cast<SpecialCase>(j)), i != j) << names[i] << ", " << names[j];
  }
  EXPECT_EQ(special_cases_left_out(), 0u);
}

TEST(SpecialCases, OfOtherNamesAreRefusedWithTheKnownOnes) {
  try {
    const WithoutSpecialCase without("magic");
    FAIL() << "it was taken";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    for (const std::string_view name : special_case_names())
      EXPECT_NE(message.find(name), std::string::npos) << message;
  }
  EXPECT_EQ(special_cases_left_out(), 0u);
}

TEST(SpecialCases, RememberedPlansAreOfTheSameCases) {
  constexpr std::int64_t order = 9000;
  EXPECT_FALSE(plan_of(order).cols.bounds.empty()) << "no tile is cut into pieces";
  {
    const WithoutSpecialCase without("pieces");
    EXPECT_TRUE(plan_of(order).cols.bounds.empty());
  }
  EXPECT_FALSE(plan_of(order).cols.bounds.empty());
}

}  // namespace
}  // namespace quadriga::linalg
