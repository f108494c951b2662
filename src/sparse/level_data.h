// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/level_data.h: the vectors of a preconditioner's coarser levels in one solve, and the
// tasks of a cycle.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "graph/group.h"
#include "sparse/content.h"

namespace quadriga::sparse {

/// Buffers of one matrix's transfers, by sender and by receiver.
struct LinkBuffers {
  std::vector<std::vector<Data>> sends;
  std::vector<std::vector<Data>> arrivals;
};

/// What a cycle works on at the finest level.
struct FinestLevel {
  Data state;
  std::span<const Data> work;
  std::span<const Data> sums;
  const std::vector<std::vector<Data>>& sends;  ///< For z, by part.
  std::function<void(std::size_t part)> pass;   ///< A part has written what it sends.
};

class LevelData {
 public:
  LevelData(const SolverContent& content, const CycleCodelets& codelets);
  ~LevelData();
  LevelData(const LevelData&) = delete;
  LevelData& operator=(const LevelData&) = delete;

  /// Where the first step of a cycle sends d to.
  const std::vector<Data>& first_sends(std::size_t part) const;
  /// Submits a cycle, whose first step has been submitted.
  void submit(const FinestLevel& finest, bool always, TaskGroup& group);
  /// What a recorded iteration also takes, of a matrix in one part: iterations.h.
  void append_operands(std::vector<Operand>& operands) const;

 private:
  Data matrix(std::size_t level, std::size_t part) const;
  Data work(const FinestLevel& finest, std::size_t level, std::size_t part) const;
  LinkBuffers buffers_of(std::span<const HaloTransfer> transfers);
  void take(const std::vector<Data>& data, Access access);
  void submit(const Codelet& codelet, std::size_t part, const LevelParams& params,
              TaskGroup& group);
  void relax(const FinestLevel& finest, const CycleTask& task, std::size_t part,
             const LevelParams& params, TaskGroup& group);
  void to_coarser(const FinestLevel& finest, std::size_t level, const LevelParams& params,
                  TaskGroup& group);
  void to_finer(const FinestLevel& finest, std::size_t level, const LevelParams& params,
                TaskGroup& group);

  const SolverContent& content_;
  const CycleCodelets& codelets_;
  std::vector<Data> kept_;
  std::vector<std::vector<Data>> works_;  ///< By level and part; none on the finest.
  /// By level. A step that is sent reads one of two, and writes the other: a part's next step may
  /// come before its neighbour has read the last one.
  std::vector<std::array<LinkBuffers, 2>> of_matrix_;
  std::vector<std::size_t> current_;  ///< By level: of these, the one written last.
  std::vector<LinkBuffers> of_restriction_;
  std::vector<LinkBuffers> of_prolongation_;
  std::vector<Operand> operands_;  ///< Scratch.
};

}  // namespace quadriga::sparse
