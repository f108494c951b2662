// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/stage_plan.cpp: segments, and the fields of rows of kernels.
#include "pipeline/stage_plan.h"

#include <quadriga/error.h>

#include <algorithm>
#include <utility>

namespace quadriga {

View RowField::view_in(const Chunk& chunk) const {
  if (!is_temporary) return chunk[name];
  const FieldShape made = shape(chunk);
  return {nullptr, made.rows, made.cols, made.rows, made.dtype};
}

bool StageSet::has_any(const Segment& segment) const {
  if (passed_.empty()) return true;
  for (std::size_t s = segment.first; s < segment.last; ++s)
    if (passed_[s]) return true;
  return false;
}

std::vector<bool> StageSet::of(const Segment& segment) const {
  if (passed_.empty()) return {};
  const auto begin = passed_.begin();
  return {begin + static_cast<std::ptrdiff_t>(segment.first),
          begin + static_cast<std::ptrdiff_t>(segment.last)};
}

KernelRow::KernelRow(std::span<const Stage> stages, const Segment& segment,
                     const StageSet& passed) {
  for (std::size_t s = segment.first; s < segment.last; ++s) {
    if (!passed.has(s)) continue;
    Kernel& kernel = kernels.emplace_back();
    kernel.stage = s;
    // What failed before must not reach a result of all chunks.
    const bool reduces = std::ranges::any_of(
        stages[s].uses, [](const FieldUse& use) { return use.reduction != nullptr; });
    kernel.begins_step =
        kernels.size() > 1 && (reduces || !kernels[kernels.size() - 2].returned.empty());
    for (const FieldUse& use : stages[s].uses) kernel.operands.push_back(operand_of(use));
    for (const ReturnedField& made : stages[s].returns)
      kernel.returned.push_back(add_returned(made));
  }
}

std::size_t KernelRow::latest(const std::string& name) const {
  for (std::size_t i = fields.size(); i > 0; --i)
    if (fields[i - 1].name == name) return i - 1;
  return fields.size();
}

/// What it replaces is of no use any more, and stays where it was: on devices only, or at home.
std::size_t KernelRow::add_returned(const ReturnedField& made) {
  const std::size_t old = latest(made.name);
  const bool is_temporary = old < fields.size() && fields[old].is_temporary;
  if (old < fields.size()) fields[old].is_tail = false;
  fields.push_back({made.name, false, !is_temporary, is_temporary, nullptr, &made});
  return fields.size() - 1;
}

std::size_t KernelRow::end_of_step(std::size_t first) const {
  std::size_t end = first;
  while (end < kernels.size() && (end == first || !kernels[end].begins_step)) ++end;
  return end;
}

KernelRow::Operand KernelRow::operand_of(const FieldUse& use) {
  if (use.constant.data) return {use.access, &use};
  if (use.reduction) {
    if (std::ranges::none_of(fields, [](const RowField& field) { return field.returned; }))
      reduced.push_back(&use);
    return {use.access, nullptr, &use};
  }
  const std::size_t index = latest(use.name);
  if (index == fields.size()) {
    require(!use.is_temporary || use.shape,
            "temporary '" + use.name + "' is used before it is written");
    fields.push_back({use.name, reads(use.access) && !use.is_temporary, false, use.is_temporary,
                      use.is_temporary ? use.shape : nullptr});
  }
  RowField& field = fields[index];
  field.is_tail |= writes(use.access) && !field.is_temporary;
  return {use.access, nullptr, nullptr, index};
}

/// Kernels in a row, and bodies of parallel stages in a row, are one segment each.
StagePlan::StagePlan(std::vector<Stage> stages) : stages_(std::move(stages)) {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    const StageKind kind = stages_[i].kind;
    const bool joins = !segments_.empty() && segments_.back().kind == kind &&
                       (kind == StageKind::kernel || kind == StageKind::parallel);
    if (joins)
      segments_.back().last = i + 1;
    else
      segments_.push_back({i, i + 1, kind, generations_ - 1});
    generations_ += kind == StageKind::flat_map;
  }
}

bool StagePlan::has_kernels() const noexcept {
  return std::ranges::any_of(stages_, [](const Stage& s) { return s.kind == StageKind::kernel; });
}

bool StagePlan::keeps_order() const noexcept {
  return std::ranges::any_of(stages_, [](const Stage& s) {
    return s.kind == StageKind::serial_in_order || s.kind == StageKind::flat_map;
  });
}

StageSet StagePlan::passed_by(const Chunk& chunk) const {
  if (!chunk.stages) return {};
  std::vector<bool> passed(stages_.size(), false);
  for (const std::string& name : *chunk.stages) {
    bool is_known = false;
    std::string known;
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      if (stages_[s].name == name) passed[s] = is_known = true;
      known += (known.empty() ? "'" : ", '") + stages_[s].name + "'";
    }
    if (!is_known)
      fail(Errc::invalid_argument, "chunk " + chunk.id().text() + " is to pass a stage '" + name +
                                       "'; the pipeline has " + (known.empty() ? "none" : known));
  }
  return StageSet(std::move(passed));
}

Chunk StagePlan::completed(const Chunk& like, bool has_memory) const {
  Chunk chunk(like.number());
  chunk.context = like.context;
  chunk.context_bytes = like.context_bytes;
  for (const Chunk::Field& field : like.fields()) chunk.lend(field.name, field.view);
  chunk.stages = like.stages;
  complete(chunk, passed_by(chunk), has_memory);
  return chunk;
}

std::size_t StagePlan::returned_bytes(const Chunk& chunk, const StageSet& passed,
                                      std::size_t first) const {
  std::size_t sum = 0;
  for (std::size_t s = first; s < stages_.size(); ++s)
    for (const ReturnedField& made : stages_[s].returns)
      if (passed.has(s)) sum += made.expected_bytes(chunk);
  return sum;
}

std::vector<std::size_t> StagePlan::shares_of(std::size_t host_bytes) const {
  std::size_t stated = 0;
  std::size_t silent = 0;
  for (const Stage& stage : stages_) {
    stated += stage.most_bytes;
    silent += stage.kind == StageKind::flat_map && stage.most_bytes == 0;
  }
  require(stated < host_bytes || host_bytes == 0,
          "the memory of flat_map stages must leave some of host_memory to the source");
  const std::size_t share = silent > 0 ? (host_bytes - stated) / 2 / silent : 0;
  std::vector<std::size_t> shares{host_bytes - stated - share * silent};
  for (const Stage& stage : stages_)
    if (stage.kind == StageKind::flat_map)
      shares.push_back(stage.most_bytes > 0 ? stage.most_bytes : share);
  return shares;
}

void StagePlan::complete(Chunk& chunk, const StageSet& passed, bool has_memory) const {
  for (std::size_t s = 0; s < stages_.size(); ++s)
    for (const FieldUse& use : stages_[s].uses) {
      if (!passed.has(s)) continue;
      if (!use.shape || use.is_temporary || use.reduction || chunk.find(use.name)) continue;
      const FieldShape shape = use.shape(chunk);
      if (has_memory)
        chunk.add(use.name, shape.rows, shape.cols, shape.dtype);
      else
        chunk.lend(use.name, {nullptr, shape.rows, shape.cols, shape.rows, shape.dtype});
    }
}

}  // namespace quadriga
