// SPDX-License-Identifier: BSD-3-Clause
// src/memory/memory.cpp: staging: reserve, copy, pin; and what completions of copies change.
#include "memory/memory.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace quadriga {
namespace {

/// What counts as reading here: a partial sum is added to, so its content must be there.
constexpr bool needs_content(Access access) noexcept { return access != Access::write; }

}  // namespace

Memory::Memory(Instructions& instructions, const Machine& machine,
               std::span<const SpaceResources> spaces, MemoryListener& listener,
               const MemoryOptions& options)
    : instructions_(instructions),
      machine_(machine),
      times_(machine),
      listener_(listener),
      directory_(machine.spaces()),
      rule_(options.rule ? *options.rule : farthest_use_),
      spill_(options.spill_bytes, options.spill_file),
      spaces_(static_cast<std::size_t>(machine.spaces())) {
  for (SpaceId space = 0; space < spaces_.size(); ++space)
    if (spaces[space].device != no_device) open_space(space, spaces[space]);
}

void Memory::open_space(SpaceId id, const SpaceResources& resources) {
  Space& space = spaces_[id];
  space.device = resources.device;
  space.base = resources.base;
  space.arena.emplace(resources.bytes);
  const auto open_stream = [&](CopyStream& stream, StreamId number) {
    stream.id = number;
    if (streams_.size() <= number) streams_.resize(number + 1, nullptr);
    streams_[number] = &stream;
  };
  open_stream(space.in, resources.in);
  open_stream(space.out, resources.out);
  space.peers.resize(spaces_.size());
  for (SpaceId from = 1; from < space.peers.size(); ++from)
    if (machine_.route(from, id)) open_stream(space.peers[from], resources.peers[from]);
}

TileId Memory::add(const TileInfo& info) {
  // There is nothing to write in an empty tile.
  const bool is_empty = info.width_bytes * info.columns == 0;
  const TileId tile = directory_.add(info.home != nullptr || is_empty, info.home_space);
  if (tile >= infos_.size()) {
    infos_.resize(tile + 1);
    places_.resize((tile + 1) * spaces_.size());
    resident_index_.resize((tile + 1) * spaces_.size());
  }
  infos_[tile] = info;
  for (SpaceId space = 0; space < spaces_.size(); ++space) place(tile, space) = Place{};
  return tile;
}

void Memory::remove(TileId tile) {
  directory_.lost(tile);  // nobody needs the content: a replica that is dirty may go too
  for (SpaceId space = 0; space < spaces_.size(); ++space)
    if (has_block(tile, space)) give_up(tile, space);
  directory_.remove(tile);
}

std::size_t Memory::capacity(SpaceId space) const noexcept {
  return space == host_space ? spill_.limit() : spaces_[space].arena->capacity();
}

std::size_t Memory::rounded(std::size_t bytes, SpaceId space) const noexcept {
  return space == host_space ? Spill::rounded(bytes) : spaces_[space].arena->rounded(bytes);
}

std::byte* Memory::address(TileId tile, SpaceId space) const {
  return at_home(tile, space) ? infos_[tile].home : place(tile, space).block;
}

std::size_t Memory::pitch(TileId tile, SpaceId space) const {
  return at_home(tile, space) ? infos_[tile].pitch : infos_[tile].width_bytes;
}

SpaceId Memory::source_for(TileId tile, SpaceId to) const {
  SpaceId sources[Directory::max_spaces];
  const std::size_t count = directory_.sources(tile, to, sources);
  SpaceId best = no_space;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < count; ++i) {
    double seconds = times_.seconds(sources[i], to, static_cast<double>(bytes(tile)));
    if (!directory_.arrived(tile, sources[i])) seconds *= 2;  // it must get there first
    if (seconds < least) {
      least = seconds;
      best = sources[i];
    }
  }
  return best;
}

double Memory::fetch_seconds(TileId tile, SpaceId to) const {
  if (directory_.valid(tile, to)) return 0;
  const auto size = static_cast<double>(bytes(tile));
  const SpaceId from = source_for(tile, to);
  if (from != no_space) return times_.seconds(from, to, size);
  const SpaceId owner = directory_.owner(tile);
  if (owner == no_space) return 0;
  return times_.seconds(owner, host_space, size) + times_.seconds(host_space, to, size);
}

Outcome Memory::find_source(TileId tile, SpaceId to, SpaceId& from) {
  if (!directory_.written(tile)) return Outcome::unwritten;
  from = source_for(tile, to);
  // Where no link joins the two devices.
  const bool is_by_host = from == no_space && to != host_space;
  const SpaceId first = is_by_host ? source_for(tile, host_space) : from;
  // Home is overwritten only once the content is certain, and so is the host's memory.
  const bool is_careful = is_by_host || to == host_space || to == directory_.home(tile);
  if (first == no_space || (is_careful && place(tile, first).unconfirmed))
    return Outcome::no_source;
  if (is_by_host && has_host_memory(tile)) {
    queue_copy(tile, first, host_space, Reason::stage);
    from = host_space;
  }
  return Outcome::done;
}

bool Memory::allocate(TileId tile, SpaceId space) {
  Space& there = spaces_[space];
  const auto offset = there.arena->allocate(std::max<std::size_t>(bytes(tile), 1));
  if (!offset) return false;
  there.most_bytes = std::max(there.most_bytes, there.arena->used());
  Place& replica = place(tile, space);
  replica = Place{};
  replica.block = there.base + *offset;
  note_resident(tile, space);
  return true;
}

void Memory::note_resident(TileId tile, SpaceId space) {
  std::vector<TileId>& residents = spaces_[space].residents;
  resident_index(tile, space) = static_cast<std::uint32_t>(residents.size());
  residents.push_back(tile);
}

void Memory::give_up(TileId tile, SpaceId space) {
  Space& there = spaces_[space];
  if (space != host_space) listener_.departed(tile, space);
  if (directory_.valid(tile, space)) directory_.dropped(tile, space);
  const std::uint32_t at = resident_index(tile, space);
  const TileId last = there.residents.back();
  there.residents[at] = last;
  resident_index(last, space) = at;
  there.residents.pop_back();
  Place& replica = place(tile, space);
  if (space == host_space) {
    spill_.deallocate(replica.block, bytes(tile));
    replica = Place{};
    return;
  }
  listener_.freed(space, replica.block, bytes(tile));
  there.arena->deallocate(static_cast<std::size_t>(replica.block - there.base));
  replica.block = nullptr;
}

void Memory::drop_if_unused(TileId tile, SpaceId space) {
  if (directory_.valid(tile, space) || directory_.pins(tile, space) > 0 ||
      directory_.in_flight(tile, space))
    return;
  if (has_block(tile, space)) give_up(tile, space);
}

void Memory::discard(TileId tile) {
  directory_.lost(tile);
  for (SpaceId space = 0; space < spaces_.size(); ++space) drop_if_unused(tile, space);
}

Memory::CopyStream& Memory::stream_for(SpaceId from, SpaceId to) {
  if (to == host_space) return spaces_[from].out;
  return from == host_space ? spaces_[to].in : spaces_[to].peers[from];
}

void Memory::queue_copy(TileId tile, SpaceId from, SpaceId to, Reason reason) {
  CopyStream& stream = stream_for(from, to);
  Place& source = place(tile, from);
  Place& target = place(tile, to);
  instructions_.wait(stream.id, source.ready);
  instructions_.wait(stream.id, target.ready);
  for (Event read : target.reads) instructions_.wait(stream.id, read);
  const TileInfo& info = infos_[tile];
  Copy copy;
  copy.from = from;
  copy.to = to;
  copy.source = address(tile, from);
  copy.target = address(tile, to);
  copy.source_pitch = pitch(tile, from);
  copy.target_pitch = pitch(tile, to);
  copy.width_bytes = info.width_bytes;
  copy.height = info.columns;
  if (copy.source_pitch == info.width_bytes && copy.target_pitch == info.width_bytes) {
    copy.width_bytes *= copy.height;
    copy.height = 1;
  }
  const Event arrival = directory_.arrived(tile, from) ? Event{} : source.ready;
  const Event event = instructions_.copy(stream.id, copy);
  directory_.copy_issued(tile, from, to);
  source.reads.push_back(event);
  target.ready = event;
  target.reads.clear();
  target.unconfirmed = to != host_space && to != directory_.home(tile) && source.unconfirmed;
  target.last_use = ++clock_;
  stream.records.push_back({event.ticket, tile, from, to, reason, arrival, nullptr});
  ++in_flight_;
  if (from == host_space) spaces_[to].incoming_bytes += bytes(tile);
  if (reason == Reason::evict) spaces_[from].leaving_bytes += bytes(tile);
}

Outcome Memory::bring(std::span<const Need> needs, SpaceId space) {
  for (const Need& need : needs) {
    SpaceId from = no_space;
    if (directory_.home_lost(need.tile)) return Outcome::home_lost;
    if (!needs_content(need.access) || directory_.valid(need.tile, space)) continue;
    if (const Outcome outcome = find_source(need.tile, space, from); outcome != Outcome::done)
      return outcome;
  }
  if (space == host_space && !take_host_memory(needs)) return Outcome::no_buffer;
  for (const Need& need : needs) directory_.pin(need.tile, space);
  Outcome outcome = space == host_space ? Outcome::done : reserve(needs, space);
  const bool lacks_buffer = outcome == Outcome::no_buffer;
  if (outcome == Outcome::done || lacks_buffer) outcome = fetch(needs, space);
  if (lacks_buffer) outcome = Outcome::no_buffer;
  if (outcome != Outcome::done)
    for (const Need& need : needs) unpin(need.tile, space);
  return outcome;
}

/// Blocks on a device for all that isn't at home there.
Outcome Memory::reserve(std::span<const Need> needs, SpaceId space) {
  for (const Need& need : needs)
    while (!has_memory(need.tile, space) && !allocate(need.tile, space))
      if (const Outcome outcome = make_room(bytes(need.tile), space); outcome != Outcome::done)
        return outcome;
  return Outcome::done;
}

/// Queues the copies that are missing, where there is a block for them. What finds no buffer on its
/// way by the host comes later: when others have passed, which stay where they are.
Outcome Memory::fetch(std::span<const Need> needs, SpaceId space) {
  Outcome outcome = Outcome::done;
  for (const Need& need : needs) {
    const TileId tile = need.tile;
    if (space != host_space && !has_memory(tile, space)) continue;
    place(tile, space).last_use = ++clock_;
    if (!needs_content(need.access) || directory_.valid(tile, space)) continue;
    if (source_for(tile, space) == no_space) {
      if (!take_host_memory({&need, 1})) {
        outcome = Outcome::no_buffer;
        continue;
      }
      queue_copy(tile, source_for(tile, host_space), host_space, Reason::stage);
    }
    queue_copy(tile, source_for(tile, space), space, Reason::stage);
  }
  return outcome;
}

Outcome Memory::prefetch(TileId tile, SpaceId space, std::uint64_t position,
                         std::span<const TileId> victims) {
  SpaceId from = no_space;
  if (const Outcome outcome = find_source(tile, space, from); outcome != Outcome::done)
    return outcome;
  // It would fail again and again until it is known which of them is gone.
  if (from == no_space || spaces_[from].probes > 0 || spaces_[space].probes > 0)
    return Outcome::no_source;
  if (!has_memory(tile, space) && !allocate(tile, space)) {
    bool all_gone = true;
    for (const TileId victim : victims) all_gone &= leaves_before(victim, space, position);
    if (!all_gone || !allocate(tile, space)) return Outcome::no_room;
  }
  if (!directory_.valid(tile, space))
    queue_copy(tile, source_for(tile, space), space, Reason::prefetch);
  return Outcome::done;
}

void Memory::wait_for(StreamId stream, TileId tile, SpaceId space, Access access) {
  Place& replica = place(tile, space);
  instructions_.wait(stream, replica.ready);
  if (writes(access))
    for (Event read : replica.reads) instructions_.wait(stream, read);
}

void Memory::used(TileId tile, SpaceId space, Access access, Event done) {
  Place& replica = place(tile, space);
  if (writes(access)) {
    directory_.write_issued(tile, space);
    replica.ready = done;
    replica.reads.clear();
    replica.unconfirmed = true;
    for (SpaceId other = 0; other < spaces_.size(); ++other)
      if (other != space) drop_if_unused(tile, other);
    return;
  }
  for (Event& read : replica.reads)
    if (read.stream == done.stream) {
      read = done;
      return;
    }
  replica.reads.push_back(done);
}

void Memory::unpin(TileId tile, SpaceId space) {
  directory_.unpin(tile, space);
  drop_if_unused(tile, space);
  if (space == host_space) drop_if_passed(tile);
}

bool Memory::write_back(TileId tile, Reason reason) {
  SpaceId owner = directory_.owner(tile);
  const SpaceId home = directory_.home(tile);
  if (owner == no_space) return true;
  if (spaces_[owner].probes > 0 || spaces_[home].probes > 0) return true;
  if (needs_host(tile, owner)) {
    if (!has_host_memory(tile)) return false;
    if (!directory_.valid(tile, host_space)) queue_copy(tile, owner, host_space, reason);
    owner = host_space;
  }
  if (home != host_space) queue_copy(tile, owner, home, reason);
  return true;
}

Memory::CopyStream* Memory::find_stream(StreamId stream) {
  return stream < streams_.size() ? streams_[stream] : nullptr;
}

/// What was forwarded from a replica that never arrived is as wrong.
void Memory::fail_forwarded(TileId tile, Event event, const std::exception_ptr& error) {
  for (CopyStream* const stream : streams_) {
    if (!stream) continue;
    for (CopyRecord& record : stream->records)
      if (record.tile == tile && record.after == event) record.error = error;
  }
}

bool Memory::completed(const Completion& delivered) {
  CopyStream* const stream = find_stream(delivered.event.stream);
  if (!stream) return false;
  instructions_.ended(delivered.event);
  const CopyRecord record = stream->records.front();
  stream->records.pop_front();
  if (record.tile == no_tile) {
    --in_flight_;
    --spaces_[record.from].probes;
    listener_.probed(record.from, delivered);
    return true;
  }
  Completion completion = delivered;
  if (!completion.error) completion.error = record.error;
  if (completion.error) fail_forwarded(record.tile, completion.event, completion.error);
  --in_flight_;
  if (record.from == host_space) spaces_[record.to].incoming_bytes -= bytes(record.tile);
  if (record.reason == Reason::evict) spaces_[record.from].leaving_bytes -= bytes(record.tile);
  Place& source = place(record.tile, record.from);
  std::erase(source.reads, completion.event);
  directory_.copy_ended(record.tile, record.from, record.to, !completion.error);
  const std::size_t size = bytes(record.tile);
  drop_if_unused(record.tile, record.from);
  drop_if_unused(record.tile, record.to);
  if (record.from == host_space) drop_if_passed(record.tile);
  const bool moves = record.reason == Reason::evict && record.to == host_space &&
                     has_block(record.tile, host_space) && buffers_are_scarce();
  if (moves && drop_if_held(record.tile, record.from)) listener_.evicted(record.tile, record.from);
  listener_.copy_ended(completion.event.stream, record.reason, record.tile, record.from, record.to,
                       size, completion);
  return true;
}

}  // namespace quadriga
