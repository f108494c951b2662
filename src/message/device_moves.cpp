// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_moves.cpp: blocks that are filled and emptied in turn, and segments.
#include "message/device_moves.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>
#include <utility>

namespace quadriga::message {
namespace {

constexpr std::size_t block_bytes = PortBlocks::block_bytes;

[[noreturn]] void fail_without_memory(DeviceId device) {
  fail(Errc::too_large,
       fmt::format("device {} has no {} bytes left for packing a message", device, block_bytes));
}

}  // namespace

std::byte* DevicePlace::flat() const noexcept {
  const Canonical& form = layout.form();
  return form.leaf == Leaf::run && form.strides.empty() ? data + form.origin : nullptr;
}

DevicePlace place_on_device(const MessageBuffer& buffer) {
  return {buffer.port, buffer.device, buffer.port->space(buffer.device), buffer.layout,
          buffer.data};
}

SpaceId space_reached_by(const DevicePort& port, DeviceId device, DeviceId own) {
  if (port.is_cuda() || device >= port.machine().devices.size()) return port.space(own);
  const SpaceId space = port.space(device);
  return port.machine().route(space, port.space(own)) ? space : port.space(own);
}

void read_all(const MessageBuffer& from, std::span<std::byte> into) {
  DeviceReader reader(place_on_device(from), into.size());
  for (std::size_t offset = 0; offset < into.size();) {
    const std::span<const std::byte> some = reader.at(offset);
    std::ranges::copy(some, into.begin() + static_cast<std::ptrdiff_t>(offset));
    offset += some.size();
    if (some.empty()) std::this_thread::yield();
  }
}

void write_all(const MessageBuffer& to, std::span<const std::byte> from) {
  DeviceWriter writer(place_on_device(to), from.size());
  while (!from.empty()) {
    const std::size_t bytes = std::min(from.size(), writer.room().size());
    if (bytes == 0) {
      std::this_thread::yield();
      continue;
    }
    writer.write(from.first(bytes));
    from = from.subspan(bytes);
  }
  while (!writer.has_ended()) std::this_thread::yield();
}

DeviceBlocks::DeviceBlocks(DevicePlace place, std::size_t bytes)
    : place_(std::move(place)), bytes_(bytes) {}

DeviceBlocks::~DeviceBlocks() {
  for (Block& each : blocks_) {
    if (!each.has_ended) place_.port->operations().finish(each.ticket);
    place_.port->blocks().give_host(each.host);
    place_.port->blocks().give(place_.device, each.device);
  }
}

void DeviceBlocks::take(Block& block) {
  if (!block.host) block.host = place_.port->blocks().take_host();
  if (!block.host) fail(Errc::too_large, "no host memory left for a message's blocks");
  if (place_.flat() || block.device) return;
  block.device = place_.port->blocks().take(place_.device);
  if (!block.device) fail_without_memory(place_.device);
}

DeviceReader::DeviceReader(DevicePlace from, std::size_t bytes)
    : DeviceBlocks(std::move(from), bytes) {}

void DeviceReader::queue(Block& block) {
  take(block);
  block.begin = queued_;
  block.bytes = std::min(block_bytes, bytes_ - queued_);
  block.has_ended = false;
  DevicePort& port = *place_.port;
  const std::byte* source = place_.flat();
  if (source) {
    source += block.begin;
  } else {
    port.packing().pack(place_.device, PortLane::out,
                        {place_.layout, place_.data, block.device, block.begin, block.bytes});
    source = block.device;
  }
  const SpaceId space = place_.flat() ? place_.space : port.space(place_.device);
  block.ticket = port.operations().copy(place_.device, PortLane::out,
                                        {space, host_space, source, block.host, block.bytes});
  queued_ += block.bytes;
}

std::span<const std::byte> DeviceReader::at(std::size_t offset) {
  for (Block& each : blocks_) {
    const bool is_read = each.bytes > 0 && each.has_ended && each.begin + each.bytes <= offset;
    if (is_read) each.bytes = 0;
  }
  while (queued_ < bytes_) {
    const auto free = std::ranges::find(blocks_, std::size_t{0}, &Block::bytes);
    if (free == blocks_.end()) break;
    queue(*free);
  }
  for (Block& each : blocks_) {
    if (each.bytes == 0 || offset < each.begin || offset >= each.begin + each.bytes) continue;
    if (!each.has_ended) each.has_ended = place_.port->operations().has_ended(each.ticket);
    if (!each.has_ended) return {};
    const std::size_t skipped = offset - each.begin;
    return {each.host + skipped, each.bytes - skipped};
  }
  return {};
}

void DeviceWriter::free_ended() {
  for (Block& each : blocks_) {
    if (each.bytes == 0 || !each.ticket) continue;
    if (!place_.port->operations().has_ended(each.ticket)) continue;
    each.ticket = {};
    each.bytes = 0;
  }
}

DeviceBlocks::Block* DeviceWriter::current() noexcept {
  Block& block = blocks_[static_cast<std::size_t>(at_)];
  return block.ticket ? nullptr : &block;
}

std::span<std::byte> DeviceWriter::room() {
  if (written_ == bytes_) return {};
  free_ended();
  Block* const block = current();
  if (!block) return {};
  if (block->bytes == 0) {
    take(*block);
    block->begin = written_;
    block->bytes = std::min(block_bytes, bytes_ - written_);
    filled_ = 0;
  }
  return {block->host + filled_, block->bytes - filled_};
}

void DeviceWriter::wrote(std::size_t bytes) {
  Block& block = *current();
  filled_ += bytes;
  written_ += bytes;
  if (filled_ < block.bytes) return;
  queue(block);
  at_ = 1 - at_;
}

bool DeviceWriter::write(std::span<const std::byte> from) {
  std::span<std::byte> into = room();
  if (into.empty()) return from.empty();
  const bool fits =
      into.size() >= from.size() || !blocks_[static_cast<std::size_t>(1 - at_)].ticket;
  if (!fits) return false;
  while (!from.empty()) {
    into = room();
    const std::size_t bytes = std::min(into.size(), from.size());
    std::memcpy(into.data(), from.data(), bytes);
    wrote(bytes);
    from = from.subspan(bytes);
  }
  return true;
}

void DeviceWriter::queue(Block& block) {
  DevicePort& port = *place_.port;
  std::byte* const flat = place_.flat();
  const SpaceId space = flat ? place_.space : port.space(place_.device);
  block.ticket = port.operations().copy(
      place_.device, own_lane,
      {host_space, space, block.host, flat ? flat + block.begin : block.device, block.bytes});
  if (!flat)
    block.ticket =
        port.packing().unpack(place_.device, own_lane,
                              {place_.layout, place_.data, block.device, block.begin, block.bytes});
  queued_ += block.bytes;
}

bool DeviceWriter::has_ended() {
  free_ended();
  return queued_ == bytes_ &&
         std::ranges::all_of(blocks_, [](const Block& each) { return !each.ticket; });
}

DeviceCopier::DeviceCopier(DevicePlace from, DevicePlace to, std::size_t bytes)
    : from_(std::move(from)), to_(std::move(to)), bytes_(bytes) {
  const bool is_near = from_.space == to_.space, any_flat = from_.flat() || to_.flat();
  direct_ = is_near && !any_flat &&
            moves_directly({from_.layout, from_.data, to_.layout, to_.data, 0, bytes_});
  in_blocks_ = (!direct_ && !any_flat) || (!is_near && !(from_.flat() && to_.flat()));
  const double rate = 1 / to_.port->seconds(from_.space, to_.space, std::size_t{1} << 30) *
                      static_cast<double>(std::size_t{1} << 30);
  const double most = std::clamp(rate * most_seconds, 1e6, 1e12);
  // Segments begin where the widest loads may.
  segment_ =
      in_blocks_ ? to_.port->blocks().scratch_bytes() : static_cast<std::size_t>(most) & ~4095ull;
}

DeviceCopier::~DeviceCopier() {
  for (const PortTicket each : under_way_) to_.port->operations().finish(each);
  for (std::byte* const each : blocks_) to_.port->blocks().give_scratch(to_.device, each);
}

std::byte* DeviceCopier::block(std::size_t which) {
  if (!blocks_[which]) blocks_[which] = to_.port->blocks().take_scratch(to_.device);
  if (!blocks_[which]) fail_without_memory(to_.device);
  return blocks_[which];
}

// Operations of a lane follow each other, so a block is written again once it was read.
PortTicket DeviceCopier::queue(std::size_t begin, std::size_t bytes) {
  DevicePort& port = *to_.port;
  std::byte* const source = from_.flat();
  std::byte* const target = to_.flat();
  if (source && target)
    return port.operations().copy(to_.device, own_lane,
                                  {from_.space, to_.space, source + begin, target + begin, bytes});
  if (direct_)
    return port.packing().move(to_.device, own_lane,
                               {from_.layout, from_.data, to_.layout, to_.data, begin, bytes});
  if (!in_blocks_ && target)
    return port.packing().pack(to_.device, own_lane,
                               {from_.layout, from_.data, target + begin, begin, bytes});
  if (!in_blocks_)
    return port.packing().unpack(to_.device, own_lane,
                                 {to_.layout, to_.data, source + begin, begin, bytes});
  std::byte* packed = source ? source + begin : block(0);
  PortTicket last;
  if (!source)
    last =
        port.packing().pack(to_.device, own_lane, {from_.layout, from_.data, packed, begin, bytes});
  if (from_.space != to_.space) {
    std::byte* const into = target ? target + begin : block(1);
    last =
        port.operations().copy(to_.device, own_lane, {from_.space, to_.space, packed, into, bytes});
    packed = into;
  }
  if (!target)
    last =
        port.packing().unpack(to_.device, own_lane, {to_.layout, to_.data, packed, begin, bytes});
  return last;
}

bool DeviceCopier::advance() {
  constexpr std::size_t most_under_way = 4;
  bool moved = false;
  while (!under_way_.empty() && to_.port->operations().has_ended(under_way_.front())) {
    under_way_.pop_front();
    moved = true;
  }
  while (queued_ < bytes_ && under_way_.size() < most_under_way) {
    const std::size_t bytes = std::min(segment_, bytes_ - queued_);
    under_way_.push_back(queue(queued_, bytes));
    queued_ += bytes;
    moved = true;
  }
  return moved;
}

}  // namespace quadriga::message
