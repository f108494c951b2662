// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/stream_local.cpp: a map from streams to what is kept for them.
//
// Invariant: `mutex` guards the map; its nodes stay where they are until their stream is closed.
#include "device/cuda/stream_local.h"

#include <quadriga/error.h>

#include <mutex>
#include <unordered_map>

namespace quadriga::cuda {
namespace {

struct KeptByStream {
  std::mutex mutex;
  std::unordered_map<void*, std::shared_ptr<void>> of_stream;
};

// Never destroyed: streams may be closed while the process ends.
KeptByStream& places() {
  static KeptByStream& all = *new KeptByStream;
  return all;
}

}  // namespace

std::shared_ptr<void>& stream_local(void* stream) {
  KeptByStream& all = places();
  const std::lock_guard lock(all.mutex);
  const auto found = all.of_stream.find(stream);
  require(found != all.of_stream.end(), "this CUDA stream belongs to no engine");
  return found->second;
}

void open_stream_local(void* stream) {
  KeptByStream& all = places();
  const std::lock_guard lock(all.mutex);
  all.of_stream.try_emplace(stream);
}

void close_stream_local(void* stream) noexcept {
  KeptByStream& all = places();
  std::shared_ptr<void> kept;
  const std::lock_guard lock(all.mutex);
  const auto found = all.of_stream.find(stream);
  if (found == all.of_stream.end()) return;
  kept = std::move(found->second);
  all.of_stream.erase(found);
}

}  // namespace quadriga::cuda
