// SPDX-License-Identifier: BSD-3-Clause
// src/engine/home_buffers.h: memory, or room in a file, for data without a home, if tasks run on
// the host's memory.
//
// Invariants
//   1. Bytes are counted before they are allocated and uncounted after they are freed, so the limit
//      is never exceeded. lock_ guards `spill_`.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>

#include "graph/task.h"
#include "memory/spill.h"

namespace quadriga {

class HomeBuffers {
 public:
  /// At most so many bytes; in this file, if one is named, instead of memory.
  HomeBuffers(std::size_t limit, const std::string& file);

  /// Gives data without a home one. Errors: too_large with what is needed and what there is.
  void add(Datum& datum);
  void remove(Datum& datum);
  /// Bytes in use at once, so far.
  std::size_t most() const noexcept { return most_.load(); }

 private:
  std::byte* allocate(std::size_t bytes, std::size_t used);

  const std::size_t limit_;
  std::atomic<std::size_t> used_{0};
  std::atomic<std::size_t> most_{0};
  std::mutex lock_;
  std::optional<Spill> spill_;
};

}  // namespace quadriga
