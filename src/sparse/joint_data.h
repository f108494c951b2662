// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/joint_data.h: iterations of all parts as one program: what they need beside a solve's
// data, and their tasks.
//
// Each device has the states of all columns, and changes them as the others do. Between batches the
// first part's are those of the solve.
#pragma once

#include <span>
#include <vector>

#include "graph/group.h"
#include "sparse/content.h"

namespace quadriga::sparse {

/// A solve's data, by part where they are many.
struct JointOperands {
  Data state;
  Data history;
  std::span<const Data> x;
  std::span<const Data> work;
  std::span<const Data> product_sums;
  std::span<const Data> residual_sums;
  const std::vector<std::vector<Data>>& sends;
  bool are_classic = true;  ///< The iterations.
};

class JointData {
 public:
  JointData(const SolverContent& content, const SolveCodelets& codelets, std::int64_t columns);
  ~JointData();
  JointData(const JointData&) = delete;
  JointData& operator=(const JointData&) = delete;

  /// Somebody else has changed the states.
  void forget() noexcept { has_states_ = false; }
  /// Submits so many iterations, at most history_length.
  /// Errors: too_large or unavailable if a device can't have all of its part's data at once.
  void iterate(const JointOperands& operands, std::int64_t count, TaskGroup& group);

 private:
  void replicate(Data state, TaskGroup& group);

  const SolverContent& content_;
  const SolveCodelets& codelets_;
  std::vector<Data> kept_;
  std::vector<Data> states_;     ///< By part; the first is null.
  std::vector<Data> histories_;  ///< The same.
  /// By part, of pipelined iterations: where every second step writes what others read.
  std::vector<Data> second_sums_;
  std::vector<std::vector<Data>> second_sends_;
  bool has_states_ = false;  ///< The states are those of the solve.
};

}  // namespace quadriga::sparse
