// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/one_reduction_data.h: the tasks of methods with one reduction an iteration, on a
// solve's data.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/group.h"
#include "sparse/content.h"

namespace quadriga::sparse {

/// A solve's data, by part where they are many.
struct OneReductionOperands {
  Data state;
  Data history;
  std::span<const Data> work;
  std::span<const Data> product_sums;
  std::span<const Data> step_sums;
  const std::vector<std::vector<Data>>& sends;
  const std::vector<std::vector<Data>>& arrivals;
  std::function<void(std::size_t part)> pass;  ///< A part has written what it sends.
  std::function<void()> multiply;              ///< v.q = A*v.p, for all parts and columns.
};

class OneReductionData {
 public:
  OneReductionData(const SolverContent& content, const OneReductionCodelets& codelets,
                   OneReductionOperands of, TaskGroup& group);

  /// The product's input is x; r and the carried vectors stay.
  void reload(std::span<const Data> x);
  /// r and its scalars are known: forms what the first step needs. Carried vectors are computed
  /// anew where the direction stays.
  void begin(bool keeps_direction);
  void iterate(std::span<const Data> x);
  /// Classic iterations go on with r and the direction.
  void hand_over();

 private:
  void submit(const Codelet& codelet, std::size_t part, std::span<const std::byte> params = {});
  void submit_scalars(const Codelet& codelet, std::initializer_list<Operand> first,
                      std::initializer_list<std::span<const Data>> sums);
  void take(const Data& data, Access access) { operands_.push_back({data, access}); }
  void take(const std::vector<Data>& data, Access access);
  void enter(const VectorMove& move);
  void move(const VectorMove& move);
  void multiply();

  const SolverContent& content_;
  const OneReductionCodelets& codelets_;
  OneReductionOperands of_;
  TaskGroup& group_;
  std::vector<Operand> operands_;  ///< Scratch.
};

}  // namespace quadriga::sparse
