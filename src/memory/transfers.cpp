// SPDX-License-Identifier: BSD-3-Clause
// src/memory/transfers.cpp: what a copy waits for, what waits for it, and what its end changes.
#include "memory/transfers.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "device/reference_machine.h"

namespace quadriga {
namespace {

// The longest run by which a copy from the host gets less than this part of what the longest of all
// gets; 0: none does.
std::size_t longest_slow_run(const Machine& machine, SpaceId to, double part) {
  constexpr double longest = 1 << 30;
  constexpr double step = 1.05;
  const Route* const route = machine.route(host_space, to);
  if (!route) return 0;
  const double most = machine.copy_rate(*route, longest);
  double run = longest;
  while (run >= 1 && machine.copy_rate(*route, run) >= part * most) run /= step;
  return run < 1 ? 0 : static_cast<std::size_t>(run);
}

}  // namespace

Transfers::Transfers(Instructions& instructions, const Machine& machine,
                     std::span<const SpaceResources> spaces, Replicas& replicas)
    : instructions_(instructions),
      replicas_(replicas),
      times_(machine),
      loads_(machine),
      operation_seconds_(operation_seconds(machine)),
      tokens_to_host_(tokens_to_host(machine)),
      spaces_(static_cast<std::size_t>(machine.spaces())) {
  for (SpaceId space = 0; space < spaces_.size(); ++space)
    if (spaces[space].device != no_device) open(space, spaces[space], machine);
  for (SpaceId space = 1; space < spaces_.size(); ++space) {
    spaces_[space].quicker_from_host = quicker(host_space, space);
    spaces_[space].quicker_to_host = quicker(space, host_space);
  }
}

/// Devices that, in the place of the one of the two, copy some number of bytes in less time.
SpaceMask Transfers::quicker(SpaceId from, SpaceId to) const noexcept {
  constexpr double many = 1e12;
  SpaceMask found = 0;
  for (SpaceId via = 1; via < spaces_.size(); ++via) {
    const SpaceId first = from == host_space ? host_space : via;
    const SpaceId last = from == host_space ? via : host_space;
    if (times_.seconds(first, last, 0) < times_.seconds(from, to, 0) ||
        times_.seconds(first, last, many) < times_.seconds(from, to, many))
      found |= SpaceMask{1} << via;
  }
  return found;
}

void Transfers::open(SpaceId id, const SpaceResources& resources, const Machine& machine) {
  Space& space = spaces_[id];
  const auto open_stream = [&](Stream& stream, StreamId number) {
    stream.id = number;
    if (streams_.size() <= number) streams_.resize(number + 1, nullptr);
    streams_[number] = &stream;
  };
  space.short_run = longest_slow_run(machine, id, 1 / least_gain_of_columns);
  space.long_run = longest_slow_run(machine, id, 1);
  open_stream(space.in, resources.in);
  open_stream(space.out, resources.out);
  space.peers.resize(spaces_.size());
  for (SpaceId from = 1; from < space.peers.size(); ++from)
    if (machine.route(from, id)) open_stream(space.peers[from], resources.peers[from]);
}

const Transfers::Stream& Transfers::stream_for(SpaceId from, SpaceId to) const noexcept {
  if (to == host_space) return spaces_[from].out;
  return from == host_space ? spaces_[to].in : spaces_[to].peers[from];
}

/// The nearest by links that all devices' copies from the host share, unless another is twice as
/// quick now: leaving it loads links that others may need.
SpaceId Transfers::source_for(TileId tile, SpaceId to) const {
  constexpr double worth = 2;
  const Directory& directory = replicas_.directory();
  SpaceId sources[Directory::max_spaces];
  const std::size_t count = directory.sources(tile, to, sources);
  if (count == 1) return joined(sources[0], to) ? sources[0] : no_space;
  const std::size_t bytes = replicas_.bytes(tile);
  SpaceId best = no_space, nearest = no_space;
  double least = std::numeric_limits<double>::infinity(), shortest = least, by_nearest = least;
  for (std::size_t i = 0; i < count; ++i) {
    const double alone = copy_seconds(tile, sources[i], to);
    // One that hasn't arrived must get there first, or its first slice.
    const std::size_t parts = std::max<std::size_t>(slices(tile, sources[i]).size(), 1);
    const double before =
        directory.arrived(tile, sources[i]) ? 0 : alone / static_cast<double>(parts);
    // The loads are of the near nodes' routes.
    const double now = before + std::max(alone, loads_.seconds(sources[i], to, bytes));
    const double crowded = before + loads_.crowded_seconds(sources[i], to, bytes);
    if (crowded < shortest) {
      shortest = crowded;
      nearest = sources[i];
      by_nearest = now;
    }
    if (now < least) {
      least = now;
      best = sources[i];
    }
  }
  const bool is_careful = to == host_space || to == directory.home(tile);
  return is_careful || by_nearest <= worth * least ? nearest : best;
}

SpaceId Transfers::relay_for(TileId tile, SpaceId from, SpaceId to) const {
  const Directory& directory = replicas_.directory();
  const bool is_load = from == host_space;
  const SpaceMask quicker = is_load ? spaces_[to].quicker_from_host : spaces_[from].quicker_to_host;
  if (quicker == 0) return no_space;
  const std::size_t bytes = replicas_.bytes(tile);
  const auto queued = [&](SpaceId device) {
    return is_load ? loads_.bytes(host_space, device) : loads_.bytes(device, host_space);
  };
  const auto by_way_of = [&](SpaceId via, std::size_t before) {
    return seconds(from, via, bytes + (is_load ? before : 0)) +
           seconds(via, to, bytes + (is_load ? 0 : before));
  };
  const double alone = seconds(from, to, bytes);
  double least = seconds(from, to, bytes + queued(is_load ? to : from));
  SpaceId best = no_space;
  for (SpaceId via = 1; via < replicas_.spaces(); ++via) {
    if (via == from || via == to || via == directory.home(tile)) continue;
    if (probing(via) || directory.gone(via)) continue;
    if (directory.valid(tile, via)) return no_space;
    if (by_way_of(via, 0) >= alone || by_way_of(via, queued(via)) >= least) continue;
    least = by_way_of(via, queued(via));
    best = via;
  }
  return best;
}

SpaceId Transfers::quickest_to_host(TileId tile, SpaceId owner) const {
  const Directory& directory = replicas_.directory();
  const auto end = [&](SpaceId from) {
    return seconds(from, host_space, loads_.bytes(from, host_space) + replicas_.bytes(tile));
  };
  SpaceId others[Directory::max_spaces];
  const std::size_t count = directory.sources(tile, host_space, others);
  SpaceId best = owner;
  for (const SpaceId space : std::span(others, count))
    if (space != best && directory.arrived(tile, space) && confirmed(tile, space) &&
        !probing(space) && end(space) < end(best))
      best = space;
  return best;
}

bool Transfers::arrives_on_quicker_way(TileId tile, SpaceId owner) const {
  const Directory& directory = replicas_.directory();
  const std::size_t bytes = replicas_.bytes(tile);
  const auto home = [&](SpaceId from, std::size_t before) {
    return seconds(from, host_space, before + bytes);
  };
  const auto queued = [&](SpaceId from) { return loads_.bytes(from, host_space); };
  const SpaceId now = quickest_to_host(tile, owner);
  const double least = home(now, queued(now));
  const double alone = home(now, 0);
  for (SpaceId space = 1; space < replicas_.spaces(); ++space) {
    if (!directory.valid(tile, space) || directory.arrived(tile, space) || probing(space)) continue;
    // It may stand behind others there.
    const double idle = seconds(owner, space, bytes);
    const double behind = seconds(owner, space, std::max(bytes, loads_.bytes(owner, space)));
    if (idle + home(space, 0) < alone && behind + home(space, queued(space)) < least) return true;
  }
  return false;
}

double Transfers::fetch_seconds(TileId tile, SpaceId to) const {
  if (replicas_.directory().valid(tile, to)) return 0;
  const SpaceId from = source_for(tile, to);
  if (from != no_space) return copy_seconds(tile, from, to);
  const SpaceId owner = replicas_.directory().owner(tile);
  if (owner == no_space) return 0;
  return copy_seconds(tile, owner, host_space) + copy_seconds(tile, host_space, to);
}

Copy Transfers::describe(TileId tile, SpaceId from, SpaceId to, const Slice& slice) const {
  const TileInfo& info = replicas_.info(tile);
  Copy copy;
  copy.from = from;
  copy.to = to;
  copy.source_pitch = replicas_.pitch(tile, from);
  copy.target_pitch = replicas_.pitch(tile, to);
  copy.source =
      replicas_.address(tile, from) + slice.first_column * copy.source_pitch + slice.first_byte;
  copy.target =
      replicas_.address(tile, to) + slice.first_column * copy.target_pitch + slice.first_byte;
  copy.node = node_of(tile, from, to);
  copy.width_bytes = slice.bytes;
  copy.height = slice.columns;
  if (copy.source_pitch == info.width_bytes && copy.target_pitch == info.width_bytes) {
    copy.width_bytes *= copy.height;
    copy.height = 1;
  } else if (copy.source_pitch == copy.target_pitch && !replicas_.at_home(tile, from) &&
             !replicas_.at_home(tile, to)) {
    // Padding goes along: one run is quicker than many.
    copy.width_bytes += copy.source_pitch * (copy.height - 1);
    copy.height = 1;
  }
  return copy;
}

/// The tiles are pieces of runs that hold all of them.
Copy Transfers::describe_column(std::span<const TileId> tiles, SpaceId to) const {
  const TileInfo& top = replicas_.info(tiles.front());
  Copy copy;
  copy.to = to;
  copy.source = top.home;
  copy.source_pitch = top.pitch;
  copy.height = top.columns;
  std::vector<Piece> pieces;
  for (const TileId tile : tiles) {
    const std::size_t width = replicas_.info(tile).width_bytes;
    pieces.push_back({replicas_.address(tile, to), width, replicas_.pitch(tile, to)});
    copy.width_bytes += width;
  }
  copy.pieces = std::make_shared<const std::vector<Piece>>(std::move(pieces));
  return copy;
}

/// Invariant 3: what overwrites home can't be taken back.
void Transfers::expect_certain(TileId tile, SpaceId from, SpaceId to) const {
  if (replicas_.at_home(tile, to) && replicas_.unconfirmed(tile, from))
    fail(Errc::internal,
         fmt::format("tile {} is written home from space {} to space {} before the task that wrote "
                     "it has ended",
                     tile, from, to));
}

std::span<const Event> Transfers::slices(TileId tile, SpaceId space) const {
  const Replica& replica = replicas_.at(tile, space);
  // A kernel may have been queued that writes it.
  const bool are_current = !replica.slices.empty() && replica.slices.back() == replica.ready;
  if (!are_current || replicas_.directory().arrived(tile, space)) return {};
  return replica.slices;
}

std::size_t Transfers::slices_by_way_of(TileId tile, SpaceId from, SpaceId via, SpaceId to) const {
  const std::size_t bytes = replicas_.bytes(tile);
  const double whole = std::min(seconds(from, via, bytes), seconds(via, to, bytes));
  const double each = std::max(seconds(from, via, 0), seconds(via, to, 0)) + operation_seconds_;
  const std::size_t slices = slices_for(
      whole, each, most_slices(replicas_.info(tile).width_bytes, replicas_.info(tile).columns));
  // Unless they save half of what is waited for, the copy stays whole: each slice holds up what its
  // link brings next.
  const auto n = static_cast<double>(slices);
  return whole / n + n * each > whole / 2 ? 1 : slices;
}

void Transfers::queue(TileId tile, SpaceId from, SpaceId to, Reason reason, std::size_t slices) {
  expect_certain(tile, from, to);
  Stream& stream = stream_for(from, to);
  const Transfer transfer{tile, from, to, reason, nullptr};
  const std::span<const Event> sources = this->slices(tile, from);
  const Event ready = replicas_.at(tile, from).ready;
  if (!sources.empty()) slices = sources.size();
  wait_for_both(stream.id, sources.empty() ? ready : sources.front(), tile, to);
  Event last;
  std::vector<Event> events;  // Of several.
  for (std::size_t i = 0; i < slices; ++i) {
    if (i > 0 && !sources.empty()) instructions_.wait(stream.id, sources[i]);
    const Slice slice =
        slice_of(replicas_.info(tile).width_bytes, replicas_.info(tile).columns, slices, i);
    last = instructions_.copy(stream.id, describe(tile, from, to, slice));
    if (slices > 1) events.push_back(last);
    if (i + 1 == slices) break;
    add_record(stream, transfer, {}).is_part = true;
  }
  const bool is_here = replicas_.directory().arrived(tile, from);
  note(tile, from, to, last);
  if (slices > 1) replicas_.at(tile, to).slices = std::move(events);
  add_record(stream, transfer, is_here ? Event{} : ready);
  loads_.add(from, to, replicas_.bytes(tile));
  if (reason == Reason::evict) spaces_[from].leaving_bytes += replicas_.block_bytes(tile, from);
}

void Transfers::queue_column(std::span<const TileId> tiles, SpaceId to, Reason reason) {
  if (tiles.size() == 1) return queue(tiles.front(), host_space, to, reason);
  Stream& stream = spaces_[to].in;
  for (const TileId tile : tiles)
    wait_for_both(stream.id, replicas_.at(tile, host_space).ready, tile, to);
  const Event event = instructions_.copy(stream.id, describe_column(tiles, to));
  for (const TileId tile : tiles) {
    note(tile, host_space, to, event);
    loads_.add(host_space, to, replicas_.bytes(tile));
  }
  Record& record = add_record(stream, {tiles.front(), host_space, to, reason, nullptr}, {});
  record.others.assign(tiles.begin() + 1, tiles.end());
}

Transfers::Record& Transfers::add_record(Stream& stream, Transfer transfer, Event after) {
  stream.records.push({.transfer = std::move(transfer), .after = after, .others = {}});
  ++in_flight_;
  return stream.records.at(stream.records.size() - 1);
}

/// For the source's content, and for the readers of what the target's memory held.
void Transfers::wait_for_both(StreamId stream, Event source, TileId tile, SpaceId to) {
  const Replica& target = replicas_.at(tile, to);
  instructions_.wait(stream, source);
  instructions_.wait(stream, target.ready);
  for (const Event read : target.reads) instructions_.wait(stream, read);
}

/// A copy was queued: event `copied`.
void Transfers::note(TileId tile, SpaceId from, SpaceId to, Event copied) {
  Directory& directory = replicas_.directory();
  Replica& source = replicas_.at(tile, from);
  Replica& target = replicas_.at(tile, to);
  directory.copy_issued(tile, from, to);
  source.reads.push_back(copied);
  target.ready = copied;
  target.reads.clear();
  target.slices.clear();
  replicas_.set_unconfirmed(
      tile, to,
      to != host_space && to != directory.home(tile) && replicas_.unconfirmed(tile, from));
  replicas_.touch(tile, to);
}

void Transfers::probe(SpaceId space) {
  Stream& out = spaces_[space].out;
  Copy copy;
  copy.from = space;
  copy.to = host_space;
  instructions_.copy(out.id, copy);
  add_record(out, {no_tile, space, host_space, Reason::stage, nullptr}, {});
  ++spaces_[space].probes;
}

/// What was forwarded from a replica that never arrived is as wrong.
void Transfers::fail_forwarded(TileId tile, Event event, const std::exception_ptr& error) {
  for (Stream* const stream : streams_) {
    if (!stream) continue;
    for (std::size_t i = 0; i < stream->records.size(); ++i) {
      Record& record = stream->records.at(i);
      if (record.transfer.tile == tile && record.after == event) record.transfer.error = error;
    }
  }
}

/// The record of the last slice is the first that isn't of a part.
void Transfers::part_ended(Stream& stream, const Completion& completion) {
  std::size_t last = 0;
  while (stream.records.at(last).is_part) ++last;
  Transfer& whole = stream.records.at(last).transfer;
  if (completion.error && !whole.error) whole.error = completion.error;
  stream.records.front().begin = completion.begin;
}

bool Transfers::ended(Completion& completion, std::vector<Transfer>& out) {
  const Event event = completion.event;
  Stream* const stream = event.stream < streams_.size() ? streams_[event.stream] : nullptr;
  if (!stream) return false;
  instructions_.ended(event);
  Record record = stream->records.pop();
  --in_flight_;
  out.clear();
  if (record.begin >= 0) completion.begin = record.begin;
  if (record.is_part) {
    part_ended(*stream, completion);
    return true;
  }
  Transfer& transfer = record.transfer;
  if (completion.error) transfer.error = completion.error;
  out.assign(1, transfer);
  if (transfer.tile == no_tile) {
    --spaces_[transfer.from].probes;
    return true;
  }
  for (const TileId tile : record.others) {
    transfer.tile = tile;
    out.push_back(transfer);
  }
  for (const Transfer& each : out) end(each, event);
  return true;
}

void Transfers::end(const Transfer& transfer, Event event) {
  const auto& [tile, from, to, reason, error] = transfer;
  if (error) fail_forwarded(tile, event, error);
  loads_.remove(from, to, replicas_.bytes(tile));
  if (reason == Reason::evict) spaces_[from].leaving_bytes -= replicas_.block_bytes(tile, from);
  std::erase(replicas_.at(tile, from).reads, event);
  replicas_.directory().copy_ended(tile, from, to, !error);
}

void Transfers::wait_for(StreamId stream, TileId tile, SpaceId space, Access access) {
  const Replica& replica = replicas_.at(tile, space);
  instructions_.wait(stream, replica.ready);
  __builtin_prefetch(replica.reads.data(), 1);  // used() comes next
  if (writes(access))
    for (const Event read : replica.reads) instructions_.wait(stream, read);
}

void Transfers::used(TileId tile, SpaceId space, Access access, Event done) {
  Replica& replica = replicas_.at(tile, space);
  if (writes(access)) {
    replicas_.directory().write_issued(tile, space);
    replica.ready = done;
    replica.reads.clear();
    replicas_.set_unconfirmed(tile, space, true);
    return;
  }
  for (Event& read : replica.reads)
    if (read.stream == done.stream) {
      read = done;
      return;
    }
  replica.reads.push_back(done);
}

}  // namespace quadriga
