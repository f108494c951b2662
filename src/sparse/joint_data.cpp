// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/joint_data.cpp: a task a part, with the part's own data, that start together.
#include "sparse/joint_data.h"

#include <memory>

#include "device/meeting.h"
#include "engine/engine_access.h"
#include "graph/gang.h"
#include "sparse/kernels/joint_iterations.h"
#include "sparse/kernels/one_reduction_iterations.h"

namespace quadriga::sparse {

namespace {

/// The gang of one submission: its tasks keep it, and so where they meet.
struct Batch {
  explicit Batch(std::uint32_t parts) : gang(parts), meeting(parts, gang.broken) {}
  Gang gang;
  Meeting meeting;
};

}  // namespace

JointData::JointData(const SolverContent& content, const SolveCodelets& codelets,
                     std::int64_t columns)
    : content_(content), codelets_(codelets), states_(1), histories_(1) {
  const auto state_bytes = columns * static_cast<std::int64_t>(sizeof(ColumnState));
  const auto temporary = [&](std::int64_t bytes) {
    return kept_.emplace_back(content.engine().temporary(bytes, 1, DType::bytes));
  };
  for (std::size_t part = 1; part < content.parts(); ++part) {
    states_.push_back(temporary(state_bytes));
    histories_.push_back(temporary(history_bytes(columns)));
  }
  if (content.method() != CgMethod::pipelined) return;
  second_sends_.resize(content.parts());
  for (std::size_t part = 0; part < content.parts(); ++part)
    second_sums_.push_back(temporary(step_sums_bytes(content.plan(part).shape.blocks * columns)));
  for (const HaloTransfer& each : content.transfers())
    second_sends_[static_cast<std::size_t>(each.from)].push_back(
        temporary(each.count * columns * static_cast<std::int64_t>(size_of(content.dtype()))));
}

JointData::~JointData() {
  try {
    content_.engine().remove(kept_, true);
  } catch (...) {
    // An engine that has broken down said so where somebody waited.
  }
}

void JointData::replicate(Data state, TaskGroup& group) {
  for (std::size_t part = 1; part < content_.parts(); ++part) {
    const std::vector<Operand> operands{{state}, {states_[part], Access::write}};
    SubmitOptions options;
    options.device = content_.device(part);
    EngineAccess::submit(content_.engine(), codelets_.replicate(), operands, {}, options, &group);
  }
  has_states_ = true;
}

void JointData::iterate(const JointOperands& operands, std::int64_t count, TaskGroup& group) {
  if (!has_states_) replicate(operands.state, group);
  const auto batch = std::make_shared<Batch>(static_cast<std::uint32_t>(content_.parts()));
  JointParams params;
  params.meeting = &batch->meeting;
  params.count = count;
  std::vector<GangTask> tasks;
  for (std::size_t part = 0; part < content_.parts(); ++part) {
    GangTask& task = tasks.emplace_back();
    task.codelet = operands.are_classic ? &codelets_.joint_iterations(part)
                                        : &codelets_.one_reduction()->joint_iterations(part);
    task.device = content_.device(part);
    task.params = std::as_bytes(std::span(&params, 1));
    task.operands = {{content_.matrix(part), Access::read},
                     {part == 0 ? operands.state : states_[part], Access::update},
                     {operands.x[part], Access::update},
                     {operands.work[part], Access::update},
                     {operands.product_sums[part], Access::write},
                     {operands.residual_sums[part], Access::write},
                     {part == 0 ? operands.history : histories_[part],
                      part == 0 ? Access::update : Access::write}};
    for (const Data& each : operands.sends[part]) task.operands.push_back({each, Access::update});
    if (operands.are_classic || second_sums_.empty()) continue;
    task.operands.push_back({second_sums_[part], Access::write});
    for (const Data& each : second_sends_[part]) task.operands.push_back({each, Access::write});
  }
  EngineAccess::submit_together(content_.engine(), tasks, {batch, &batch->gang}, &group);
}

}  // namespace quadriga::sparse
