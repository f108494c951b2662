// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/dispatch.cpp: chunks to devices, by limits and order rules.
#include "pipeline/dispatch.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace quadriga {
Dispatch::Dispatch(std::vector<StreamDevice> devices, StreamLimits limits, Order order)
    : limits_(std::move(limits)), order_(order), copies_(limits_.links.size()) {
  require(!devices.empty(), "a stream needs a device");
  for (StreamDevice& each : devices) {
    require(each.most_chunks > 0, "a device's limit of chunks must be at least 1");
    const Arena arena(std::max(each.arena_bytes, each.memory_bytes));
    devices_.push_back({.device = std::move(each), .arena = arena, .computed = {}});
  }
  set_limits(limits_.links, limits_.all);
}

void Dispatch::set_limits(std::vector<int> links, int all) {
  require(links.size() == copies_.size(), "set_limits(): one limit for each link");
  require(std::ranges::all_of(links, [](int each) { return each > 0; }) && all > 0,
          "set_limits(): limits must be at least 1");
  limits_ = {std::move(links), all};
}

std::size_t Dispatch::largest_memory() const {
  std::size_t largest = 0;
  for (const Holder& each : devices_)
    if (!each.is_lost) largest = std::max(largest, each.device.memory_bytes);
  return largest;
}

std::vector<std::uint32_t> Dispatch::lose(std::uint16_t device) {
  const auto left = std::ranges::count(devices_, false, &Holder::is_lost);
  std::vector<std::uint32_t> homeless;
  if (devices_[device].is_lost || left == 1) return homeless;
  devices_[device].is_lost = true;
  const std::size_t largest = largest_memory();
  std::ranges::copy_if(waiting_, std::back_inserter(homeless),
                       [&](std::uint32_t chunk) { return slots_[chunk].chunk.bytes > largest; });
  return homeless;
}

std::uint32_t Dispatch::add(const StreamChunk& chunk) {
  const std::size_t largest = largest_memory();
  if (chunk.bytes > largest)
    fail(Errc::too_large,
         "chunk " + std::to_string(chunk.number) + " needs " + std::to_string(chunk.bytes) +
             " bytes on a device, and the stream "
             "may use " +
             std::to_string(largest) + " (memory); make chunks smaller, or state more");
  std::uint32_t index;
  if (free_.empty()) {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  slots_[index] = {chunk, State::waiting, 0, {}};
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const StreamChunk& x = slots_[a].chunk;
    const StreamChunk& y = slots_[b].chunk;
    return x.size != y.size ? x.size < y.size : x.number > y.number;
  };
  waiting_.insert(std::ranges::lower_bound(waiting_, index, before), index);
  return index;
}

bool Dispatch::can_copy(const Holder& holder, const std::vector<int>& links) const {
  if (holder.heading + holder.leaving >= holder.device.copy_engines) return false;
  return std::ranges::all_of(links, [&](int link) {
    return copies_[static_cast<std::size_t>(link)] < limits_.links[static_cast<std::size_t>(link)];
  });
}

bool Dispatch::has_place(const Holder& holder, const StreamChunk& chunk) {
  if (chunk.bytes > holder.device.memory_bytes - holder.bytes) return false;
  if (chunk.blocks.empty() || chunk.bytes <= holder.arena.largest_free()) return true;
  Arena tried = holder.arena;
  return std::ranges::all_of(chunk.blocks,
                             [&](std::size_t bytes) { return tried.allocate(bytes).has_value(); });
}

/// Chunks whose kernels are to come, with one that enters.
int Dispatch::most_to_compute(const Holder& holder) {
  if (holder.device.links_in.empty()) return std::numeric_limits<int>::max();
  const bool has_computed = holder.entered > static_cast<std::uint64_t>(holder.to_compute);
  return has_computed ? 2 : 3;
}

bool Dispatch::can_enter(const Holder& holder) const {
  return !holder.is_lost && holder.chunks < holder.device.most_chunks && holder.heading == 0 &&
         holder.to_compute < most_to_compute(holder) && can_copy(holder, holder.device.links_in);
}

std::optional<StreamCommand> Dispatch::next() {
  std::optional<std::uint16_t> device;
  if (!waiting_.empty() && static_cast<int>(on_devices_) < limits_.all) device = next_device();
  if (!device) return next_tail();
  if (is_last_for(devices_[*device]))
    if (const auto command = next_tail()) return command;
  return next_head(*device);
}

/// The one with the least to do of those that may get a chunk that waits.
std::optional<std::uint16_t> Dispatch::next_device() const {
  std::optional<std::uint16_t> best;
  double least = 0;
  for (std::uint16_t d = 0; d < devices_.size(); ++d) {
    const Holder& holder = devices_[d];
    if (!can_enter(holder)) continue;
    const double to_do = holder.work / holder.device.speed;
    if (best && to_do >= least) continue;
    if (!choose(holder)) continue;
    best = d;
    least = to_do;
  }
  return best;
}

/// Whether no device gets more than one chunk any more, and this one has something to do meanwhile.
bool Dispatch::is_last_for(const Holder& holder) const {
  return closed_ && waiting_.size() <= devices_.size() && holder.to_compute > 0;
}

StreamCommand Dispatch::next_head(std::uint16_t device) {
  const std::size_t place = *choose(devices_[device]);
  const std::uint32_t chunk = waiting_[place];
  enter(place, device);
  return {StreamCommand::Kind::enter, chunk, device};
}

/// Of those behind the ones that are kept for the end, which begin a device's work.
std::size_t Dispatch::small_rank(const Holder&) const {
  const std::size_t kept = closed_ ? devices_.size() : 0;
  return waiting_.size() > kept * (small_first + 1) ? kept : 0;
}

/// The place in `waiting_` of the chunk that the device gets next, if one fits its memory.
std::optional<std::size_t> Dispatch::choose(const Holder& holder) const {
  const auto fits = [&](std::size_t place) {
    return has_place(holder, slots_[waiting_[place]].chunk);
  };
  const std::size_t count = waiting_.size();
  if (order_ == Order::first_come) {
    std::optional<std::size_t> oldest;
    for (std::size_t i = 0; i < count; ++i)
      if (fits(i) &&
          (!oldest || slots_[waiting_[i]].chunk.number < slots_[waiting_[*oldest]].chunk.number))
        oldest = i;
    return oldest;
  }
  const bool begins = order_ == Order::adaptive && holder.entered < small_first;
  if (order_ == Order::smallest || begins) {
    const std::size_t first = begins ? small_rank(holder) : 0;
    for (std::size_t i = first; i < count; ++i)
      if (fits(i)) return i;
    for (std::size_t i = first; i-- > 0;)
      if (fits(i)) return i;
    return std::nullopt;
  }
  std::optional<std::size_t> smallest;
  for (std::size_t i = count; i-- > 0;) {
    if (!fits(i)) continue;
    if (comes_in_time(holder, slots_[waiting_[i]].chunk)) return i;
    smallest = i;
  }
  return smallest;
}

/// A chunk that is too large now may come behind a larger one later, but not if it is kept for the
/// end: once all chunks are known the largest is first.
bool Dispatch::comes_in_time(const Holder& holder, const StreamChunk& chunk) const {
  return order_ != Order::adaptive || closed_ || comes_in_order_ || chunk.head <= holder.work;
}

void Dispatch::enter(std::size_t place, std::uint16_t device) {
  const std::uint32_t chunk = waiting_[place];
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
  Slot& slot = slots_[chunk];
  Holder& holder = devices_[device];
  slot.device = device;
  ++on_devices_;
  ++holder.chunks;
  ++holder.entered;
  ++holder.to_compute;
  holder.work += slot.chunk.size;
  holder.bytes += slot.chunk.bytes;
  for (const std::size_t bytes : slot.chunk.blocks)
    slot.offsets.push_back(*holder.arena.allocate(bytes));
  if (!slot.chunk.has_head) {
    slot.state = State::staged;
    return;
  }
  slot.state = State::heading;
  ++holder.heading;
  for (const int link : holder.device.links_in) ++copies_[static_cast<std::size_t>(link)];
}

void Dispatch::release_links(const std::vector<int>& links) {
  for (const int link : links) --copies_[static_cast<std::size_t>(link)];
}

void Dispatch::drop_head(Holder& holder) {
  --holder.heading;
  release_links(holder.device.links_in);
}

void Dispatch::staged(std::uint32_t chunk) {
  Slot& slot = slots_[chunk];
  if (slot.state != State::heading) return;
  slot.state = State::staged;
  drop_head(devices_[slot.device]);
}

void Dispatch::computed(std::uint32_t chunk) {
  staged(chunk);  // its kernels needed all of it
  Slot& slot = slots_[chunk];
  if (slot.state != State::staged) return;
  Holder& holder = devices_[slot.device];
  slot.state = State::computed;
  --holder.to_compute;
  holder.work -= slot.chunk.size;
  holder.computed.push_back(chunk);
}

std::optional<StreamCommand> Dispatch::next_tail() {
  for (std::uint16_t d = 0; d < devices_.size(); ++d) {
    Holder& holder = devices_[d];
    if (holder.computed.empty() || holder.leaving > 0) continue;
    const std::uint32_t chunk = holder.computed.front();
    Slot& slot = slots_[chunk];
    if (slot.chunk.has_tail && !can_copy(holder, holder.device.links_out)) continue;
    holder.computed.erase(holder.computed.begin());
    slot.state = State::leaving;
    if (slot.chunk.has_tail) {
      ++holder.leaving;
      for (const int link : holder.device.links_out) ++copies_[static_cast<std::size_t>(link)];
    }
    return StreamCommand{StreamCommand::Kind::leave, chunk, d};
  }
  return std::nullopt;
}

void Dispatch::gone(std::uint32_t chunk) {
  Slot& slot = slots_[chunk];
  Holder& holder = devices_[slot.device];
  if (slot.state == State::waiting) {
    std::erase(waiting_, chunk);
  } else {
    if (slot.state == State::heading) drop_head(holder);
    if (slot.state == State::heading || slot.state == State::staged) {
      --holder.to_compute;
      holder.work -= slot.chunk.size;
    }
    if (slot.state == State::computed) std::erase(holder.computed, chunk);
    if (slot.state == State::leaving && slot.chunk.has_tail) {
      --holder.leaving;
      release_links(holder.device.links_out);
    }
    --holder.chunks;
    --on_devices_;
    holder.bytes -= slot.chunk.bytes;
    for (const std::size_t offset : slot.offsets) holder.arena.deallocate(offset);
    if (holder.to_compute == 0) holder.work = 0;
  }
  slot.state = State::none;
  free_.push_back(chunk);
}

void Dispatch::validate() const {
  const auto check = [](bool holds, const char* what) {
    if (!holds) fail(Errc::internal, fmt::format("dispatch: {}", what));
  };
  std::vector<int> copies(copies_.size());
  std::vector<int> chunks(devices_.size());
  std::vector<std::size_t> bytes(devices_.size());
  for (const Slot& slot : slots_) {
    if (slot.state == State::none || slot.state == State::waiting) continue;
    const StreamDevice& device = devices_[slot.device].device;
    ++chunks[slot.device];
    bytes[slot.device] += slot.chunk.bytes;
    const bool copies_in = slot.state == State::heading;
    const bool copies_out = slot.state == State::leaving && slot.chunk.has_tail;
    if (copies_in)
      for (const int link : device.links_in) ++copies[static_cast<std::size_t>(link)];
    if (copies_out)
      for (const int link : device.links_out) ++copies[static_cast<std::size_t>(link)];
  }
  check(copies == copies_, "copies on links are miscounted");
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Holder& holder = devices_[d];
    check(chunks[d] == holder.chunks, "a device's chunks are miscounted");
    check(bytes[d] == holder.bytes, "a device's bytes are miscounted");
    check(holder.chunks <= holder.device.most_chunks, "a device has too many chunks");
    check(bytes[d] <= holder.device.memory_bytes, "a device's memory is exceeded");
    check(holder.heading <= 1 && holder.leaving <= 1, "two copies in one direction");
    check(holder.heading + holder.leaving <= holder.device.copy_engines, "too many copies");
  }
}

}  // namespace quadriga
