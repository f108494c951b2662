// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/registrations_test.cpp: data are found by their memory while somebody has them
// registered, and their slots serve others afterwards.
#include "engine/registrations.h"

#include <gtest/gtest.h>

#include <array>

#include "engine/engine_access.h"
#include "unit/engine/parts.h"

namespace quadriga {
namespace {

class RegistrationsTest : public testing::Test {
 protected:
  Datum& add(std::size_t first, std::int64_t count) { return parts_.add(&numbers_[first], count); }
  void remove(Datum& datum) {
    const Data data = EngineAccess::data(datum);
    parts_.registrations.remove({&data, 1}, false);
  }
  std::size_t found(Datum& datum) {
    std::size_t count = 0;
    parts_.registrations.look(region_of(datum),
                              [&](std::span<Datum* const> all) { count = all.size(); });
    return count;
  }

  IdleParts parts_;
  std::array<double, 16> numbers_{};
};

TEST_F(RegistrationsTest, TheSameMemoryIsTheSameDatumUntilEachHasRemovedIt) {
  Datum& datum = add(0, 4);
  EXPECT_EQ(&add(0, 4), &datum);
  EXPECT_NE(&add(0, 5), &datum);
  EXPECT_EQ(parts_.before_memory, 3);
  EXPECT_EQ(found(datum), 2U);
  remove(datum);
  EXPECT_EQ(parts_.executor.known.size(), 2U);
  EXPECT_EQ(found(datum), 2U);
  remove(datum);
  EXPECT_EQ(parts_.executor.known.size(), 1U);
  EXPECT_EQ(code_of([&] { remove(datum); }), Errc::invalid_argument);
}

TEST_F(RegistrationsTest, OverlappingDataKnowEachOther) {
  Datum& one = add(0, 8);
  Datum& other = add(4, 8);
  ASSERT_EQ(one.aliases.size(), 1U);
  EXPECT_EQ(one.aliases[0], &other);
  remove(other);
  EXPECT_TRUE(one.aliases.empty());
  EXPECT_EQ(found(one), 1U);
}

TEST_F(RegistrationsTest, WhatIsPinnedOutlivesItsRemoval) {
  Datum& one = add(0, 8);
  Datum& other = add(4, 8);
  const std::vector<Datum*> pinned = parts_.registrations.pin_aliases(one, true, never);
  ASSERT_EQ(pinned.size(), 1U);
  remove(other);
  EXPECT_EQ(parts_.executor.known.size(), 2U) << "pinned";
  EXPECT_EQ(other.engine, &parts_);
  parts_.registrations.unpin(pinned);
  EXPECT_EQ(parts_.executor.known.size(), 1U);
  EXPECT_EQ(other.engine, nullptr);
}

TEST_F(RegistrationsTest, ARemovalWaitsForTheTasksOfWhatItRemoves) {
  Datum& datum = add(0, 4);
  const TaskRef task = parts_.submit(datum, Access::write);
  bool was_known = false;
  parts_.executor.meanwhile = [&] {
    was_known = parts_.executor.known.size() == 1;
    parts_.end(task);
  };
  remove(datum);
  EXPECT_TRUE(was_known);
  EXPECT_TRUE(parts_.executor.known.empty());
}

TEST_F(RegistrationsTest, SlotsServeAgain) {
  Datum& datum = add(0, 4);
  remove(datum);
  Datum& sequence = parts_.registrations.add_sequence();
  EXPECT_EQ(&sequence, &datum);
  EXPECT_EQ(sequence.home, nullptr);
  const TaskRef task = parts_.submit(sequence, Access::update);
  parts_.executor.meanwhile = [&] { parts_.end(task); };
  parts_.registrations.remove_sequence(sequence);
  EXPECT_EQ(&add(8, 2), &datum);
}

TEST_F(RegistrationsTest, RefusesWhatNoMemoryHas) {
  EXPECT_EQ(code_of([&] { add(0, -1); }), Errc::invalid_argument);
  EXPECT_EQ(code_of([&] { add(0, std::int64_t{1} << 60); }), Errc::invalid_argument);
  EXPECT_TRUE(parts_.executor.known.empty());
}

TEST_F(RegistrationsTest, CloseForgetsWhatIsLeft) {
  add(0, 4);
  add(8, 4);
  parts_.registrations.close();
  EXPECT_TRUE(parts_.executor.known.empty());
}

}  // namespace
}  // namespace quadriga
