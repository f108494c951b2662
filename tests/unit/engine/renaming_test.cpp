// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/renaming_test.cpp: what overwrites data needn't wait for those that read them,
// within the memory that is given for that, and nobody sees another content.
#include <gtest/gtest.h>
#include <quadriga/engine.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "engine/on_host.h"
#include "memory/spill.h"
#include "unit/engine/renaming_engine.h"

namespace quadriga {
namespace {

class Renaming : public RenamingEngine {};

INSTANTIATE_TEST_SUITE_P(Engine, Renaming, every_engine(), where_name);

TEST_P(Renaming, AWriteNeedntWaitForReadersOfTheOldContent) {
  const Data x = tile(1);
  double old = 0;
  engine().submit(gate({Access::read}), {{x, Access::read}});
  read(x, old);
  const Future written = set(x, 2);
  engine().wait(written, patience);  // while the gate is shut
  double now = 0;
  wait_for_end(engine(), read(x, now), patience);
  EXPECT_EQ(now, 2);
  EXPECT_EQ(home(0), 1);
  open();
  wait();
  EXPECT_EQ(old, 1);
  EXPECT_EQ(home(0), 2);
  EXPECT_EQ(counters().renamed, 1u);
  EXPECT_EQ(counters().copied, 1u);
  EXPECT_EQ(counters().refused, 0u);
}

TEST_P(Renaming, IsOffUnlessMemoryIsGiven) {
  rename(0);
  const Data x = tile(1);
  engine().submit(gate({Access::read}), {{x, Access::read}});
  const Future written = set(x, 2);
  EXPECT_FALSE(engine().done(written));
  open();
  wait();
  EXPECT_EQ(home(0), 2);
  EXPECT_EQ(counters().renamed, 0u);
}

TEST_P(Renaming, WhatUpdatesWaits) {
  const Data x = tile(1);
  engine().submit(gate({Access::read}), {{x, Access::read}});
  engine().submit(codelet(Access::update, [](const Arguments& a) { first(a) += 1; }),
                  {{x, Access::update}});
  open();
  wait();
  EXPECT_EQ(home(0), 2);
  EXPECT_EQ(counters().renamed, 0u);
}

TEST_P(Renaming, UpdatesOfRenamedContentAreOfThat) {
  const Data x = tile(1);
  engine().submit(gate({Access::read}), {{x, Access::read}});
  set(x, 5);
  const Future updated = engine().submit(
      codelet(Access::update, [](const Arguments& a) { first(a) += 1; }), {{x, Access::update}});
  wait_for_end(engine(), updated, patience);
  EXPECT_EQ(home(0), 1);
  open();
  wait();
  EXPECT_EQ(home(0), 6);
}

TEST_P(Renaming, GoesHomeOnceNobodyReadsThere) {
  const Data x = tile(1);
  const Future reader = engine().submit(gate({Access::read}), {{x, Access::read}});
  set(x, 2);
  open();
  wait_for_end(engine(), reader, patience);
  set(x, 3);
  wait();
  EXPECT_EQ(home(0), 3);
  EXPECT_EQ(counters().renamed, 1u);
  EXPECT_EQ(counters().copied, 0u);
}

TEST_P(Renaming, StopsWhereMemoryIsUsedUp) {
  rename(2 * bytes_of_tile);
  std::array<Data, 5> x;
  for (Data& each : x) {
    each = tile(1);
    engine().submit(gate({Access::read}), {{each, Access::read}});
  }
  for (const Data& each : x) set(each, 2);
  EXPECT_EQ(counters().renamed, 2u);
  EXPECT_EQ(counters().refused, 3u);
  EXPECT_EQ(counters().most_bytes, 2 * bytes_of_tile);
  open();
  wait();
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(home(i), 2) << i;
}

TEST_P(Renaming, PlacesTakeTurnsWhereMemoryIsUsedUp) {
  rename(bytes_of_tile);
  const Data x = tile(0);
  std::array<double, 20> seen{};
  engine().submit(gate({Access::read}), {{x, Access::read}});
  for (std::size_t i = 0; i < seen.size(); ++i) {
    set(x, static_cast<double>(i));
    read(x, seen[i]);
  }
  EXPECT_EQ(counters().refused, 0u);
  EXPECT_EQ(counters().most_bytes, bytes_of_tile);
  open();
  wait();
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i);
  EXPECT_EQ(home(0), seen.size() - 1);
}

TEST_P(Renaming, OtherDataGetAPlaceOnlyOnceNobodyUsesIt) {
  rename(bytes_of_tile);
  const Data x = tile(1), y = tile(1);
  Codelet& reading = gate({Access::read});
  for (const double value : {2.0, 3.0}) {  // in the end the place is still read
    engine().submit(reading, {{x, Access::read}});
    set(x, value);
  }
  engine().submit(reading, {{y, Access::read}});
  set(y, 4);
  EXPECT_EQ(counters().renamed, 2u);
  EXPECT_EQ(counters().refused, 1u);
  open();
  wait();
  EXPECT_EQ(home(0), 3);
  EXPECT_EQ(home(1), 4);
}

TEST_P(Renaming, AWriteWaitsForTheOldestReadersOnly) {
  rename(bytes_of_tile);
  if (GetParam() != Where::host) GTEST_SKIP() << "there it may stand behind the other reader";
  std::atomic<bool> first_ends{false}, second_ends{false};
  const Data x = tile(1);
  engine().submit(until(first_ends), {{x, Access::read}});
  set(x, 2);
  engine().submit(until(second_ends), {{x, Access::read}});
  const Future last = set(x, 3);
  EXPECT_FALSE(engine().done(last));
  end(first_ends);
  engine().wait(last, patience);
  end(second_ends);
  wait();
  EXPECT_EQ(home(0), 3);
  EXPECT_EQ(counters().renamed, 2u);
  EXPECT_EQ(counters().copied, 0u);
}

TEST_P(Renaming, NothingGrows) {
  const Data x = tile(0);
  const Data sum = tile(0);
  const Codelet& add = codelet("add", {Access::read, Access::update},
                               [](const Arguments& a) { first(a, 1) += first(a, 0); });
  for (int i = 1; i <= 2000; ++i) {
    set(x, i);
    engine().submit(add, {{x, Access::read}, {sum, Access::update}});
    if (i % 500 == 0) wait();
  }
  wait();
  EXPECT_EQ(home(0), 2000);
  EXPECT_EQ(home(1), 2000 * 2001 / 2);
  EXPECT_LE(counters().most_bytes, 4 * bytes_of_tile);
  EXPECT_LE(engine().counters().spill_bytes, 4 * Spill::rounded(bytes_of_tile));
  engine().reset_counters();
  EXPECT_EQ(counters().most_bytes, 0u);  // the memory was given back
}

TEST_P(Renaming, TheHostReadsTheOldContentWhileTasksOverwriteIt) {
  const Data x = tile(1);
  {
    const HostAccess reading = engine().on_host(x, Access::read, patience);
    wait_for_end(engine(), set(x, 2), patience);
    EXPECT_EQ(home(0), 1);
  }
  const HostAccess reading = engine().on_host(x, Access::read, patience);
  EXPECT_EQ(home(0), 2);
  EXPECT_EQ(counters().renamed, 1u);
}

TEST_P(Renaming, TheHostOverwritesAndUpdatesTheNewestContent) {
  const Data x = tile(1);
  double old = 0, now = 0;
  engine().submit(gate({Access::read}), {{x, Access::read}});
  read(x, old);
  set(x, 2);
  open();
  {
    const HostAccess updating = engine().on_host(x, Access::update, patience);
    const_cast<double&>(home_of(0)) += 10;
  }
  read(x, now);
  wait();
  EXPECT_EQ(old, 1);
  EXPECT_EQ(now, 12);
}

TEST_P(Renaming, RemovalWaitsForAllThatTouchTheData) {
  const Data x = tile(1);
  double old = 0, renamed = 0;
  engine().submit(gate({Access::read}), {{x, Access::read}});
  read(x, old);
  set(x, 2);
  read(x, renamed);
  open();
  engine().remove(x);
  EXPECT_EQ(home(0), 2);
  EXPECT_EQ(old, 1);
  EXPECT_EQ(renamed, 2);
}

TEST_P(Renaming, DiscardedContentIsNotCopied) {
  const Data x = tile(1);
  engine().submit(gate({Access::read}), {{x, Access::read}});
  set(x, 2);
  open();
  engine().remove(x, true);
  EXPECT_EQ(counters().copied, 0u);
  EXPECT_EQ(counters().renamed, 1u);
}

TEST_P(Renaming, AFailedWriteLosesTheContentUntilItIsWrittenAgain) {
  const Data x = tile(1);
  double old = 0;
  engine().submit(gate({Access::read}), {{x, Access::read}});
  read(x, old);
  engine().submit(
      codelet("fail", {Access::write}, [](const Arguments&) { fail(Errc::io, "no content"); }),
      {{x, Access::write}});
  open();
  EXPECT_THROW(wait(), Error);
  EXPECT_EQ(old, 1);
  EXPECT_THROW(engine().wait(x, patience), Error);
  set(x, 3);
  wait();
  EXPECT_EQ(home(0), 3);
}

TEST_P(Renaming, OverlappingDataSeeTheNewestContent) {
  std::array<double, 8> home{};
  const Data x = engine().data(home.data(), 8, 1, 8, DType::float64);
  engine().submit(gate({Access::read}), {{x, Access::read}});
  set(x, 2);
  open();
  const Data half = engine().data(home.data() + 4, 4, 1, 4, DType::float64);
  double seen = 0;
  read(half, seen);
  wait();
  EXPECT_EQ(seen, 2);
  set(x, 3);
  read(half, seen);
  wait();
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(counters().renamed, 1u);
  engine().remove(half);
  engine().remove(x);
}

TEST_P(Renaming, ResidentAndKeptDataAndTemporariesStayWhereTheyAre) {
  std::array<std::array<double, 8>, 2> homes{};
  const Data data[] = {engine().data(homes[0].data(), 8, 1, 8, DType::float64, {.resident = true}),
                       engine().data(homes[1].data(), 8, 1, 8, DType::float64, {.keep = true}),
                       engine().temporary(8, 1, DType::float64)};
  for (const Data& each : data) set(each, 1);
  for (const Data& each : data) {
    engine().submit(gate({Access::read}), {{each, Access::read}});
    set(each, 2);
  }
  EXPECT_EQ(counters().renamed, 0u);
  open();
  wait();
  for (const Data& each : data) engine().remove(each);
}

TEST_P(Renaming, WhereTheNewestContentIs) {
  const Data x = tile(1);
  engine().submit(gate({Access::read}), {{x, Access::read}});
  wait_for_end(engine(), set(x, 2), patience);
  EXPECT_FALSE(is_home(engine(), x));
  open();
  wait();
  EXPECT_TRUE(is_home(engine(), x));
  EXPECT_TRUE(engine().valid(std::span(&x, 1), host_space).front());
}

}  // namespace
}  // namespace quadriga
