// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/lookahead_test.cpp: what the lookahead leaves out never changes what it
// finds.
#include "schedule/lookahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <span>
#include <vector>

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
  mutable int times_listed = 0;

  bool has(TileId tile) const { return here.contains(tile); }
  std::size_t bytes(TileId) const { return 1; }
  std::size_t free_bytes() const { return capacity - here.size(); }
  std::span<const Resident> residents() const {
    ++times_listed;
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
  void submit(const std::vector<Access>& modes = {Access::read, Access::read, Access::update,
                                                  Access::write}) {
    Task& task = tasks_.emplace_back();
    task.id = tasks_.size();
    task.priority = random_.chance(0.8) ? 0 : static_cast<int>(random_.below(4));
    task.operands = task.inline_slots;
    task.operand_count = static_cast<std::uint16_t>(1 + random_.below(3));
    for (OperandSlot& slot : task.slots()) {
      slot.datum = &data_[random_.below(tiles)];
      slot.access = modes[random_.below(modes.size())];
      slot.version = slot.datum->versions;
      if (writes(slot.access)) ++slot.datum->versions;
    }
    plan_.place(plan_.add(task), 0);
  }
  /// A task that reads one tile.
  void read(TileId tile, int priority = 0) {
    Task& task = tasks_.emplace_back();
    task.id = tasks_.size();
    task.priority = priority;
    task.operands = task.inline_slots;
    task.operand_count = 1;
    task.operands[0].datum = &data_[tile];
    task.operands[0].access = Access::read;
    plan_.place(plan_.add(task), 0);
  }
  /// The head leaves the plan with its tiles in the device's memory.
  void issue(Space& space) {
    if (plan_.on(0).planned().empty()) return;
    PlannedTask& head = **plan_.on(0).planned().begin();
    for (const PlannedAccess& access : head.accesses) space.here.insert(access.datum->tile);
    plan_.make_ready(head);
    plan_.issue(head);
    plan_.end(head);
  }
  /// What would be fetched if room were no matter, told by looking at every task.
  std::vector<TileId> missing(const Space& space) const {
    std::vector<TileId> result;
    std::set<TileId> here = space.here;
    std::size_t looked = 0;
    for (const PlannedTask* planned : plan_.on(0).planned()) {
      if (++looked > Lookahead::most_tasks || result.size() >= Lookahead::most_fetches) break;
      for (std::size_t i = 0; i < planned->accesses.size(); ++i)
        if (here.insert(planned->accesses[i].datum->tile).second &&
            plan_.uses().reads_present(planned->accesses[i]))
          result.push_back(planned->accesses[i].datum->tile);
    }
    return result;
  }
  void leave(Space& space) {
    const TileId tile = some_tile();
    if (space.here.erase(tile) > 0) plan_.uses().departed(tile, 0);
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
    for (int i = 0; i < 60; ++i) program.submit({Access::read});
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

// Short of room, what it costs follows from what can be fetched.
TEST(Lookahead, LooksForVictimsOnlyForWhatCanBeFetched) {
  Program program(1);
  Space space;
  space.capacity = 3;
  while (space.here.size() < space.capacity) space.here.insert(program.some_tile());
  Lookahead lookahead(program.plan(), 0);
  std::deque<Fetch> fetches;
  for (int i = 0; i < 20; ++i) program.submit({Access::write});
  lookahead.follow(space, fetches);
  EXPECT_TRUE(fetches.empty());
  EXPECT_EQ(space.times_listed, 0);
  for (int i = 0; i < 20; ++i) program.submit({Access::read});
  lookahead.follow(space, fetches);
  EXPECT_FALSE(fetches.empty());
  EXPECT_EQ(space.times_listed, 1);
}

// All tiles that are missing are found, however often others leave in between.
TEST(Lookahead, ShortOfRoomFindsTheFirstOfAllThatAreMissing) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Program program(seed);
    Space space;
    space.capacity = 8;
    Lookahead lookahead(program.plan(), 0);
    for (int i = 0; i < 60; ++i) program.submit();
    while (space.here.size() < space.capacity) space.here.insert(program.some_tile());
    std::deque<Fetch> fetches;
    lookahead.follow(space, fetches);
    const std::vector<TileId> missing = program.missing(space);
    // Another may be first used by a task that comes before the one that writes it.
    std::vector<TileId> found;
    for (const Fetch& fetch : fetches)
      if (std::ranges::count(missing, fetch.tile) > std::ranges::count(found, fetch.tile))
        found.push_back(fetch.tile);
    ASSERT_TRUE(std::ranges::equal(found, std::span(missing).first(found.size())))
        << "seed " << seed;
    EXPECT_TRUE(found.size() == missing.size() || fetches.size() >= Lookahead::most_fetches)
        << "seed " << seed;
  }
}

// Who asks after each event, and gets nothing mostly, needn't ask.
TEST(Lookahead, HasNewsOnlyOfWhatChangedOrCanBeFetched) {
  Program program(1);
  Space space;
  Lookahead lookahead(program.plan(), 0);
  std::deque<Fetch> fetches;
  const auto bring = [&] {
    fetches.clear();
    lookahead.follow(space, fetches);
    for (const Fetch& fetch : fetches) space.here.insert(fetch.tile);
    return fetches.size();
  };
  EXPECT_FALSE(lookahead.has_news()) << "no task";
  for (const TileId tile : {1, 2}) program.read(tile);
  EXPECT_TRUE(lookahead.has_news()) << "tasks that aren't in sight yet";
  EXPECT_EQ(bring(), 2u);
  EXPECT_TRUE(lookahead.has_news()) << "nothing tells that both have come";
  EXPECT_EQ(bring(), 0u);
  EXPECT_FALSE(lookahead.has_news()) << "nothing has changed";
  program.issue(space);
  EXPECT_FALSE(lookahead.has_news()) << "a task whose tiles are here leaves";
  space.here.erase(2);
  program.plan().uses().departed(2, 0);
  EXPECT_TRUE(lookahead.has_news()) << "a tile that is needed left";
  EXPECT_EQ(bring(), 1u);
  bring();
  EXPECT_FALSE(lookahead.has_news());
  for (std::size_t i = 0; i + 1 < Lookahead::most_tasks; ++i) program.read(2);
  EXPECT_TRUE(lookahead.has_news()) << "more tasks come in sight";
  bring();
  EXPECT_FALSE(lookahead.has_news()) << "as many as it looks at are in sight";
  program.read(3);
  EXPECT_FALSE(lookahead.has_news()) << "behind them";
  program.issue(space);
  EXPECT_TRUE(lookahead.has_news()) << "and now among them";
  EXPECT_EQ(bring(), 1u);
}

TEST(Lookahead, AFetchHoldsUntilAnotherComesBeforeItOrATileCouldLeaveSooner) {
  Program program(1);
  Space space;
  space.here = {1, 2, 3};
  space.capacity = 3;
  Lookahead lookahead(program.plan(), 0);
  for (const TileId tile : {1, 2, 3, 4, 1, 2, 3}) program.read(tile);
  std::deque<Fetch> fetches;
  const auto follow = [&] {
    fetches.clear();
    lookahead.follow(space, fetches);
  };
  follow();
  ASSERT_FALSE(fetches.empty());
  EXPECT_EQ(fetches.front().tile, 4u);
  EXPECT_EQ(fetches.front().victims, std::vector<TileId>{3}) << "the farthest";
  EXPECT_TRUE(lookahead.holds(space, fetches.front())) << "nothing has changed";

  program.read(5, 1);
  EXPECT_FALSE(lookahead.holds(space, fetches.front())) << "another comes before it";
  follow();
  EXPECT_EQ(fetches.front().tile, 5u);
  EXPECT_TRUE(lookahead.holds(space, fetches.front()));

  space.here = {2, 3, 6};
  EXPECT_FALSE(lookahead.holds(space, fetches.front())) << "nobody uses tile 6";
  follow();
  EXPECT_EQ(fetches.front().victims, std::vector<TileId>{6});
  EXPECT_TRUE(lookahead.holds(space, fetches.front()));
  space.capacity = tiles;
  EXPECT_FALSE(lookahead.holds(space, fetches.front())) << "there is room";
}

}  // namespace
}  // namespace quadriga
