// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage_plan.h: stages as segments, and what rows of kernels do to fields. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/stage.h"

namespace quadriga {

/// Consecutive stages that a chunk passes in one go: kernels, bodies of parallel stages, or one
/// serial stage.
struct Segment {
  std::size_t first = 0;
  std::size_t last = 0;  ///< Behind its last stage.
  StageKind kind = StageKind::parallel;
  std::size_t generation = 0;  ///< Of the chunks that come to it: flat_maps before it.
};

/// Stages that a chunk passes.
class StageSet {
 public:
  /// All.
  StageSet() = default;
  explicit StageSet(std::vector<bool> passed) : passed_(std::move(passed)) {}
  bool has(std::size_t stage) const { return passed_.empty() || passed_[stage]; }
  bool has_any(const Segment& segment) const;
  /// Whether it has all, or which of a segment.
  std::vector<bool> of(const Segment& segment) const;

 private:
  std::vector<bool> passed_;  ///< By stage; empty: all.
};

/// A field of chunks while it is on a device, by all that a row of kernels does to it.
struct RowField {
  std::string name;
  bool is_head = false;       ///< Its first use reads it: its content comes with the head.
  bool is_tail = false;       ///< A kernel writes it: its content goes home with the tail.
  bool is_temporary = false;  ///< It has no home.
  std::function<FieldShape(const Chunk&)> shape = {};  ///< Of a temporary.
  const ReturnedField* returned = nullptr;  ///< Its size is known when its kernel has ended.

  /// Its size in a chunk, for a temporary without an address.
  /// Errors: invalid_argument naming the field if the chunk has none of that name.
  View view_in(const Chunk& chunk) const;
};

/// Kernels that a chunk passes in a row on one device, and the fields that they share.
struct KernelRow {
  struct Operand {
    Access access = Access::read;
    const FieldUse* constant = nullptr;
    const FieldUse* reduced = nullptr;  ///< Or else:
    std::size_t field = 0;              ///< Index into `fields`.
  };
  struct Kernel {
    std::size_t stage = 0;
    std::vector<Operand> operands;
    std::vector<std::size_t> returned;  ///< Fields that are known when it has ended.
    bool begins_step = false;           ///< Is submitted when those before it have ended.
    /// Whether it adds to a result of all chunks.
    bool adds() const {
      return std::ranges::any_of(operands, [](const Operand& each) { return each.reduced; });
    }
  };
  std::vector<Kernel> kernels;
  std::vector<RowField> fields;
  std::vector<const FieldUse*> reduced;  ///< Whose sizes are known before anything is returned.

  /// Errors: invalid_argument if a temporary is used before it is written.
  KernelRow(std::span<const Stage> stages, const Segment& segment, const StageSet& passed = {});

  /// Behind the kernels that are submitted together with the one at `first`.
  std::size_t end_of_step(std::size_t first) const;

 private:
  Operand operand_of(const FieldUse& use);
  std::size_t add_returned(const ReturnedField& made);
  /// The one that a kernel means now; fields.size() if there is none.
  std::size_t latest(const std::string& name) const;
};

class StagePlan {
 public:
  explicit StagePlan(std::vector<Stage> stages);

  const std::vector<Stage>& stages() const noexcept { return stages_; }
  const std::vector<Segment>& segments() const noexcept { return segments_; }
  bool has_kernels() const noexcept;
  /// Whether a stage takes chunks in the order of the source.
  bool keeps_order() const noexcept;
  /// Of chunks that are results.
  std::size_t last_generation() const noexcept { return generations_ - 1; }
  /// The stages that a chunk passes by its own list.
  /// Errors: invalid_argument naming a stage that there isn't.
  StageSet passed_by(const Chunk& chunk) const;
  /// Adds what those kernels will write, so that the bytes of a chunk's whole way are known; for an
  /// estimate without memory behind it.
  void complete(Chunk& chunk, const StageSet& passed, bool has_memory = true) const;
  /// A chunk like one of a source, with the fields that kernels will write, without memory if
  /// nobody will read them.
  Chunk completed(const Chunk& like, bool has_memory = false) const;
  /// What is to be reserved on the host for what kernels return, from a stage on.
  std::size_t returned_bytes(const Chunk& chunk, const StageSet& passed,
                             std::size_t first = 0) const;
  /// Splits a run's memory between the source and the flat_maps that state none: the first is the
  /// source's. Errors: invalid_argument if nothing is left for it.
  std::vector<std::size_t> shares_of(std::size_t host_bytes) const;

 private:
  std::vector<Stage> stages_;
  std::vector<Segment> segments_;
  std::size_t generations_ = 1;
};

}  // namespace quadriga
