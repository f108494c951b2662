// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/lookahead_test.cpp: what the lookahead leaves out never changes what it
// finds.
#include "schedule/lookahead.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "base/random.h"
#include "graph/graph.h"

namespace quadriga {
namespace {

constexpr std::size_t tiles = 60;

/// A device's memory in which each tile takes one byte.
struct Space {
  std::set<TileId> here;
  std::size_t capacity = 0;
  mutable std::vector<Resident> listed = {};

  bool has(TileId tile) const { return here.contains(tile); }
  std::size_t bytes(TileId) const { return 1; }
  std::size_t free_bytes() const { return capacity - here.size(); }
  std::span<const Resident> residents() const {
    listed.clear();
    for (const TileId tile : here) listed.push_back({tile, 1});
    return listed;
  }
};

/// Random tasks on one device, of which some are issued, others come.
class Program {
 public:
  explicit Program(std::uint64_t seed) : random_(seed), data_(tiles) {
    for (TileId tile = 0; tile < tiles; ++tile) data_[tile].tile = tile;
  }
  void submit(bool only_reads = false) {
    Task& task = tasks_.emplace_back();
    task.id = tasks_.size();
    task.priority = random_.chance(0.8) ? 0 : static_cast<int>(random_.below(4));
    task.operands = task.inline_slots;
    task.operand_count = static_cast<std::uint16_t>(1 + random_.below(3));
    for (OperandSlot& slot : task.slots()) {
      slot.datum = &data_[random_.below(tiles)];
      constexpr Access modes[] = {Access::read, Access::read, Access::update, Access::write};
      slot.access = only_reads ? Access::read : modes[random_.below(4)];
      slot.version = slot.datum->versions;
      if (writes(slot.access)) ++slot.datum->versions;
    }
    plan_.place(plan_.add(task), 0);
  }
  /// The head leaves the plan with its tiles in the device's memory.
  void issue(Space& space) {
    if (plan_.on(0).planned.empty()) return;
    PlannedTask& head = **plan_.on(0).planned.begin();
    for (const PlannedAccess& access : head.accesses) space.here.insert(access.datum->tile);
    plan_.issue(head);
    plan_.end(head);
  }
  /// What would be fetched if room were no matter, told by looking at every task.
  std::vector<TileId> missing(const Space& space) const {
    std::vector<TileId> result;
    std::set<TileId> here = space.here;
    std::size_t looked = 0;
    for (const PlannedTask* planned : plan_.on(0).planned) {
      if (++looked > Lookahead::most_tasks || result.size() >= Lookahead::most_fetches) break;
      for (std::size_t i = 0; i < planned->accesses.size(); ++i)
        if (here.insert(planned->accesses[i].datum->tile).second &&
            plan_.reads_present(planned->accesses[i]))
          result.push_back(planned->accesses[i].datum->tile);
    }
    return result;
  }
  void leave(Space& space) {
    const TileId tile = some_tile();
    if (space.here.erase(tile) > 0) plan_.departed(tile, 0);
  }
  TileId some_tile() { return static_cast<TileId>(random_.below(tiles)); }
  Plan& plan() { return plan_; }
  Random& random() { return random_; }

 private:
  Random random_;
  std::deque<Datum> data_;
  std::deque<Task> tasks_;
  Plan plan_{1};
};

std::vector<TileId> fetched(const std::deque<Fetch>& fetches) {
  std::vector<TileId> result;
  for (const Fetch& fetch : fetches) result.push_back(fetch.tile);
  return result;
}

TEST(Lookahead, FindsWhatALookAtEveryTaskFinds) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Program program(seed);
    Space space;
    space.capacity = tiles;
    Lookahead lookahead(program.plan(), 0);
    for (int step = 0; step < 400; ++step) {
      const auto dice = program.random().below(10);
      if (dice < 5)
        for (int i = 0; i < 4; ++i) program.submit();
      else if (dice < 8)
        for (int i = 0; i < 5; ++i) program.issue(space);
      else if (dice == 8)
        program.leave(space);
      std::deque<Fetch> fetches;
      lookahead.follow(space, fetches);
      program.plan().validate();
      lookahead.validate(space);
      ASSERT_EQ(fetched(fetches), program.missing(space)) << "seed " << seed << ", step " << step;
      for (const Fetch& fetch : fetches) {
        EXPECT_TRUE(fetch.victims.empty());
        if (program.random().chance(0.5)) space.here.insert(fetch.tile);
      }
    }
  }
}

TEST(Lookahead, NothingIsFetchedInThePlaceOfWhatIsNeededBefore) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Program program(seed);
    Space space;
    space.capacity = 12;
    Lookahead lookahead(program.plan(), 0);
    for (int i = 0; i < 60; ++i) program.submit(true);
    while (space.here.size() < space.capacity) space.here.insert(program.some_tile());
    std::deque<Fetch> fetches;
    lookahead.follow(space, fetches);
    ASSERT_FALSE(fetches.empty());
    std::set<TileId> here = space.here;
    for (const Fetch& fetch : fetches) {
      for (const TileId victim : fetch.victims) {
        EXPECT_TRUE(here.erase(victim) > 0) << "seed " << seed;
        EXPECT_NE(victim, fetch.tile);
      }
      EXPECT_FALSE(here.contains(fetch.tile));
      here.insert(fetch.tile);
    }
  }
}

}  // namespace
}  // namespace quadriga
