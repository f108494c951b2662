// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/stored_matrix.cpp: sheets are shaped, packed, and packed again with new values.
#include "sparse/stored_matrix.h"

#include <quadriga/error.h>

#include <algorithm>

#include "engine/engine_access.h"
#include "sparse/content.h"

namespace quadriga::sparse {
namespace {

constexpr auto elsewhere =
    "update(): A has elements in other places than before; make a new solver";

const PartShape& shape_of_sheet(const PartPlan& plan, std::size_t sheet) {
  return sheet == 0 ? plan.shape : plan.remainders[sheet - 1];
}

Data add_tile(Engine& engine, const StoredTile& tile, std::int64_t bytes) {
  return EngineAccess::add(engine, no_device, {tile.get(), bytes, 1, bytes, DType::bytes}, {},
                           true);
}

}  // namespace

StoredMatrix::StoredMatrix(Engine& engine, const std::string& spill)
    : engine_(engine), memory_(spill) {}

StoredMatrix::~StoredMatrix() {
  try {
    for (const std::vector<Data>& each : data_) engine_.remove(each, true);
    engine_.remove(heads_, true);
  } catch (...) {
    // An engine that has broken down said so where somebody waited.
  }
}

void StoredMatrix::plan(Split split, const Storage& storage, std::size_t parts) {
  split_ = split;
  storage_ = storage;
  tiles_.resize(parts);
  data_.resize(parts);
}

void StoredMatrix::each_sheet(const PartSource& source, const PartPlan& plan,
                              const WorkOnSheet& work) const {
  if (split_ == Split::rows) return work(0, source.matrix, source.rows, storage_);
  sparse::each_sheet(source.matrix, source.rows, storage_, plan.arrivals, source.first_rows,
                     on_host(engine_), work);
}

void StoredMatrix::store(std::size_t part, const PartSource& source, const SolverOptions& options,
                         PartPlan& plan) {
  each_sheet(
      source, plan,
      [&](std::size_t sheet, const CsrView& a, const PartRows& rows, const Storage& storage) {
        PartShape& shape = sheet == 0 ? plan.shape : plan.remainders.emplace_back();
        RowPieces pieces{on_host(engine_)};
        shape = shape_of(a, rows, storage, pieces);
        StoredTile& tile = tiles_[part].emplace_back(memory_.allocate(shape.bytes));
        pack(a, rows, shape, options, pieces, tile.get());
        data_[part].push_back(add_tile(engine_, tile, shape.bytes));
      });
  plan.shape.has_remainders = !plan.remainders.empty();
}

void StoredMatrix::add_heads(std::span<const PartPlan> plans) {
  for (std::size_t part = 0; part < plans.size(); ++part) {
    const std::int64_t bytes = plans[part].shape.head_bytes;
    const StoredTile& tile = head_tiles_.emplace_back(memory_.allocate(bytes));
    std::copy_n(tiles_[part].front().get(), bytes, tile.get());
    heads_.push_back(add_tile(engine_, tile, bytes));
  }
}

StoredMatrix::Tiles StoredMatrix::make_again(std::size_t part, const PartSource& source,
                                             const SolverOptions& options, const PartPlan& plan) {
  Tiles made;
  each_sheet(
      source, plan,
      [&](std::size_t sheet, const CsrView& a, const PartRows& rows, const Storage& storage) {
        const PartShape& shape = shape_of_sheet(plan, sheet);
        RowPieces pieces{on_host(engine_)};
        const PartShape found = shape_of(a, rows, storage, pieces);
        require(found.elements == shape.elements && found.narrow == shape.narrow, elsewhere);
        const StoredTile& tile = made.emplace_back(memory_.allocate(shape.bytes));
        pack(a, rows, shape, options, pieces, tile.get());
        require(same_pattern(shape, tile.get(), tiles_[part][sheet].get()), elsewhere);
      });
  return made;
}

void StoredMatrix::exchange(std::vector<Tiles>& made, std::span<const PartPlan> plans) {
  for (std::size_t part = 0; part < plans.size(); ++part) {
    for (std::size_t sheet = 0; sheet < made[part].size(); ++sheet) {
      const HostAccess access = engine_.on_host(data_[part][sheet], Access::write);
      std::byte* const tile = tiles_[part][sheet].get();
      const std::int64_t bytes = shape_of_sheet(plans[part], sheet).bytes;
      std::swap_ranges(tile, tile + bytes, made[part][sheet].get());
    }
    if (heads_.empty()) continue;
    const HostAccess head = engine_.on_host(heads_[part], Access::write);
    std::copy_n(tiles_[part].front().get(), plans[part].shape.head_bytes, head_tiles_[part].get());
  }
}

}  // namespace quadriga::sparse
