// SPDX-License-Identifier: BSD-3-Clause
// tests/model/memory/arena_model_test.cpp: an arena against a map of its units, taken or free.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"
#include "memory/arena.h"

namespace quadriga {
namespace {

constexpr std::size_t unit = 256;

/// What an arena must know, by looking at every unit.
class Bitmap {
 public:
  explicit Bitmap(std::size_t units) : taken_(units) {}

  void set(std::size_t offset, std::size_t bytes, bool taken) {
    ASSERT_EQ(offset % unit, 0u);
    ASSERT_LE(offset + bytes, taken_.size() * unit);
    for (std::size_t at = offset / unit; at < (offset + bytes) / unit; ++at) {
      ASSERT_NE(taken_[at], taken) << "unit " << at;
      taken_[at] = taken;
    }
  }
  std::size_t used() const {
    return static_cast<std::size_t>(std::ranges::count(taken_, true)) * unit;
  }
  /// The lengths of all runs of free units, in bytes.
  std::vector<std::size_t> free_runs() const {
    std::vector<std::size_t> runs;
    for (std::size_t at = 0; at < taken_.size(); ++at) {
      if (taken_[at]) continue;
      if (at == 0 || taken_[at - 1]) runs.push_back(0);
      runs.back() += unit;
    }
    return runs;
  }
  std::size_t free_before(std::size_t offset) const {
    std::size_t at = offset / unit;
    while (at > 0 && !taken_[at - 1]) --at;
    return offset - at * unit;
  }
  std::size_t free_from(std::size_t offset) const {
    std::size_t at = offset / unit;
    while (at < taken_.size() && !taken_[at]) ++at;
    return at * unit - offset;
  }

 private:
  std::vector<bool> taken_;
};

/// The parameter is the seed.
class ArenaModelTest : public ::testing::TestWithParam<int> {
 protected:
  void allocate(std::size_t bytes) {
    const std::size_t rounded = arena_.rounded(bytes);
    const std::vector<std::size_t> runs = bitmap_.free_runs();
    std::size_t best = 0;
    for (const std::size_t run : runs)
      if (run >= rounded && (best == 0 || run < best)) best = run;
    const std::optional<std::size_t> offset = arena_.allocate(bytes);
    ASSERT_EQ(offset.has_value(), best != 0);
    if (!offset) return;
    ASSERT_EQ(bitmap_.free_from(*offset), best) << "not the best fit";
    ASSERT_NO_FATAL_FAILURE(bitmap_.set(*offset, rounded, true));
    blocks_[*offset] = rounded;
  }

  void deallocate(std::size_t choice) {
    const auto block = std::next(blocks_.begin(), static_cast<std::ptrdiff_t>(choice));
    const auto [offset, bytes] = *block;
    const Arena::Room room = arena_.room(offset);
    EXPECT_EQ(room.before, bitmap_.free_before(offset));
    EXPECT_EQ(room.bytes, bytes);
    EXPECT_EQ(room.after, bitmap_.free_from(offset + bytes));
    arena_.deallocate(offset);
    ASSERT_NO_FATAL_FAILURE(bitmap_.set(offset, bytes, false));
    blocks_.erase(block);
  }

  void expect_same() const {
    arena_.validate();
    EXPECT_EQ(arena_.used(), bitmap_.used());
    const std::vector<std::size_t> runs = bitmap_.free_runs();
    EXPECT_EQ(arena_.largest_free(), runs.empty() ? 0 : std::ranges::max(runs));
  }

  Random random_{static_cast<std::uint64_t>(GetParam())};
  const std::size_t units_ = 1 + random_.below(200);
  Arena arena_{units_ * unit + random_.below(unit)};
  Bitmap bitmap_{units_};
  std::map<std::size_t, std::size_t> blocks_;
};

TEST_P(ArenaModelTest, AgreesWithTheBitmap) {
  // Small arenas get relatively large blocks, so that they fill, split and refuse.
  const std::size_t largest = units_ * unit / (2 + random_.below(20)) + 1;
  for (int step = 0; step < 20000 && !HasFailure(); ++step) {
    SCOPED_TRACE(::testing::Message() << "seed " << GetParam() << ", step " << step);
    if (blocks_.empty() || random_.chance(0.55)) {
      ASSERT_NO_FATAL_FAILURE(allocate(random_.below(largest + 1)));
    } else {
      ASSERT_NO_FATAL_FAILURE(deallocate(random_.below(blocks_.size())));
    }
    expect_same();
  }
  while (!blocks_.empty()) ASSERT_NO_FATAL_FAILURE(deallocate(0));
  EXPECT_EQ(arena_.largest_free(), units_ * unit) << "all free blocks join in the end";
}

INSTANTIATE_TEST_SUITE_P(Seed, ArenaModelTest, ::testing::Range(0, 8));

}  // namespace
}  // namespace quadriga
