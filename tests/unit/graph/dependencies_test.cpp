// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/dependencies_test.cpp: what access modes and nesting order, and what they don't.
#include <quadriga/engine.h>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

void a_moment() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

class DependenciesTest : public EngineTest {
 protected:
  /// A task that notes itself in the journal under the number that is its parameter.
  Codelet& noted(Journal& journal, std::vector<Access> signature) {
    return codelet("noted", std::move(signature), [&journal](const Arguments& arguments) {
      journal.run(arguments.param<std::size_t>(), a_moment);
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Engine, DependenciesTest, every_engine(), where_name);

TEST_P(DependenciesTest, ReadsWaitForTheWriteAndTheNextWriteForThem) {
  const Data data = tile();
  Journal journal(12);
  Codelet& write = noted(journal, {Access::write});
  Codelet& read = noted(journal, {Access::read});
  engine().submit(write, {{data, Access::write}}, std::size_t{0});
  for (std::size_t i = 1; i <= 9; ++i) engine().submit(read, {{data, Access::read}}, i);
  engine().submit(write, {{data, Access::write}}, std::size_t{10});
  engine().submit(write, {{data, Access::write}}, std::size_t{11});
  wait();
  for (std::size_t i = 1; i <= 9; ++i) EXPECT_TRUE(journal.in_order(0, i)) << i;
  // A write may have a replica of its own beside those that are read.
  if (GetParam() != Where::host) return;
  for (std::size_t i = 1; i <= 9; ++i) EXPECT_TRUE(journal.in_order(i, 10)) << i;
  EXPECT_TRUE(journal.in_order(10, 11));
}

TEST_P(DependenciesTest, UpdatesRunInOrderOfSubmission) {
  const Data data = tile(1);
  Codelet& twice = codelet(Access::update, [](const Arguments& a) { first(a) *= 2; });
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  double expected = 1;
  for (int i = 0; i < 20; ++i) {
    engine().submit(twice, {{data, Access::update}});
    engine().submit(more, {{data, Access::update}});
    expected = expected * 2 + 1;
  }
  wait();
  EXPECT_EQ(home(0), expected);
}

TEST_P(DependenciesTest, ReadersSeeTheVersionBeforeThem) {
  const Data source = tile();
  std::vector<Data> seen;
  for (int i = 0; i < 40; ++i) seen.push_back(tile(-1));
  Codelet& more = codelet(Access::update, [](const Arguments& a) { first(a) += 1; });
  Codelet& copy = copying();
  for (int i = 0; i < 40; ++i) {
    engine().submit(copy, {{source, Access::read}, {seen[i], Access::write}});
    if (i % 3 == 2) engine().submit(more, {{source, Access::update}});
  }
  wait();
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(home(1 + i), static_cast<double>(i / 3));
}

class GroupTest : public DependenciesTest {
 protected:
  /// write, five of a mode, read, five of a mode, write.
  void run_groups(Access mode, Journal& journal) {
    const Data data = tile();
    Codelet& write = noted(journal, {Access::write});
    Codelet& read = noted(journal, {Access::read});
    Codelet& member = noted(journal, {mode});
    std::size_t i = 0;
    engine().submit(write, {{data, Access::write}}, i++);
    while (i <= 5) engine().submit(member, {{data, mode}}, i++);
    engine().submit(read, {{data, Access::read}}, i++);
    while (i <= 11) engine().submit(member, {{data, mode}}, i++);
    engine().submit(read, {{data, Access::read}}, i++);
    wait();
  }
};

INSTANTIATE_TEST_SUITE_P(Engine, GroupTest, every_engine(), where_name);

TEST_P(GroupTest, MembersRunOneAtATimeBetweenTheirNeighbours) {
  for (const Access mode : {Access::commute, Access::reduce}) {
    Journal journal(13);
    run_groups(mode, journal);
    for (std::size_t i = 1; i <= 5; ++i) {
      EXPECT_TRUE(journal.in_order(0, i)) << quadriga::name(mode) << i;
      EXPECT_TRUE(journal.in_order(i, 6)) << quadriga::name(mode) << i;
      EXPECT_TRUE(journal.in_order(i + 6, 12)) << quadriga::name(mode) << i;
      for (std::size_t j = 1; j < i; ++j) {
        EXPECT_TRUE(journal.apart(i, j)) << quadriga::name(mode) << i << ' ' << j;
        EXPECT_TRUE(journal.apart(i + 6, j + 6)) << quadriga::name(mode) << i << ' ' << j;
      }
    }
  }
}

TEST_P(GroupTest, MembersDontWaitForEarlierOnesThatAreNotReady) {
  const Data sum = tile(), slow = tile();
  Journal journal(2);
  Codelet& member = noted(journal, {Access::commute, Access::read});
  Codelet& quick = noted(journal, {Access::commute});
  // The first member waits for a chain on one device, too long to be issued ahead as a whole; the
  // second could run at once on another.
  SubmitOptions here, there;
  if (GetParam() != Where::host) here.device = 0, there.device = 1;
  Codelet& link = codelet(Access::update, [](const Arguments&) { a_moment(); });
  engine().submit(gate({Access::update}), {{slow, Access::update}}, here);
  for (int i = 0; i < 100; ++i) engine().submit(link, {{slow, Access::update}}, here);
  engine().submit(member, {{sum, Access::commute}, {slow, Access::read}}, std::size_t{0}, here);
  const Future second = engine().submit(quick, {{sum, Access::commute}}, std::size_t{1}, there);
  engine().wait(second, patience);
  open();
  wait();
  EXPECT_TRUE(journal.in_order(1, 0));
}

TEST_P(GroupTest, MembersOfSeveralDataDontBlockEachOtherForGood) {
  std::vector<Data> data;
  for (int i = 0; i < 4; ++i) data.push_back(tile());
  Codelet& add = codelet("add", {Access::commute, Access::commute}, [](const Arguments& a) {
    first(a, 0) += 1;
    first(a, 1) += 1;
  });
  for (std::size_t i = 0; i < 400; ++i)
    engine().submit(
        add, {{data[i % 4], Access::commute}, {data[(i + 1 + i / 4 % 3) % 4], Access::commute}});
  wait();
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) sum += home(i);
  EXPECT_EQ(sum, 800);
}

TEST_P(DependenciesTest, PrioritiesDecideAmongReadyTasks) {
  make([](EngineOptions& options) {
    options.devices = options.virtual_clock ? options.devices : "cpu:1";
  });
  if (GetParam() == Where::emulated) GTEST_SKIP() << "two tasks are issued ahead";
  const Data start = tile();
  Journal journal(40);
  Codelet& task = noted(journal, {Access::read, Access::update});
  engine().submit(gate({Access::write}), {{start, Access::write}});
  for (std::size_t i = 0; i < 40; ++i) {
    SubmitOptions options;
    options.priority = static_cast<int>(i);
    options.device = GetParam() == Where::host ? no_device : DeviceId{0};
    engine().submit(task, {{start, Access::read}, {tile(), Access::update}}, i, options);
  }
  open();
  wait();
  // Those that were issued ahead, or taken by a helping thread, keep their place.
  int turned = 0;
  for (std::size_t i = 0; i + 10 < 40; ++i) turned += journal.in_order(i + 10, i);
  EXPECT_GE(turned, 24);
}

}  // namespace
}  // namespace quadriga
