// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/host_buffers.cpp: taking buffers, and what becomes of them.
#include "pipeline/host_buffers.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#include "engine/engine_access.h"

namespace quadriga {
namespace {

constexpr std::size_t page = 4096;

std::shared_ptr<std::byte[]> plain(std::size_t bytes) {
  return std::shared_ptr<std::byte[]>(new std::byte[std::max<std::size_t>(bytes, 1)]);
}

}  // namespace

HostBuffers::HostBuffers(Pinning pinning, std::size_t most_bytes)
    : pinning_(std::move(pinning)), most_bytes_(most_bytes) {}

HostBuffers::~HostBuffers() { close(); }

std::size_t HostBuffers::rounded(std::size_t bytes) noexcept {
  const std::size_t step = std::max(page, std::bit_floor(std::max<std::size_t>(bytes, 1)) / 8);
  return (bytes + step - 1) / step * step;
}

std::shared_ptr<std::byte[]> HostBuffers::take(std::size_t bytes) {
  if (bytes < page) return plain(bytes);  // its copy is a latency, whatever its memory
  const std::size_t size = rounded(bytes);
  std::byte* memory = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::byte*>& known = free_[size];
    if (!known.empty()) {
      memory = known.back();
      known.pop_back();
    } else if (!is_closed_ && make_room(size)) {
      memory = make(size);
    }
  }
  if (!memory) return plain(bytes);
  return {memory,
          [self = shared_from_this(), size](std::byte* used) { self->give_back(used, size); }};
}

/// Null if there is no memory.
std::byte* HostBuffers::make(std::size_t size) {
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(page, size));
  if (!memory) return nullptr;
  if (pinning_.pin(memory, size)) pinned_.emplace(memory, size);
  bytes_ += size;
  return memory;
}

/// Whether another buffer may be made, free ones of other sizes given up for it.
bool HostBuffers::make_room(std::size_t size) {
  for (auto& [of_free, memories] : free_)
    while (bytes_ + size > most_bytes_ && !memories.empty()) {
      drop(memories.back(), of_free);
      memories.pop_back();
    }
  return bytes_ + size <= most_bytes_;
}

void HostBuffers::drop(std::byte* memory, std::size_t size) {
  if (pinned_.erase(memory) > 0) pinning_.unpin(memory, size);
  bytes_ -= size;
  std::free(memory);
}

void HostBuffers::give_back(std::byte* memory, std::size_t size) noexcept {
  const std::lock_guard lock(mutex_);
  if (is_closed_) {
    bytes_ -= size;
    return std::free(memory);
  }
  free_[size].push_back(memory);
}

void HostBuffers::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  for (auto& [size, memories] : free_)
    for (std::byte* const memory : std::exchange(memories, {})) drop(memory, size);
  for (const auto& [memory, size] : std::exchange(pinned_, {})) pinning_.unpin(memory, size);
}

std::shared_ptr<HostBuffers> host_buffers(Engine& engine, std::size_t most_bytes) {
  if (engine.host_only() || engine.options().virtual_clock) return nullptr;
  const HostBuffers::Pinning pinning{[&engine](std::byte* memory, std::size_t bytes) {
                                       return EngineAccess::pin(engine, memory, bytes);
                                     },
                                     [&engine](std::byte* memory, std::size_t bytes) {
                                       EngineAccess::unpin(engine, memory, bytes);
                                     }};
  // An eighth for sizes that are rounded up, and one for results that the program looks at.
  return std::make_shared<HostBuffers>(pinning, most_bytes + most_bytes / 4);
}

std::size_t HostBuffers::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace quadriga
