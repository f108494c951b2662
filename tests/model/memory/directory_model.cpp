// SPDX-License-Identifier: BSD-3-Clause
// tests/model/memory/directory_model.cpp: the random events, and the comparison after each.
#include "model/memory/directory_model.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <set>

namespace quadriga {

std::string DirectoryModel::step() {
  try {
    const std::uint64_t dice = random_.below(1000);
    if (tiles_.empty() || dice < 5) {
      add_tile();
    } else if (dice < 9) {
      remove_tile();
    } else if (dice < 10) {
      lose_space();
    } else if (dice < 300) {
      issue_copy();
    } else if (dice < 450) {
      issue_kernel();
    } else if (dice < 550) {
      drop();
    } else {
      carry_out();
    }
    directory_.validate();
  } catch (const Error& error) {
    if (wrong_.empty()) wrong_ = fmt::format("unexpected error: {}", error.what());
  }
  return wrong_;
}

std::string DirectoryModel::drain() {
  try {
    while (!queue_.empty() && wrong_.empty()) carry_out();
    for (const auto& [tile, unused] : tiles_) expect_same(tile);
  } catch (const Error& error) {
    if (wrong_.empty()) wrong_ = fmt::format("unexpected error: {}", error.what());
  }
  return wrong_;
}

void DirectoryModel::add_tile() {
  if (tiles_.size() >= 6) return;
  const SpaceId home = chance(30) ? host_space : any_space();
  const bool home_valid = chance(50);
  const TileId tile = directory_.add(home_valid, home);
  expect(!tiles_.contains(tile), tile, "a number was given out twice");
  Tile& added = tiles_[tile];
  added.memories.resize(static_cast<std::size_t>(spaces_));
  added.home = home;
  if (home_valid && !gone_[home]) {
    added.newest = ++versions_;
    added.memories[home] = {.holds = added.newest, .will_hold = added.newest};
  }
  ++seen_[home == host_space ? "add" : "add at a device"];
  expect_same(tile);
}

void DirectoryModel::remove_tile() {
  const TileId tile = any_tile();
  const auto used = [&](const Operation& operation) { return operation.tile == tile; };
  if (std::ranges::none_of(queue_, used)) {
    directory_.remove(tile);
    tiles_.erase(tile);
    ++seen_["remove"];
    return;
  }
  const auto pinned = [](const Memory& memory) { return memory.pins > 0; };
  if (!std::ranges::any_of(tiles_[tile].memories, pinned)) return;
  expect(refuses([&] { directory_.remove(tile); }), tile, "a pinned tile was removed");
}

void DirectoryModel::issue_copy() {
  const TileId tile = any_tile();
  const SpaceId to = any_space();
  SpaceId from = any_space();
  std::array<SpaceId, 64> sources{};
  const std::size_t count = directory_.sources(tile, to, sources);
  if (count > 0 && chance(90)) from = sources[random_.below(count)];
  const Version newest = tiles_[tile].newest;
  Memory& target = tiles_[tile].memories[to];
  Memory& source = tiles_[tile].memories[from];
  const bool legal =
      newest != garbage && source.will_hold == newest && target.will_hold != newest && !gone_[to];
  if (!legal) {
    expect(refuses([&] { directory_.copy_issued(tile, from, to); }), tile,
           fmt::format("a copy {} -> {} that can't be was accepted", from, to));
    return expect_same(tile);
  }
  directory_.copy_issued(tile, from, to);
  ++seen_[queued(tile, from, true) ? "forward" : to == tiles_[tile].home ? "write back" : "copy"];
  ++seen_[queued(tile, to, true) ? "copy behind a copy" : "copy to a quiet replica"];
  ++source.pins;
  target.will_hold = newest;
  queue_.push_back({Operation::Kind::copy, tile, from, to, newest, newest});
  expect_same(tile);
}

void DirectoryModel::issue_kernel() {
  const TileId tile = any_tile();
  const SpaceId space = any_space();
  if (gone_[space]) return;
  Tile& entry = tiles_[tile];
  Memory& memory = entry.memories[space];
  const bool valid = entry.newest != garbage && memory.will_hold == entry.newest;
  Operation operation{Operation::Kind::write, tile, space, space, garbage, garbage};
  if (valid && chance(80)) {
    operation.kind = chance(60) ? Operation::Kind::read : Operation::Kind::update;
    operation.reads = entry.newest;
  }
  directory_.pin(tile, space);
  ++memory.pins;
  if (operation.kind != Operation::Kind::read) {
    teller_.write_issued(directory_, tile, space);
    operation.writes = entry.newest = memory.will_hold = ++versions_;
  }
  ++seen_[operation.kind == Operation::Kind::read ? "read" : "write"];
  queue_.push_back(operation);
  expect_same(tile);
}

void DirectoryModel::drop() {
  const TileId tile = any_tile();
  const SpaceId space = any_space();
  Tile& entry = tiles_[tile];
  Memory& memory = entry.memories[space];
  const bool needed = last(tile, space);
  if (gone_[space] || memory.pins > 0 || queued(tile, space, true) || needed) {
    expect(refuses([&] { directory_.dropped(tile, space); }), tile,
           fmt::format("the replica in {} was dropped though it is in use, or the last", space));
    ++seen_[needed ? "drop refused" : "drop of one in use refused"];
  } else {
    directory_.dropped(tile, space);
    memory = Memory{};
    ++seen_["drop"];
  }
  expect_same(tile);
}

void DirectoryModel::lose_space() {
  const auto space = static_cast<SpaceId>(1 + random_.below(static_cast<std::uint64_t>(spaces_)));
  if (space >= spaces_ || gone_[space] || std::ranges::count(gone_, true) + 3 > spaces_) return;
  gone_[space] = true;
  std::vector<TileId> reported(tiles_.size());
  reported.resize(directory_.space_lost(space, reported));
  std::vector<TileId> expected;
  for (auto& [tile, entry] : tiles_) {
    entry.memories[space] = Memory{};
    if (entry.newest == garbage || (entry.home != space && written(tile))) continue;
    if (entry.home == space) ++seen_["home lost"];
    entry.newest = garbage;
    expected.push_back(tile);
  }
  expect(reported == expected, no_tile, "a lost space reported other tiles than it alone held");
  std::erase_if(queue_, [&](const Operation& operation) {
    if (operation.kind == Operation::Kind::copy || operation.to != space) return false;
    directory_.unpin(operation.tile, space);
    return true;
  });
  ++seen_["space lost"];
  for (const auto& [tile, unused] : tiles_) expect_same(tile);
}

void DirectoryModel::carry_out() {
  if (queue_.empty()) return;
  std::size_t chosen = random_.below(queue_.size());
  while (blocked(chosen)) --chosen;  // the first is never blocked
  const Operation operation = queue_[chosen];
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(chosen));
  auto& memories = tiles_[operation.tile].memories;
  const Version found = memories[operation.from].holds;
  const bool ready = operation.reads == garbage || found == operation.reads;
  expect(ready || found == garbage, operation.tile,
         fmt::format("version {} was read in {} instead of {}", found, operation.from,
                     operation.reads));
  bool ok = !chance(4);
  if (operation.writes != garbage && !gone_[operation.to])
    memories[operation.to].holds = ok && ready ? operation.writes : garbage;
  // A copy of garbage ends well as far as a device can tell; a task that reads it is failed.
  if (operation.kind != Operation::Kind::copy || gone_[operation.from]) ok = ok && ready;
  end(operation, ok);
  expect_same(operation.tile);
}

/// Tells the directory how an operation ended.
void DirectoryModel::end(const Operation& operation, bool ok) {
  const TileId tile = operation.tile;
  Tile& entry = tiles_[tile];
  if (!gone_[operation.from]) --entry.memories[operation.from].pins;
  if (operation.kind == Operation::Kind::copy) {
    teller_.copy_ended(directory_, tile, operation.from, operation.to, ok);
    if (!ok) arrival_failed(tile, operation.to, operation.writes);
    if (!written(tile)) entry.newest = garbage;
  } else {
    directory_.unpin(tile, operation.from);
    if (!ok && operation.writes != garbage && operation.writes == entry.newest) {
      directory_.lost(tile);
      entry.newest = garbage;
      ++seen_["content lost"];
    }
  }
  ++seen_[ok ? "ended" : "failed"];
}

/// The memory won't hold the version, and neither will those to which a copy from it is queued.
void DirectoryModel::arrival_failed(TileId tile, SpaceId space, Version version) {
  Version& will_hold = tiles_[tile].memories[space].will_hold;
  if (will_hold != version) return;
  will_hold = garbage;
  for (const Operation& operation : queue_)
    if (operation.kind == Operation::Kind::copy && operation.tile == tile &&
        operation.from == space && operation.writes == version)
      arrival_failed(tile, operation.to, version);
}

void DirectoryModel::expect_same(TileId tile) {
  if (!wrong_.empty()) return;
  const Tile& entry = tiles_[tile];
  const auto holders = static_cast<int>(std::ranges::count_if(
      entry.memories, [&](const Memory& memory) { return memory.will_hold == entry.newest; }));
  const bool home = holds_newest(tile, entry.home);
  expect(directory_.home(tile) == entry.home && directory_.home_lost(tile) == gone_[entry.home],
         tile, "home() or home_lost()");
  int owners = 0;
  for (SpaceId space = 0; space < spaces_; ++space) {
    const Memory& memory = entry.memories[space];
    const bool valid = holds_newest(tile, space);
    const State state = directory_.state(tile, space);
    const auto same = [&](auto found, auto expected, std::string_view what) {
      expect(found == expected, tile,
             fmt::format("{} of the replica in {} is {}, state {}; expected {}", what, space,
                         static_cast<int>(found), name(state), static_cast<int>(expected)));
    };
    same(directory_.valid(tile, space), valid, "valid()");
    same(directory_.arrived(tile, space), arrived(tile, space), "arrived()");
    same(directory_.dirty(tile, space), last(tile, space), "dirty()");
    same(directory_.in_flight(tile, space), !gone_[space] && queued(tile, space, true),
         "in_flight()");
    same(directory_.pins(tile, space), memory.pins, "pins()");
    same(state == State::invalid, !valid, "invalid");
    same(state == State::exclusive, valid && space == entry.home && holders == 1, "exclusive");
    same(state == State::modified, valid && space != entry.home && holders == 1, "modified");
    if (valid && home && holders > 1) same(state, State::shared, "state beside a valid home");
    if (valid && !queued(tile, space, false)) same(memory.holds, entry.newest, "content");
    owners += state == State::owned;
  }
  expect(owners == (entry.newest != garbage && !home && holders > 1), tile, "number of owners");
  expect(directory_.written(tile) == (entry.newest != garbage), tile, "written()");
}

void DirectoryModel::expect(bool condition, TileId tile, const std::string& what) {
  if (!condition && wrong_.empty()) wrong_ = fmt::format("tile {}: {}", tile, what);
}

bool DirectoryModel::refuses(const std::function<void()>& event) {
  ++seen_["refused"];
  try {
    event();
  } catch (const Error& error) {
    return error.code() == Errc::invalid_argument;
  }
  return false;
}

/// Whether something that is queued will write the memory.
bool DirectoryModel::queued(TileId tile, SpaceId space, bool copies_only) const {
  return std::ranges::any_of(queue_, [&](const Operation& operation) {
    return operation.tile == tile && operation.to == space && operation.writes != garbage &&
           (!copies_only || operation.kind == Operation::Kind::copy);
  });
}

bool DirectoryModel::holds_newest(TileId tile, SpaceId space) const {
  const Tile& entry = tiles_.at(tile);
  return entry.newest != garbage && entry.memories[space].will_hold == entry.newest;
}

/// Holds the newest content, and not only once a copy has ended.
bool DirectoryModel::arrived(TileId tile, SpaceId space) const {
  return holds_newest(tile, space) && std::ranges::none_of(queue_, [&](const Operation& operation) {
           return operation.kind == Operation::Kind::copy && operation.tile == tile &&
                  operation.to == space && operation.writes == tiles_.at(tile).newest;
         });
}

/// Holds the newest content, and no other replica has it yet.
bool DirectoryModel::last(TileId tile, SpaceId space) const {
  if (!holds_newest(tile, space)) return false;
  for (SpaceId other = 0; other < spaces_; ++other)
    if (other != space && arrived(tile, other)) return false;
  return true;
}

bool DirectoryModel::written(TileId tile) const {
  for (SpaceId space = 0; space < spaces_; ++space)
    if (holds_newest(tile, space)) return true;
  return false;
}

/// Whether an earlier operation of the queue touches the same memory, and one of the two writes it.
bool DirectoryModel::blocked(std::size_t index) const {
  const Operation& later = queue_[index];
  const auto conflicts = [&](const Operation& earlier) {
    if (earlier.tile != later.tile) return false;
    const bool earlier_writes = earlier.writes != garbage, later_writes = later.writes != garbage;
    return (earlier_writes && (earlier.to == later.from || earlier.to == later.to)) ||
           (later_writes && (later.to == earlier.from || later.to == earlier.to));
  };
  return std::any_of(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(index),
                     conflicts);
}

TileId DirectoryModel::any_tile() {
  return std::next(tiles_.begin(), static_cast<std::ptrdiff_t>(random_.below(tiles_.size())))
      ->first;
}

}  // namespace quadriga
