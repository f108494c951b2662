// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/part_data.h: the data of one solve or product on an engine, and the tasks on them.
//
// Whoever makes one submits its tasks from one thread. Its end cancels what has not started.
#pragma once

#include <span>
#include <vector>

#include "graph/group.h"
#include "sparse/content.h"

namespace quadriga::sparse {

class PartData {
 public:
  PartData(const SolverContent& content, std::int64_t columns);
  ~PartData();
  PartData(const PartData&) = delete;
  PartData& operator=(const PartData&) = delete;

  std::size_t parts() const noexcept { return content_.parts(); }
  std::int64_t columns() const noexcept { return columns_; }
  const SolveCodelets& codelets() const noexcept { return codelets_; }
  std::size_t states_bytes() const noexcept { return states_.size() * sizeof(ColumnState); }

  /// A vector of the caller's, cut as the rows are.
  std::vector<Data> add_vector(const void* vector);
  Data add_home(void* home, std::int64_t bytes);

  /// p = x, and what others need of it is on its way.
  void load(const std::vector<Data>& x);
  /// q = A*p, for all parts.
  void multiply(ProductParams params);
  /// r = b - q, or b.
  void residual(const std::vector<Data>& b, ResidualParams params);
  void restart(const Tolerances& tolerances);
  void iterate(const std::vector<Data>& x);
  void store(const std::vector<Data>& y);
  /// Copies states and history to a tile of the host's.
  void snapshot(Data to);

  /// Waits until data are home; throws what a task threw.
  void wait_for(Data data);
  /// Waits until all tasks have ended and these are home.
  void wait(std::span<const Data> data);
  /// Between two looks at the time: false cancels.
  std::function<bool()> poll;

 private:
  void submit(const Codelet& codelet, std::size_t part);
  template <class Params>
  void submit(const Codelet& codelet, std::size_t part, const Params& params);
  void submit_scalars(const Codelet& codelet, std::initializer_list<Operand> first,
                      const std::vector<Data>& sums, std::span<const std::byte> params = {});
  void take(Data data, Access access) { operands_.push_back({data, access}); }
  void take_sends(std::size_t part);
  void take_arrivals(std::size_t part);
  void product_of(std::size_t part, ProductParams params);
  void raise_failure();

  const SolverContent& content_;
  const std::int64_t columns_;
  const SolveCodelets& codelets_;
  TaskGroup group_;
  std::vector<ColumnState> states_;
  std::vector<double> history_;
  std::vector<Data> all_;  ///< To be removed.
  Data state_;
  Data past_;
  std::vector<Data> work_;
  std::vector<Data> product_sums_;
  std::vector<Data> residual_sums_;
  std::vector<std::vector<Data>> sends_;     ///< By part, as its plan.
  std::vector<std::vector<Data>> arrivals_;  ///< The same buffers, by receiver.
  std::vector<Operand> operands_;            ///< Scratch.
};

}  // namespace quadriga::sparse
