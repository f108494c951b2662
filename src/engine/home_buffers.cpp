// SPDX-License-Identifier: BSD-3-Clause
// src/engine/home_buffers.cpp: buffers counted, taken and given back.
#include "engine/home_buffers.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <new>

#include "base/units.h"

namespace quadriga {
namespace {

constexpr std::align_val_t alignment{64};

}  // namespace

HomeBuffers::HomeBuffers(std::size_t limit, const std::string& file) : limit_(limit) {
  if (!file.empty()) spill_.emplace(limit, file);
}

void HomeBuffers::add(Datum& datum) {
  const std::size_t bytes = datum.bytes();
  if (datum.home || bytes == 0) return;
  const std::size_t used = used_.fetch_add(bytes) + bytes;
  datum.buffer = allocate(bytes, used);
  datum.home = datum.buffer;
  std::size_t most = most_.load();
  while (most < used && !most_.compare_exchange_weak(most, used)) {
  }
}

std::byte* HomeBuffers::allocate(std::size_t bytes, std::size_t used) {
  std::byte* buffer = nullptr;
  std::string refusal;
  if (spill_) {
    const std::lock_guard lock(lock_);
    buffer = spill_->allocate(bytes);
    if (!buffer) refusal = spill_->refusal();
  } else if (used <= limit_) {
    buffer = static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow));
  }
  if (buffer) return buffer;
  used_.fetch_sub(bytes);
  if (refusal.empty())
    refusal = fmt::format("at most {} of host buffers may be used (host_memory, spill)",
                          format_bytes(static_cast<double>(limit_)));
  fail(Errc::too_large, fmt::format("tiles without a home need {} of host memory: {}",
                                    format_bytes(static_cast<double>(used)), refusal));
}

void HomeBuffers::remove(Datum& datum) {
  if (!datum.buffer) return;
  if (spill_) {
    const std::lock_guard lock(lock_);
    spill_->deallocate(datum.buffer, datum.bytes());
  } else {
    ::operator delete(datum.buffer, alignment);
  }
  datum.buffer = nullptr;
  used_.fetch_sub(datum.bytes());
}

}  // namespace quadriga
