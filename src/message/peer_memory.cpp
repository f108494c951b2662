// SPDX-License-Identifier: BSD-3-Clause
// src/message/peer_memory.cpp: opening, finding again, closing.
#include "message/peer_memory.h"

#include <fmt/format.h>
#include <quadriga/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/peer_file.h"

namespace quadriga::message {
namespace {

// Programs that send from more allocations than this open some of them again.
constexpr std::size_t most_mapped = 512;

std::byte* opened_by(DevicePort& port, DeviceId device, const MemoryHandle& handle, int process) {
  if (handle.descriptor < 0) return port.memory().import_memory(device, handle, -1);
  const int file = file_of_process(process, handle.descriptor);
  if (file < 0)
    fail(Errc::cancelled, fmt::format("the system passes no descriptors between the two processes "
                                      "(pidfd_getfd: {})",
                                      std::strerror(errno)));
  try {
    std::byte* const mapped = port.memory().import_memory(device, handle, file);
    ::close(file);
    return mapped;
  } catch (...) {
    ::close(file);
    throw;
  }
}

}  // namespace

struct PeerMemory::Mapping {
  Mapping(std::shared_ptr<DevicePort> by, DeviceId of, const DeviceOffer& offer, int process)
      : port(std::move(by)),
        device(of),
        handle(offer.handle),
        base(offer.base),
        at(opened_by(*port, device, handle, process)) {}
  ~Mapping() { port->memory().close_memory(device, at); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  bool is_of(const DeviceOffer& offer) const noexcept {
    return handle.id == offer.handle.id && handle.kind == offer.handle.kind && base == offer.base &&
           handle.bytes == offer.handle.bytes && handle.device == offer.handle.device;
  }
  // Whether an allocation that is offered can't live beside it.
  bool is_replaced_by(const DeviceOffer& offer) const noexcept {
    return !is_of(offer) && handle.kind == offer.handle.kind &&
           base < offer.base + offer.handle.bytes && offer.base < base + handle.bytes;
  }

  const std::shared_ptr<DevicePort> port;
  const DeviceId device;
  const MemoryHandle handle;
  const std::uint64_t base;
  std::byte* const at;
};

bool PeerMemory::close_others(const DeviceOffer& offer) {
  bool all = true;
  std::erase_if(mapped_, [&](const auto& each) {
    if (!each->is_replaced_by(offer)) return false;
    all = all && each.use_count() == 1;
    return each.use_count() == 1;
  });
  return all;
}

PeerMemory::Reached PeerMemory::reach(const DeviceOffer& offer,
                                      const std::shared_ptr<DevicePort>& port, DeviceId device,
                                      int process) {
  for (const auto& each : mapped_)
    if (each->is_of(offer) && each->port == port && each->device == device)
      return {each->at + offer.offset, each};
  if (!close_others(offer))
    fail(Errc::invalid_argument, "the memory that was there before is still being copied");
  if (mapped_.size() >= most_mapped) mapped_.erase(mapped_.begin());
  auto made = std::make_shared<Mapping>(port, device, offer, process);
  ++opened_;
  mapped_.push_back(made);
  return {made->at + offer.offset, made};
}

void PeerMemory::forget(std::uint64_t id) {
  std::erase_if(mapped_, [id](const auto& each) { return each->handle.id == id; });
}

const char* text_of(PairPath path) noexcept {
  switch (path) {
    case PairPath::unknown:
      return "not tried yet";
    case PairPath::mapped:
      return "mapped";
    case PairPath::no_files:
      return "staged: the system passes no descriptors between the two processes";
    case PairPath::not_opened:
      return "staged: the driver didn't open the other process's memory";
  }
  return "unknown";
}

}  // namespace quadriga::message
