// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/renaming_inside_test.cpp: bodies that submit, wait for and remove what is
// renamed, and calls of other threads between.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "engine/on_host.h"
#include "unit/engine/renaming_engine.h"

namespace quadriga {
namespace {

class RenamingInside : public RenamingEngine {};

INSTANTIATE_TEST_SUITE_P(Engine, RenamingInside, every_engine(), where_name);

TEST_P(RenamingInside, ChildrenFindTheContentAtHome) {
  if (GetParam() != Where::host) GTEST_SKIP() << "bodies on devices may not submit here";
  const Data x = tile(1);
  engine().submit(gate({Access::read}), {{x, Access::read}});
  set(x, 2);
  const Codelet& twice = codelet(Access::update, [](const Arguments& a) { first(a) *= 2; });
  Codelet& parent = codelet("parent", {Access::update}, [&](const Arguments&) {
    engine().submit(twice, {{x, Access::update}});
  });
  parent.submits = true;
  engine().submit(parent, {{x, Access::update}});
  open();
  wait();
  EXPECT_EQ(home(0), 4);
}

TEST_P(RenamingInside, ChildrenFindTheNewestContentOfWhatTheirParentDoesntTouch) {
  if (GetParam() != Where::host) GTEST_SKIP() << "bodies on devices may not submit here";
  renamed();
  std::array<double, 2> seen{};
  Codelet& parent = codelet("parent", {}, [&](const Arguments&) {
    const Data again = engine().data(const_cast<double*>(&home_of(0)), 8, 1, 8, DType::float64);
    for (double& each : seen) read(again, each);
    set(again, 5);
  });
  parent.submits = true;
  engine().wait(engine().submit(parent, {}), patience);
  EXPECT_EQ(seen, (std::array<double, 2>{2, 2}));
  wait();
  EXPECT_EQ(home(0), 5);
  EXPECT_EQ(counters().renamed, 1u);
}

TEST_P(RenamingInside, ChildrenFindTheContentThatWasThereBeforeWhatFollowsTheirParent) {
  if (GetParam() != Where::host) GTEST_SKIP() << "bodies on devices may not submit here";
  const Data x = tile(1), z = tile(0);
  std::atomic<bool> all_submitted{false};
  double seen = 0;
  Codelet& parent = codelet("parent", {Access::write}, [&](const Arguments&) {
    all_submitted.wait(false);
    const Data again = engine().data(const_cast<double*>(&home_of(0)), 8, 1, 8, DType::float64);
    read(again, seen);
  });
  parent.submits = true;
  engine().submit(parent, {{z, Access::write}});
  engine().submit(codelet("both", {Access::read, Access::read}, [](const Arguments&) {}),
                  {{z, Access::read}, {x, Access::read}});
  set(x, 2);
  end(all_submitted);
  wait();
  EXPECT_EQ(counters().renamed, 1u);
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(home(0), 2);
}

TEST_P(RenamingInside, ABodyWaitsForTheNewestContent) {
  if (GetParam() != Where::host) GTEST_SKIP() << "bodies on devices may not wait";
  rename_on_one_core();
  const Data x = renamed();
  double seen = 0;
  engine().wait(engine().submit(codelet("wait", {},
                                        [&](const Arguments&) {
                                          engine().wait(x, patience);
                                          seen = home(0);
                                        }),
                                {}),
                patience);
  EXPECT_EQ(counters().renamed, 1u);
  EXPECT_EQ(seen, 2);
}

TEST_P(RenamingInside, ABodyRemovesWhatIsRenamed) {
  if (GetParam() != Where::host) GTEST_SKIP() << "bodies on devices may not wait";
  rename_on_one_core();
  const Data x = renamed();
  double seen = 0;
  const Future removed = engine().submit(codelet("remove", {},
                                                 [&](const Arguments&) {
                                                   engine().remove(x);
                                                   seen = home(0);
                                                 }),
                                         {});
  engine().wait(removed, patience);
  EXPECT_EQ(counters().renamed, 1u);
  EXPECT_EQ(seen, 2);
}

/// While one of several data is waited for, another thread's wait() finds those that come before.
TEST_P(RenamingInside, NoCopyIsPendingAfterARemoval) {
  if (GetParam() != Where::host) GTEST_SKIP() << "where a copy may stand behind another task";
  rename_on_one_core();
  std::array<std::atomic<bool>, 3> ends{};
  const Data x = renamed(), y = tile(0), z = tile(0);
  const Data part =
      engine().data(const_cast<double*>(&home_of(1)) + 4, 4, 1, 4, DType::float64);  // of y
  engine().submit(until(ends[0]), {{y, Access::read}});
  std::thread remover([&] { engine().remove(std::array{x, y}, true); });
  pause();
  engine().submit(codelet("late", {Access::update}, [&](const Arguments&) { ends[1].wait(false); }),
                  {{part, Access::update}});
  end(ends[0]);
  pause();
  engine().submit(until(ends[2]), {{z, Access::read}}, {.priority = 1});
  std::thread waiter([&] { wait(); });
  pause();
  end(ends[1]);
  remover.join();
  const_cast<double&>(home_of(0)) = 7;  // the program's again
  end(ends[2]);
  waiter.join();
  EXPECT_EQ(home(0), 7);
}

TEST_P(RenamingInside, AfterCancelWhatItStoppedIsNoFailure) {
  const Data x = tile(1), y = tile(0);
  std::atomic<bool> ends{false};
  engine().submit(until(ends), {{x, Access::read}});
  engine().submit(codelet("behind", {Access::update},
                          [&](const Arguments&) {
                            if (!is_virtual(GetParam())) ends.wait(false);
                          }),
                  {{y, Access::update}});
  engine().submit(codelet("both", {Access::read, Access::write}, [](const Arguments&) {}),
                  {{y, Access::read}, {x, Access::write}});
  EXPECT_EQ(counters().renamed, 1u);
  std::thread opener([&] {
    pause();
    end(ends);
  });
  engine().cancel();
  opener.join();
  EXPECT_NO_THROW(wait());
  EXPECT_THROW(engine().wait(x, patience), Error);
  set(x, 3);
  wait();
  EXPECT_EQ(home(0), 3);
}

TEST_P(RenamingInside, CancelKeepsWhatACopyDidntBringHome) {
  if (is_virtual(GetParam())) GTEST_SKIP() << "no time passes while a body runs";
  const Data x = tile(1);
  std::atomic<bool> ends{false};
  engine().submit(until(ends), {{x, Access::read}});
  wait_for_end(engine(), set(x, 2), patience);
  EXPECT_THROW(engine().wait(x, 0.0), Error);  // the copy waits for the reader
  std::thread opener([&] {
    pause();
    end(ends);
  });
  engine().cancel();
  opener.join();
  EXPECT_EQ(home(0), 2);
  EXPECT_NO_THROW(wait());
  EXPECT_NO_THROW(engine().wait(x, patience));
  EXPECT_EQ(home(0), 2);
}

TEST_P(RenamingInside, AfterCancelContentIsHomeAndTheHostMayWriteThere) {
  const Data x = renamed();
  EXPECT_EQ(home(0), 1);
  engine().cancel();
  EXPECT_EQ(home(0), 2);
  EXPECT_TRUE(is_home(engine(), x));
  EXPECT_EQ(counters().copied, 1u);
  home_of(0) = 5;
  double seen = 0;
  engine().wait(read(x, seen), patience);
  EXPECT_EQ(seen, 5);
}

TEST_P(RenamingInside, CancelWaitsForNobodyWhoHoldsTheOldContent) {
  const Data x = tile(1);
  std::optional<HostAccess> reading;
  std::thread([&] { reading.emplace(engine().on_host(x, Access::read, patience)); }).join();
  wait_for_end(engine(), set(x, 2), patience);
  engine().cancel();
  EXPECT_EQ(home(0), 1);
  reading->release();
  wait();
  EXPECT_EQ(home(0), 2);
}

}  // namespace
}  // namespace quadriga
