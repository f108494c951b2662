// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/lent_memory.h: memory that a source or flat_map lends, and may fill again too early.
//
// Invariants
//   1. The thread that asks the source calls all functions. A flat_map is a source of parts.
//   2. Memory is free once no chunk has it, also if that came about while the source worked: it may
//      have waited for that. A keeper goes after that, so what has waited for its end is never
//      refused.
//   3. What comes again before it is free must have the content that it had, by a sample. Fields
//      that kernels change aren't compared, nor are those whose columns lie apart.
#pragma once

#include <quadriga/pipeline.h>

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quadriga {

/// All bytes of up to 1024, else blocks of them, evenly spaced from the first to the last.
struct ContentSample {
  explicit ContentSample(const View& view);
  /// Whether memory at the same place has the same content, as far as it is as long.
  bool holds(const View& view) const;

  static constexpr std::size_t blocks = 16;
  static constexpr std::size_t block_bytes = 64;
  std::size_t bytes;  ///< Of the memory.
  std::array<std::byte, blocks * block_bytes> content;

 private:
  std::size_t begin(std::size_t block) const noexcept;
};

class LentMemory {
 public:
  /// `changed`: fields that kernels write or update.
  LentMemory(Lending lending, std::vector<std::string> changed)
      : lending_(lending), changed_(std::move(changed)) {}

  /// The source is about to work.
  void asked();
  /// It has filled a chunk. Errors: invalid_argument naming both fields, if memory that a chunk in
  /// progress has comes again with another content.
  void filled(Chunk& chunk);

 private:
  struct Known {
    std::weak_ptr<void> user;  ///< Expired once no chunk has it.
    std::string field;
    std::string chunk;
    ContentSample sample;
  };

  static void copy(Chunk& chunk, const Chunk::Field& field);
  void compare(Chunk& chunk, const Chunk::Field& field);

  const Lending lending_;
  const std::vector<std::string> changed_;
  std::unordered_map<const void*, Known> known_;  ///< By its begin.
};

}  // namespace quadriga
