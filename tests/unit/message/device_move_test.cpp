// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/device_move_test.cpp: elements that go from place to place without being
// packed, by plans run on the host and by the host's packer, beside packing and unpacking.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <map>

#include "message/pack/device_packer.h"
#include "message/pack/stream.h"
#include "unit/message/move_case.h"
#include "unit/message/plan_on_host.h"

namespace quadriga::message {
namespace {

using Bytes = std::vector<std::byte>;

// Memory of a layout with margins that must not change.
struct Memory {
  Memory(Random& random, const Layout& each)
      : bytes(static_cast<std::size_t>(each.bounds().second - each.bounds().first) + 192) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    at = 96 + (random.chance(0.5) ? 0 : static_cast<std::int64_t>(random.below(16))) -
         each.bounds().first;
    const auto address =
        reinterpret_cast<std::uintptr_t>(bytes.data()) + static_cast<std::uintptr_t>(at);
    if (random.chance(0.5)) at -= static_cast<std::int64_t>(address & 15);
  }
  std::byte* data() { return bytes.data() + at; }
  Bytes bytes;
  std::int64_t at = 0;
};

Bytes expected_of(const MoveCase& drawn, const Memory& from, const Memory& to) {
  Bytes expected = to.bytes, packed(static_cast<std::size_t>(drawn.end - drawn.begin));
  const auto offset = static_cast<std::size_t>(drawn.begin);
  Packer(drawn.from, from.bytes.data() + from.at).pack(offset, packed);
  Unpacker(drawn.to, expected.data() + to.at).unpack(offset, packed);
  return expected;
}

TEST(DeviceMove, PlansMoveWhatPackingAndUnpackingWould) {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const MoveCase drawn = draw_move(random, seed % 10 == 0 ? 150 : 30);
    Memory from(random, drawn.from), to(random, drawn.to);
    const Bytes expected = expected_of(drawn, from, to);
    const auto plan = move_plan_of(drawn.from.form(), from.data(), drawn.to.form(), to.data(),
                                   drawn.begin, drawn.end);
    ++seen[plan ? "moved by " + std::to_string(plan->to.granule) : "not moved"];
    if (!plan) continue;
    if (plan->from.leaf == PlanLeaf::taper) ++seen["from a taper"];
    if (plan->to.leaf == PlanLeaf::taper) ++seen["to a taper"];
    run_move(*plan);
    ASSERT_EQ(to.bytes, expected) << drawn.from.text() << " to " << drawn.to.text();
  }
  for (const char* what : {"moved by 1", "moved by 2", "moved by 4", "moved by 8", "moved by 16",
                           "not moved", "from a taper", "to a taper"})
    EXPECT_GT(seen[what], 0) << what;
}

TEST(DeviceMove, TheHostMovesAllThatDevicesDo) {
  const auto packer = DevicePacker::on_host();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const MoveCase drawn = draw_move(random, 200);  // More than its buffer holds, too.
    Memory from(random, drawn.from), to(random, drawn.to);
    const Bytes expected = expected_of(drawn, from, to);
    packer->move(
        {drawn.from, from.data(), drawn.to, to.data(), static_cast<std::size_t>(drawn.begin),
         static_cast<std::size_t>(drawn.end - drawn.begin)},
        {});
    ASSERT_EQ(to.bytes, expected) << drawn.from.text() << " to " << drawn.to.text();
  }
}

TEST(DeviceMove, RefusesWhatIsNotThere) {
  const auto packer = DevicePacker::on_host();
  std::vector<double> a(8), b(8);
  const Layout two = Layout::vector(2, 1, 2, ElementType::float64);
  const Layout twice = Layout::vector_bytes(2, 1, 0, ElementType::float64);
  EXPECT_THROW(packer->move({two, a.data(), two, b.data(), 0, 17}, {}), Error);
  EXPECT_THROW(packer->move({two, a.data(), twice, b.data(), 0, 16}, {}), Error);
  const std::vector<std::int64_t> lengths{1, 2, 1}, places{0, 2, 7};
  const Layout list = Layout::indexed(lengths, places, ElementType::float64);
  EXPECT_TRUE(moves_directly({two, a.data(), two, b.data(), 0, 16}));
  EXPECT_FALSE(moves_directly({list, a.data(), list, b.data(), 0, 32}));
}

}  // namespace
}  // namespace quadriga::message
