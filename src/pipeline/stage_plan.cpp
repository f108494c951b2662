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

KernelRow::KernelRow(std::span<const Stage> stages, std::size_t first, std::size_t last) {
  for (std::size_t s = first; s < last; ++s) {
    Kernel& kernel = kernels.emplace_back();
    kernel.stage = s;
    for (const FieldUse& use : stages[s].uses) kernel.operands.push_back(operand_of(use));
  }
}

KernelRow::Operand KernelRow::operand_of(const FieldUse& use) {
  if (use.constant.data) return {use.access, &use, 0};
  const auto known = std::ranges::find(fields, use.name, &RowField::name);
  const auto index = static_cast<std::size_t>(known - fields.begin());
  if (known == fields.end()) {
    require(!use.is_temporary || use.shape,
            "temporary '" + use.name + "' is used before it is written");
    fields.push_back({use.name, reads(use.access) && !use.is_temporary, false, use.is_temporary,
                      use.is_temporary ? use.shape : nullptr});
  }
  RowField& field = fields[index];
  field.is_tail |= writes(use.access) && !field.is_temporary;
  return {use.access, nullptr, index};
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
      segments_.push_back({i, i + 1, kind});
  }
}

bool StagePlan::has_kernels() const noexcept {
  return std::ranges::any_of(stages_, [](const Stage& s) { return s.kind == StageKind::kernel; });
}

void StagePlan::complete(Chunk& chunk, bool has_memory) const {
  for (const Stage& stage : stages_)
    for (const FieldUse& use : stage.uses) {
      if (!use.shape || use.is_temporary || chunk.find(use.name)) continue;
      const FieldShape shape = use.shape(chunk);
      if (has_memory)
        chunk.add(use.name, shape.rows, shape.cols, shape.dtype);
      else
        chunk.lend(use.name, {nullptr, shape.rows, shape.cols, shape.rows, shape.dtype});
    }
}

}  // namespace quadriga
