// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage_plan.h: stages as segments, and what rows of kernels do to fields. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/stage.h"

namespace quadriga {

/// A field of chunks while it is on a device, by all that a row of kernels does to it.
struct RowField {
  std::string name;
  bool is_head = false;       ///< Its first use reads it: its content comes with the head.
  bool is_tail = false;       ///< A kernel writes it: its content goes home with the tail.
  bool is_temporary = false;  ///< It has no home.
  std::function<FieldShape(const Chunk&)> shape = {};  ///< Of a temporary.

  /// Its size in a chunk, for a temporary without an address.
  /// Errors: invalid_argument naming the field if the chunk has none of that name.
  View view_in(const Chunk& chunk) const;
};

/// Kernels that a chunk passes in a row on one device, and the fields that they share.
struct KernelRow {
  struct Operand {
    Access access = Access::read;
    const FieldUse* constant = nullptr;  ///< Or else:
    std::size_t field = 0;               ///< Index into `fields`.
  };
  struct Kernel {
    std::size_t stage = 0;
    std::vector<Operand> operands;
  };
  std::vector<Kernel> kernels;
  std::vector<RowField> fields;

  /// Errors: invalid_argument if a temporary is used before it is written.
  KernelRow(std::span<const Stage> stages, std::size_t first, std::size_t last);

 private:
  Operand operand_of(const FieldUse& use);
};

/// Consecutive stages that a chunk passes in one go: kernels, bodies of parallel stages, or one
/// serial stage.
struct Segment {
  std::size_t first = 0;
  std::size_t last = 0;  ///< Behind its last stage.
  StageKind kind = StageKind::parallel;
};

class StagePlan {
 public:
  explicit StagePlan(std::vector<Stage> stages);

  const std::vector<Stage>& stages() const noexcept { return stages_; }
  const std::vector<Segment>& segments() const noexcept { return segments_; }
  bool has_kernels() const noexcept;
  /// Adds what kernels will write, so that the bytes of a chunk's whole way are known; for an
  /// estimate without memory behind it.
  void complete(Chunk& chunk, bool has_memory = true) const;

 private:
  std::vector<Stage> stages_;
  std::vector<Segment> segments_;
};

}  // namespace quadriga
