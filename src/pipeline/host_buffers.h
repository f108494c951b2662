// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/host_buffers.h: memory of the host for chunks, fast to copy from and to, used again.
//
// Copies between a GPU and pageable memory go through other buffers, at a fraction of the link's
// rate. Pinning takes longer than most chunks, so what was pinned once is kept for chunks to come.
//
// Invariants
//   1. Buffers come in sizes of which there are eight a doubling, so that chunks of unequal size
//      share them. Together they take no more than `most_bytes`; what is more is plain memory.
//   2. Whoever has a buffer may keep it beyond the run: after close() nothing is pinned, and memory
//      goes when its last user has.
//   3. mutex_ guards all members but `pin` and `unpin`.
#pragma once

#include <quadriga/chunk.h>
#include <quadriga/engine.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace quadriga {

class HostBuffers final : public ChunkMemory, public std::enable_shared_from_this<HostBuffers> {
 public:
  /// Called with whole pages; `pin` is false where nothing is to be pinned.
  struct Pinning {
    std::function<bool(std::byte* memory, std::size_t bytes)> pin;
    std::function<void(std::byte* memory, std::size_t bytes)> unpin;
  };

  HostBuffers(Pinning pinning, std::size_t most_bytes);
  ~HostBuffers() override;

  /// At least so many bytes, on a page of their own unless they are fewer.
  std::shared_ptr<std::byte[]> take(std::size_t bytes) override;
  /// What is pinned from now on isn't any more. No copy is under way.
  void close();
  /// Of the buffers that it has made, in use or not.
  std::size_t bytes() const;

  /// The size of the buffer for so many bytes.
  static std::size_t rounded(std::size_t bytes) noexcept;

 private:
  std::byte* make(std::size_t size);
  bool make_room(std::size_t size);
  void give_back(std::byte* memory, std::size_t size) noexcept;
  void drop(std::byte* memory, std::size_t size);

  const Pinning pinning_;
  const std::size_t most_bytes_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<std::byte*>> free_;  ///< By size.
  std::map<std::byte*, std::size_t> pinned_;             ///< Sizes.
  std::size_t bytes_ = 0;
  bool is_closed_ = false;
};

/// Of a run whose chunks take so many bytes at most, on an engine, which outlives close(); null if
/// none of its devices has memory of its own, or only the virtual clock passes.
std::shared_ptr<HostBuffers> host_buffers(Engine& engine, std::size_t most_bytes);

}  // namespace quadriga
