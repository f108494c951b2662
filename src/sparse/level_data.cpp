// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/level_data.cpp: steps of a cycle as tasks on parts.
#include "sparse/level_data.h"

#include <algorithm>

#include "engine/engine_access.h"
#include "sparse/levels.h"

namespace quadriga::sparse {

LevelData::LevelData(const SolverContent& content, const CycleCodelets& codelets)
    : content_(content), codelets_(codelets) {
  const Levels& levels = *content.levels();
  works_.resize(levels.count());
  of_matrix_.resize(levels.count());
  current_.resize(levels.count());
  for (std::size_t level = 0; level < levels.count(); ++level) {
    for (std::size_t part = 0; level > 0 && part < content.parts(); ++part)
      works_[level].push_back(kept_.emplace_back(
          content.engine().temporary(codelets.work(level, part).bytes, 1, DType::bytes)));
    for (LinkBuffers& each : of_matrix_[level])
      each = buffers_of(level > 0 ? levels[level].matrix->transfers() : content.transfers());
    if (!levels[level].restriction) continue;
    of_restriction_.push_back(buffers_of(levels[level].restriction->transfers()));
    of_prolongation_.push_back(buffers_of(levels[level].prolongation->transfers()));
  }
}

LevelData::~LevelData() {
  try {
    content_.engine().remove(kept_, true);
  } catch (...) {
    // An engine that has broken down said so where somebody waited.
  }
}

LinkBuffers LevelData::buffers_of(std::span<const HaloTransfer> transfers) {
  LinkBuffers buffers;
  buffers.sends.resize(content_.parts());
  buffers.arrivals.resize(content_.parts());
  const std::int64_t columns = codelets_.work(0, 0).columns;
  for (const HaloTransfer& each : transfers) {
    const Data buffer =
        kept_.emplace_back(content_.engine().temporary(each.count * columns, 1, content_.dtype()));
    buffers.sends[static_cast<std::size_t>(each.from)].push_back(buffer);
    buffers.arrivals[static_cast<std::size_t>(each.to)].push_back(buffer);
  }
  return buffers;
}

Data LevelData::matrix(std::size_t level, std::size_t part) const {
  return level == 0 ? content_.matrix(part) : (*content_.levels())[level].matrix->tile(part);
}

Data LevelData::work(const FinestLevel& finest, std::size_t level, std::size_t part) const {
  return level == 0 ? finest.work[part] : works_[level][part];
}

void LevelData::take(const std::vector<Data>& data, Access access) {
  for (const Data& each : data) operands_.push_back({each, access});
}

void LevelData::submit(const Codelet& codelet, std::size_t part, const LevelParams& params,
                       TaskGroup& group) {
  SubmitOptions options;
  options.device = content_.device(part);
  EngineAccess::submit(content_.engine(), codelet, operands_, std::as_bytes(std::span(&params, 1)),
                       options, &group);
  operands_.clear();
}

const std::vector<Data>& LevelData::first_sends(std::size_t part) const {
  return of_matrix_[0][0].sends[part];
}

/// A step of a smoother, or the solution on the coarsest level, for one part.
void LevelData::relax(const FinestLevel& finest, const CycleTask& task, std::size_t part,
                      const LevelParams& params, TaskGroup& group) {
  const std::size_t level = task.level;
  const LevelCodelets& codelets = codelets_.of(level, part);
  const auto& buffers = of_matrix_[level];
  const std::size_t current = current_[level];
  operands_ = {{matrix(level, part)}, {finest.state}, {work(finest, level, part), Access::update}};
  if (task.step == CycleStep::finish) operands_.push_back({finest.sums[part], Access::update});
  take(buffers[current].arrivals[part], Access::read);
  if (task.step == CycleStep::settle) return submit(codelets.settle, part, params, group);
  if (task.step == CycleStep::solve) return submit(codelets.solve, part, params, group);
  const bool is_last = task.step == CycleStep::finish;
  take(is_last ? finest.sends[part] : buffers[1 - current].sends[part], Access::write);
  submit(is_last ? codelets.finish : codelets.relax, part, params, group);
  if (is_last) finest.pass(part);
}

void LevelData::to_coarser(const FinestLevel& finest, std::size_t level, const LevelParams& params,
                           TaskGroup& group) {
  const LevelMatrix& restriction = *(*content_.levels())[level].restriction;
  const LinkBuffers& buffers = of_restriction_[level];
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    if (buffers.sends[part].empty()) continue;
    operands_ = {{restriction.tile(part)}, {work(finest, level, part)}};
    take(buffers.sends[part], Access::write);
    submit(codelets_.of(level, part).send_residual, part, params, group);
  }
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    operands_ = {{restriction.tile(part)},
                 {matrix(level + 1, part)},
                 {finest.state},
                 {work(finest, level, part), Access::update},
                 {work(finest, level + 1, part), Access::write}};
    take(buffers.arrivals[part], Access::read);
    take(of_matrix_[level + 1][current_[level + 1]].sends[part], Access::write);
    submit(codelets_.of(level, part).to_coarser, part, params, group);
  }
}

void LevelData::to_finer(const FinestLevel& finest, std::size_t level, const LevelParams& params,
                         TaskGroup& group) {
  const LevelMatrix& prolongation = *(*content_.levels())[level].prolongation;
  const LinkBuffers& buffers = of_prolongation_[level];
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    if (buffers.sends[part].empty()) continue;
    operands_ = {{prolongation.tile(part)}, {work(finest, level + 1, part)}};
    take(buffers.sends[part], Access::write);
    submit(codelets_.of(level, part).send_solution, part, params, group);
  }
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    operands_ = {{prolongation.tile(part)},
                 {matrix(level, part)},
                 {finest.state},
                 {work(finest, level + 1, part), Access::update},
                 {work(finest, level, part), Access::update}};
    take(buffers.arrivals[part], Access::read);
    take(of_matrix_[level][current_[level]].sends[part], Access::write);
    submit(codelets_.of(level, part).to_finer, part, params, group);
  }
}

void LevelData::submit(const FinestLevel& finest, bool always, TaskGroup& group) {
  std::ranges::fill(current_, std::size_t{0});
  for (const CycleTask& task : content_.levels()->plan().tasks) {
    const LevelParams params{task.relaxation, always};
    if (task.step == CycleStep::to_coarser)
      to_coarser(finest, task.level, params, group);
    else if (task.step == CycleStep::to_finer)
      to_finer(finest, task.level, params, group);
    else
      for (std::size_t part = 0; part < content_.parts(); ++part)
        relax(finest, task, part, params, group);
    if (task.step == CycleStep::relax) current_[task.level] = 1 - current_[task.level];
  }
}

void LevelData::append_operands(std::vector<Operand>& operands) const {
  const Levels& levels = *content_.levels();
  for (std::size_t level = 0; level + 1 < levels.count(); ++level) {
    operands.push_back({levels[level].restriction->tile(0)});
    operands.push_back({levels[level].prolongation->tile(0)});
    operands.push_back({matrix(level + 1, 0)});
    operands.push_back({works_[level + 1][0], Access::write});
  }
}

}  // namespace quadriga::sparse
