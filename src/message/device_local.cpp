// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_local.cpp: copies and reductions of one rank, queued a part at a time.
#include "message/device_local.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "message/pack/stream.h"

namespace quadriga::message {
namespace {

/// From the host to a device, from there to the host, or between devices that don't reach each
/// other, by blocks of the host's memory.
class StagedMove final : public DeviceMove {
 public:
  StagedMove(const MessageBuffer& from, const MessageBuffer& to)
      : from_(from), to_(to), bytes_(from.bytes()) {
    if (from.on_device()) reader_.emplace(place_on_device(from), bytes_);
    if (to.on_device()) writer_.emplace(place_on_device(to), bytes_);
  }

  // A block at a time: others' messages have their turn between them.
  bool advance() override {
    if (moved_ == bytes_) return false;
    std::span<const std::byte> some;
    if (reader_ && (some = reader_->at(moved_)).empty()) return false;
    if (!writer_) {
      Unpacker(to_.layout, to_.data).unpack(moved_, some);
      moved_ += some.size();
      return true;
    }
    const std::span<std::byte> room = writer_->room();
    if (room.empty()) return false;
    std::size_t bytes = room.size();
    if (reader_) {
      bytes = std::min(bytes, some.size());
      std::ranges::copy(some.first(bytes), room.begin());
    } else {
      Packer(from_.layout, from_.data).pack(moved_, room);
    }
    writer_->wrote(bytes);
    moved_ += bytes;
    return true;
  }

  bool has_ended() override { return moved_ == bytes_ && (!writer_ || writer_->has_ended()); }

 private:
  const MessageBuffer from_, to_;
  const std::size_t bytes_;
  std::size_t moved_ = 0;
  std::optional<DeviceReader> reader_;
  std::optional<DeviceWriter> writer_;
};

class DeviceReduction final : public DeviceMove {
 public:
  DeviceReduction(const MessageBuffer& into, const MessageBuffer& from, const MessageBuffer& with,
                  ReduceOperation operation, ElementType type)
      : port_(into.port) {
    // One pass, by kernels alone: copies would wait behind those of messages.
    const CombinePart part{into.flat(), from.flat(), with.flat(), into.bytes(), type};
    last_ = port_->packing().combine(into.device, PortLane::out, part, operation);
  }
  ~DeviceReduction() override {
    if (!ended_) port_->operations().finish(last_);
  }

  bool advance() override {
    if (ended_ || !port_->operations().has_ended(last_)) return false;
    return ended_ = true;
  }
  bool has_ended() override { return ended_; }

 private:
  const std::shared_ptr<DevicePort> port_;
  PortTicket last_;  // Of a lane, whose operations end in order.
  bool ended_ = false;
};

}  // namespace

std::shared_ptr<DeviceMove> move_between(const MessageBuffer& from, const MessageBuffer& to) {
  // Kernels don't reach another GPU's memory within a process, copies do.
  const auto is_near = [&] {
    return !to.port->is_cuda() || from.port == to.port || (from.flat() && to.flat());
  };
  const bool reach =
      from.on_device() && to.on_device() && from.port->is_cuda() == to.port->is_cuda() && is_near();
  if (!reach) return std::make_shared<StagedMove>(from, to);
  DevicePlace source = place_on_device(from);
  source.space = space_reached_by(*to.port, from.device, to.device);
  source.port = to.port;
  source.device = to.device;
  return std::make_shared<DeviceCopier>(std::move(source), place_on_device(to), from.bytes());
}

std::shared_ptr<DeviceMove> reduction_on_device(const MessageBuffer& into,
                                                const MessageBuffer& from,
                                                const MessageBuffer& with,
                                                ReduceOperation operation, ElementType type) {
  return std::make_shared<DeviceReduction>(into, from, with, operation, type);
}

Room::Room(Home home, std::size_t bytes) : home_(std::move(home)), bytes_(bytes) {
  if (bytes == 0) return;
  if (!home_.port) {
    on_host_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    return;
  }
  on_device_ = home_.port->memory().take_room(home_.device, bytes);
  if (!on_device_)
    fail(Errc::too_large,
         fmt::format("device {} has no {} bytes left for a collective", home_.device, bytes));
}

Room::~Room() {
  if (on_device_) home_.port->memory().give_room(home_.device, on_device_, bytes_);
}

Room::Room(Room&& other) noexcept
    : home_(std::move(other.home_)),
      bytes_(std::exchange(other.bytes_, 0)),
      on_host_(std::move(other.on_host_)),
      on_device_(std::exchange(other.on_device_, nullptr)) {}

Room& Room::operator=(Room&& other) noexcept {
  std::swap(home_, other.home_);
  std::swap(bytes_, other.bytes_);
  std::swap(on_host_, other.on_host_);
  std::swap(on_device_, other.on_device_);
  return *this;
}

MessageBuffer Room::at(std::int64_t offset, std::size_t bytes) const {
  std::byte* const first = bytes_ == 0 ? nullptr : data() + offset;
  return {Layout::contiguous(static_cast<std::int64_t>(bytes), ElementType::bytes), first,
          home_.port, home_.device};
}

}  // namespace quadriga::message
