// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/level_matrix.h: a matrix of a preconditioner in parts on an engine; it needn't be
// square.
#pragma once

#include <quadriga/sparse.h>

#include <memory>
#include <span>
#include <vector>

#include "sparse/kernels/part_codelets.h"
#include "sparse/pack.h"

namespace quadriga::sparse {

/// How the rows of a matrix, and the vectors it is multiplied with, are cut: the first of each
/// part, and their number.
struct Cuts {
  std::span<const std::int64_t> rows;
  std::span<const std::int64_t> columns;
};

class LevelMatrix {
 public:
  /// Errors: invalid_argument as Solver(); `options` say what M's blocks are.
  LevelMatrix(Engine& engine, const CsrView& a, const Cuts& cuts, const Storage& storage,
              const SolverOptions& options);
  ~LevelMatrix();
  LevelMatrix(const LevelMatrix&) = delete;
  LevelMatrix& operator=(const LevelMatrix&) = delete;

  std::span<const PartPlan> plans() const noexcept { return plans_; }
  Data tile(std::size_t part) const { return data_[part]; }
  const std::vector<HaloTransfer>& transfers() const noexcept { return transfers_; }

 private:
  Engine& engine_;
  std::vector<HaloTransfer> transfers_;
  std::vector<PartPlan> plans_;
  std::vector<std::unique_ptr<std::byte[]>> tiles_;
  std::vector<Data> data_;
};

}  // namespace quadriga::sparse
