// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/device_packer_test.cpp: parts of messages packed by the host in a device's
// place, against a plain walk; what a packer refuses.
#include "message/pack/device_packer.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include "unit/message/random_layout.h"

namespace quadriga::message {
namespace {

TEST(HostPacker, PartsAreThoseOfThePlainWalk) {
  const auto packer = DevicePacker::on_host();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const DrawnLayout drawn = draw_layout(random, 3);
    const auto [low, high] = drawn.layout.bounds();
    std::vector<std::byte> memory(static_cast<std::size_t>(high - low) + 1);
    for (std::byte& each : memory) each = static_cast<std::byte>(random());
    std::byte* const data = memory.data() - low;
    const std::vector<std::byte> expected = plain_pack(drawn.plain, data);
    std::vector<std::byte> packed(expected.size() + 1);
    const std::size_t cut = random.below(expected.size() + 1);
    const PackPart parts[] = {{drawn.layout, data, packed.data(), 0, cut},
                              {drawn.layout, data, packed.data() + cut, cut}};
    packer->pack(parts, {});
    packed.pop_back();
    ASSERT_EQ(packed, expected) << drawn.text;
    if (drawn.layout.overlapping()) continue;
    for (std::byte& each : memory) each ^= std::byte{0xff};
    packer->unpack(parts, {});
    EXPECT_EQ(plain_pack(drawn.plain, data), expected) << drawn.text;
  }
  EXPECT_GT(packer->counters().bytes, 0u);
}

TEST(HostPacker, AReductionCombinesElements) {
  const auto packer = DevicePacker::on_host();
  std::vector<double> numbers{1, 2, 3, 4}, arrived{10, 20};
  const Layout every_other = Layout::vector(2, 1, 2, ElementType::float64);
  packer->unpack_reduce({every_other, numbers.data(), arrived.data()}, ReduceOperation::sum);
  EXPECT_EQ(numbers, (std::vector<double>{11, 2, 23, 4}));
}

TEST(HostPacker, CombinesWhatLiesSideBySide) {
  const auto packer = DevicePacker::on_host();
  std::vector<double> from(5000), with(5000), into(5000);
  for (std::size_t i = 0; i < from.size(); ++i) {
    from[i] = static_cast<double>(i);
    with[i] = 3 * static_cast<double>(i) + 1;
  }
  const std::size_t bytes = from.size() * sizeof(double);
  constexpr auto type = ElementType::float64;
  packer->combine({into.data(), from.data(), with.data(), bytes, type}, ReduceOperation::sum, {});
  EXPECT_EQ(into[4999], 4 * 4999.0 + 1);
  packer->combine({with.data(), from.data(), with.data(), bytes, type}, ReduceOperation::sum, {});
  EXPECT_EQ(with, into);
  packer->combine({from.data(), from.data(), with.data(), bytes, type}, ReduceOperation::max, {});
  EXPECT_EQ(from, into);
  EXPECT_THROW(
      packer->combine({into.data(), from.data(), with.data(), 12, type}, ReduceOperation::sum, {}),
      Error);
  EXPECT_THROW(
      packer->combine({into.data(), from.data(), with.data(), 16, type}, ReduceOperation::bor, {}),
      Error);
}

TEST(HostPacker, RefusesWhatIsNotThere) {
  const auto packer = DevicePacker::on_host();
  std::vector<double> numbers(4), packed(4);
  const Layout two = Layout::contiguous(2, ElementType::float64);
  const Layout twice = Layout::vector_bytes(2, 1, 0, ElementType::float64);
  EXPECT_THROW(packer->pack({two, numbers.data(), packed.data(), 8, 9}), Error);
  EXPECT_THROW(packer->pack({two, numbers.data(), packed.data(), 17}), Error);
  EXPECT_THROW(packer->unpack({twice, numbers.data(), packed.data()}), Error);
  EXPECT_THROW(
      packer->unpack_reduce({two, numbers.data(), packed.data(), 4, 8}, ReduceOperation::sum),
      Error);
  EXPECT_THROW(packer->unpack_reduce({two, numbers.data(), packed.data()}, ReduceOperation::bor),
               Error);
  EXPECT_THROW(DevicePacker::on_cuda(1 << 20), Error);
}

}  // namespace
}  // namespace quadriga::message
