// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/stored_matrix.h: the tiles in which a matrix is stored, and their data on an engine.
//
// A part is one tile, its sheet 0. Where products are split by columns that has the elements in the
// part's own columns, and one sheet an arrival those in the sender's.
#pragma once

#include <quadriga/engine.h>

#include <span>
#include <string>
#include <vector>

#include "sparse/column_split.h"
#include "sparse/kernels/part_plan.h"
#include "sparse/pack.h"
#include "sparse/tile_memory.h"

namespace quadriga::sparse {

/// What a part is stored of.
struct PartSource {
  const CsrView& matrix;
  PartRows rows;
  const std::vector<std::int64_t>& first_rows;  ///< Of each part, and the end.
};

class StoredMatrix {
 public:
  using Tiles = std::vector<StoredTile>;

  /// `spill`: a file instead of memory; empty: none.
  StoredMatrix(Engine& engine, const std::string& spill);
  ~StoredMatrix();
  StoredMatrix(const StoredMatrix&) = delete;
  StoredMatrix& operator=(const StoredMatrix&) = delete;

  void plan(Split split, const Storage& storage, std::size_t parts);
  /// Sets the shapes of the plan. Errors: as pack().
  void store(std::size_t part, const PartSource& source, const SolverOptions& options,
             PartPlan& plan);
  /// Copies of what tasks other than products read.
  void add_heads(std::span<const PartPlan> plans);
  /// The same part of other values. Errors: invalid_argument if elements are elsewhere.
  Tiles make_again(std::size_t part, const PartSource& source, const SolverOptions& options,
                   const PartPlan& plan);
  /// Takes what make_again() made of each part, and leaves what was there.
  void exchange(std::vector<Tiles>& made, std::span<const PartPlan> plans);

  Data matrix(std::size_t part) const { return data_[part].front(); }
  Data head(std::size_t part) const { return heads_.empty() ? matrix(part) : heads_[part]; }
  std::span<const Data> remainders(std::size_t part) const {
    return std::span(data_[part]).subspan(1);
  }

 private:
  void each_sheet(const PartSource& source, const PartPlan& plan, const WorkOnSheet& work) const;

  Engine& engine_;
  TileMemory memory_;  ///< Of all tiles.
  Split split_ = Split::rows;
  Storage storage_;
  std::vector<Tiles> tiles_;             ///< By part and sheet.
  std::vector<std::vector<Data>> data_;  ///< The same.
  Tiles head_tiles_;                     ///< Empty if the devices hold all parts.
  std::vector<Data> heads_;              ///< The same.
};

}  // namespace quadriga::sparse
