// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/nccl_choice_test.cpp: what NCCL may do, who agrees on it, and when it is used.
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "message/nccl/choice.h"
#include "message/nccl/library.h"
#include "message/pack/reduce.h"

namespace quadriga::message {
namespace {

TEST(NcclChoice, NumbersAreNcclsOnlyWhereItDoesTheSame) {
  const auto of = [](ElementType type, ReduceOperation operation) {
    return nccl_numbers(TreeCollective::all_reduce, type, operation);
  };
  EXPECT_EQ(of(ElementType::float64, ReduceOperation::sum), (NcclNumbers{8, 0, 8}));
  EXPECT_EQ(of(ElementType::complex64, ReduceOperation::sum), (NcclNumbers{7, 0, 4}));
  EXPECT_EQ(of(ElementType::int32, ReduceOperation::min), (NcclNumbers{2, 3, 4}));
  EXPECT_EQ(of(ElementType::uint64, ReduceOperation::prod), (NcclNumbers{5, 1, 8}));
  EXPECT_FALSE(of(ElementType::complex128, ReduceOperation::prod));
  EXPECT_FALSE(of(ElementType::float32, ReduceOperation::max));  // What is no number wins here.
  EXPECT_FALSE(of(ElementType::float16, ReduceOperation::sum));
  EXPECT_FALSE(of(ElementType::bfloat16, ReduceOperation::sum));
  EXPECT_FALSE(of(ElementType::int16, ReduceOperation::sum));
  EXPECT_FALSE(of(ElementType::int32, ReduceOperation::bxor));
  EXPECT_FALSE(of(ElementType::boolean, ReduceOperation::lor));
  for (int type = 0; type < element_types; ++type)
    EXPECT_EQ(nccl_numbers(TreeCollective::broadcast, static_cast<ElementType>(type), {}),
              NcclNumbers{});
  // Items make up elements, and what has no meaning here has none there.
  for (int type = 0; type < element_types; ++type)
    for (int operation = 0; operation < reduce_operations; ++operation) {
      const auto element = static_cast<ElementType>(type);
      const auto by = static_cast<ReduceOperation>(operation);
      const auto found = of(element, by);
      if (!found) continue;
      EXPECT_EQ(size_of(element) % static_cast<std::size_t>(found->item_bytes), 0u);
      EXPECT_NO_THROW(combine_of(by, element));
    }
}

NcclOffer together(std::span<const NcclOffer> offers) {
  NcclOffer all = offers.front();
  for (const NcclOffer& each : offers) all = all.and_also(each);
  return all;
}

TEST(NcclChoice, AllRanksMustHaveOneVersion) {
  const std::array same{NcclOffer{22703, 0}, NcclOffer{22703, 0}, NcclOffer{22703, 0}};
  EXPECT_TRUE(together(same).is_with_all());
  EXPECT_EQ(together(same).group(), 0u);
  const std::array other{NcclOffer{22703, 0}, NcclOffer{22704, 0}};
  EXPECT_FALSE(together(other).is_with_all());
  const std::array without{NcclOffer{22703, 0}, NcclOffer{}};
  EXPECT_FALSE(together(without).is_with_all());
  EXPECT_FALSE(NcclOffer{}.is_with_all());
}

TEST(NcclChoice, AGroupIsOneThatAllMean) {
  const std::array same{NcclOffer{22703, 2}, NcclOffer{22703, 2}};
  EXPECT_EQ(together(same).group(), 2u);
  const std::array other{NcclOffer{22703, 2}, NcclOffer{22703, 1}};
  EXPECT_EQ(together(other).group(), 0u);
  const std::array anew{NcclOffer{22703, 0}, NcclOffer{22703, 1}};
  EXPECT_EQ(together(anew).group(), 0u);
}

TEST(NcclChoice, RanksNeedADeviceAndAProcessEach) {
  const std::vector<NcclPlace> good{{5, 100}, {6, 101}, {7, 102}};
  EXPECT_TRUE(may_join(good));
  EXPECT_FALSE(may_join(std::vector<NcclPlace>{{5, 100}, {5, 101}}));
  EXPECT_FALSE(may_join(std::vector<NcclPlace>{{5, 100}, {6, 100}}));
  EXPECT_FALSE(may_join(std::vector<NcclPlace>{{5, 100}, {0, 101}}));
}

TEST(NcclChoice, TheShorterLineIsTaken) {
  // A latency of 10 and 30 us, rates of 100 and 300 GB/s: equal at 3 MB.
  MeasuredWays ways{100'000, 10'000'000, {11e-6, 110e-6}, {30.333333e-6, 63.333333e-6}};
  EXPECT_NEAR(ways.seconds(ways.ours, 1'000'000'000), 10.01e-3, 1e-6);
  EXPECT_NEAR(ways.seconds(ways.nccl, 3'000'000), 40e-6, 1e-8);
  EXPECT_FALSE(ways.is_nccl_faster(1));
  EXPECT_FALSE(ways.is_nccl_faster(2'900'000));
  EXPECT_FALSE(ways.is_nccl_faster(3'100'000));  // Not by a twentieth.
  EXPECT_TRUE(ways.is_nccl_faster(4'000'000));
  EXPECT_TRUE(ways.is_nccl_faster(std::int64_t{1} << 40));
  // Slower at the end of what was measured, though its line rises less.
  const MeasuredWays crossing{100'000, 10'000'000, {10e-6, 110e-6}, {60e-6, 115e-6}};
  EXPECT_FALSE(crossing.is_nccl_faster(1'000'000'000));
  // Noise: many bytes took less than few.
  ways.nccl = {40e-6, 30e-6};
  EXPECT_NEAR(ways.seconds(ways.nccl, 5'000'000), 40e-6, 1e-9);
  // What wasn't measured stays ours.
  EXPECT_FALSE(MeasuredWays{}.is_nccl_faster(1 << 20));
}

TEST(NcclChoice, ALibraryThatIsNotThereSaysSo) {
  const NcclLibrary off("off", {});
  EXPECT_EQ(off.absence(), "the setting nccl is off");
  EXPECT_EQ(off.version(), 0);
  const NcclLibrary none("/no/libnccl.so.2", {});
  EXPECT_NE(none.absence().find("/no/libnccl.so.2"), std::string::npos) << none.absence();
  // A library, but another one.
  const NcclLibrary other("libc.so.6", {});
  EXPECT_NE(other.absence().find("libc.so.6 has no ncclGetVersion"), std::string::npos)
      << other.absence();
}

}  // namespace
}  // namespace quadriga::message
