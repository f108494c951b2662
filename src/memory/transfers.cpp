// SPDX-License-Identifier: BSD-3-Clause
// src/memory/transfers.cpp: what a copy waits for, what waits for it, and what its end changes.
#include "memory/transfers.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <limits>
#include <utility>

namespace quadriga {

Transfers::Transfers(Instructions& instructions, const Machine& machine,
                     std::span<const SpaceResources> spaces, Replicas& replicas)
    : instructions_(instructions),
      replicas_(replicas),
      times_(machine),
      spaces_(static_cast<std::size_t>(machine.spaces())) {
  for (SpaceId space = 0; space < spaces_.size(); ++space)
    if (spaces[space].device != no_device) open(space, spaces[space], machine);
}

void Transfers::open(SpaceId id, const SpaceResources& resources, const Machine& machine) {
  Space& space = spaces_[id];
  const auto open_stream = [&](Stream& stream, StreamId number) {
    stream.id = number;
    if (streams_.size() <= number) streams_.resize(number + 1, nullptr);
    streams_[number] = &stream;
  };
  open_stream(space.in, resources.in);
  open_stream(space.out, resources.out);
  space.peers.resize(spaces_.size());
  for (SpaceId from = 1; from < space.peers.size(); ++from)
    if (machine.route(from, id)) open_stream(space.peers[from], resources.peers[from]);
}

Transfers::Stream& Transfers::stream_for(SpaceId from, SpaceId to) {
  if (to == host_space) return spaces_[from].out;
  return from == host_space ? spaces_[to].in : spaces_[to].peers[from];
}

SpaceId Transfers::source_for(TileId tile, SpaceId to) const {
  const Directory& directory = replicas_.directory();
  SpaceId sources[Directory::max_spaces];
  const std::size_t count = directory.sources(tile, to, sources);
  SpaceId best = no_space;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    double needed = seconds(sources[i], to, replicas_.bytes(tile));
    if (!directory.arrived(tile, sources[i])) needed *= 2;  // it must get there first
    if (needed < least) {
      least = needed;
      best = sources[i];
    }
  }
  return best;
}

SpaceId Transfers::relay_for(TileId tile, SpaceId from, SpaceId to) const {
  const Directory& directory = replicas_.directory();
  const bool is_load = from == host_space;
  const std::size_t bytes = replicas_.bytes(tile);
  const auto queued = [&](SpaceId device) {
    return is_load ? spaces_[device].in.bytes : spaces_[device].out.bytes;
  };
  const auto by_way_of = [&](SpaceId via, std::size_t before) {
    return seconds(from, via, bytes + (is_load ? before : 0)) +
           seconds(via, to, bytes + (is_load ? 0 : before));
  };
  const double alone = seconds(from, to, bytes);
  double least = seconds(from, to, bytes + queued(is_load ? to : from));
  SpaceId best = no_space;
  for (SpaceId via = 1; via < replicas_.spaces(); ++via) {
    if (via == from || via == to || via == directory.home(tile) || probing(via)) continue;
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
    return seconds(from, host_space, spaces_[from].out.bytes + replicas_.bytes(tile));
  };
  SpaceId best = owner;
  for (SpaceId space = 1; space < replicas_.spaces(); ++space)
    if (directory.valid(tile, space) && directory.arrived(tile, space) && confirmed(tile, space) &&
        !probing(space) && end(space) < end(best))
      best = space;
  return best;
}

bool Transfers::sends_enough(SpaceId space) const noexcept {
  constexpr std::size_t least = 2;             // one that moves, and one behind it
  constexpr double longest_reaction = 300e-6;  // of whoever queues the next
  const Space& from = spaces_[space];
  return from.out.records.size() >= least &&
         seconds(space, host_space, from.out.bytes) > longest_reaction;
}

double Transfers::fetch_seconds(TileId tile, SpaceId to) const {
  if (replicas_.directory().valid(tile, to)) return 0;
  const std::size_t bytes = replicas_.bytes(tile);
  const SpaceId from = source_for(tile, to);
  if (from != no_space) return seconds(from, to, bytes);
  const SpaceId owner = replicas_.directory().owner(tile);
  if (owner == no_space) return 0;
  return seconds(owner, host_space, bytes) + seconds(host_space, to, bytes);
}

Copy Transfers::describe(TileId tile, SpaceId from, SpaceId to) const {
  const TileInfo& info = replicas_.info(tile);
  Copy copy;
  copy.from = from;
  copy.to = to;
  copy.source = replicas_.address(tile, from);
  copy.target = replicas_.address(tile, to);
  copy.source_pitch = replicas_.pitch(tile, from);
  copy.target_pitch = replicas_.pitch(tile, to);
  copy.width_bytes = info.width_bytes;
  copy.height = info.columns;
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

/// Invariant 3: what overwrites home can't be taken back.
void Transfers::expect_certain(TileId tile, SpaceId from, SpaceId to) const {
  if (replicas_.at_home(tile, to) && replicas_.at(tile, from).unconfirmed)
    fail(Errc::internal,
         fmt::format("tile {} is written home from space {} to space {} before the task that wrote "
                     "it has ended",
                     tile, from, to));
}

void Transfers::queue(TileId tile, SpaceId from, SpaceId to, Reason reason) {
  Directory& directory = replicas_.directory();
  expect_certain(tile, from, to);
  Stream& stream = stream_for(from, to);
  Replica& source = replicas_.at(tile, from);
  Replica& target = replicas_.at(tile, to);
  instructions_.wait(stream.id, source.ready);
  instructions_.wait(stream.id, target.ready);
  for (const Event read : target.reads) instructions_.wait(stream.id, read);
  const Event arrival = directory.arrived(tile, from) ? Event{} : source.ready;
  const Event event = instructions_.copy(stream.id, describe(tile, from, to));
  directory.copy_issued(tile, from, to);
  source.reads.push_back(event);
  target.ready = event;
  target.reads.clear();
  target.unconfirmed = to != host_space && to != directory.home(tile) && source.unconfirmed;
  replicas_.touch(tile, to);
  stream.records.push_back({{tile, from, to, reason, nullptr}, arrival});
  ++in_flight_;
  stream.bytes += replicas_.bytes(tile);
  if (reason == Reason::evict) spaces_[from].leaving_bytes += replicas_.block_bytes(tile, from);
}

void Transfers::probe(SpaceId space) {
  Stream& out = spaces_[space].out;
  Copy copy;
  copy.from = space;
  copy.to = host_space;
  instructions_.copy(out.id, copy);
  out.records.push_back({{no_tile, space, host_space, Reason::stage, nullptr}, {}});
  ++spaces_[space].probes;
  ++in_flight_;
}

/// What was forwarded from a replica that never arrived is as wrong.
void Transfers::fail_forwarded(TileId tile, Event event, const std::exception_ptr& error) {
  for (Stream* const stream : streams_) {
    if (!stream) continue;
    for (Record& record : stream->records)
      if (record.transfer.tile == tile && record.after == event) record.transfer.error = error;
  }
}

std::optional<Transfer> Transfers::ended(const Completion& completion) {
  const Event event = completion.event;
  Stream* const stream = event.stream < streams_.size() ? streams_[event.stream] : nullptr;
  if (!stream) return {};
  instructions_.ended(event);
  Transfer transfer = std::move(stream->records.front().transfer);
  stream->records.pop_front();
  --in_flight_;
  if (completion.error) transfer.error = completion.error;
  const auto& [tile, from, to, reason, error] = transfer;
  if (tile == no_tile) {
    --spaces_[from].probes;
    return transfer;
  }
  if (error) fail_forwarded(tile, event, error);
  stream->bytes -= replicas_.bytes(tile);
  if (reason == Reason::evict) spaces_[from].leaving_bytes -= replicas_.block_bytes(tile, from);
  std::erase(replicas_.at(tile, from).reads, event);
  replicas_.directory().copy_ended(tile, from, to, !error);
  return transfer;
}

void Transfers::wait_for(StreamId stream, TileId tile, SpaceId space, Access access) {
  const Replica& replica = replicas_.at(tile, space);
  instructions_.wait(stream, replica.ready);
  if (writes(access))
    for (const Event read : replica.reads) instructions_.wait(stream, read);
}

void Transfers::used(TileId tile, SpaceId space, Access access, Event done) {
  Replica& replica = replicas_.at(tile, space);
  if (writes(access)) {
    replicas_.directory().write_issued(tile, space);
    replica.ready = done;
    replica.reads.clear();
    replica.unconfirmed = true;
    return;
  }
  for (Event& read : replica.reads)
    if (read.stream == done.stream) {
      read = done;
      return;
    }
  replica.reads.push_back(done);
}

void Transfers::confirm(TileId tile) {
  for (SpaceId space = 0; space < replicas_.spaces(); ++space)
    replicas_.at(tile, space).unconfirmed = false;
}

}  // namespace quadriga
