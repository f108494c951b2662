// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/level_matrix.cpp: halos, transfers and tiles, as content.cpp makes them of A.
#include "sparse/level_matrix.h"

#include "engine/engine_access.h"
#include "sparse/content.h"

namespace quadriga::sparse {

LevelMatrix::LevelMatrix(Engine& engine, const CsrView& a, const Cuts& cuts, const Storage& storage,
                         const SolverOptions& options)
    : engine_(engine) {
  const std::size_t count = cuts.rows.size() - 1;
  const RowUnits units{storage.block_rows, storage.dense_rows};
  std::vector<Halo> halos(count);
  std::vector<std::vector<std::int64_t>> send_rows(count);
  const auto own = [&](std::size_t part) {
    return IndexRange{cuts.columns[part], cuts.columns[part + 1]};
  };
  for (std::size_t part = 0; part < count; ++part)
    halos[part] =
        find_halo(a, {cuts.rows[part], cuts.rows[part + 1]}, own(part), units, on_host(engine));
  transfers_ = plan_exchange(halos, cuts.columns);
  plans_.resize(count);
  for (const HaloTransfer& each : transfers_) {
    const auto from = static_cast<std::size_t>(each.from);
    const auto to = static_cast<std::size_t>(each.to);
    const auto begin = halos[to].columns.begin() + each.first;
    send_rows[from].insert(send_rows[from].end(), begin, begin + each.count);
    plans_[from].sends.push_back(each);
    plans_[to].arrivals.push_back(each);
  }
  tiles_.resize(count);
  for (std::size_t part = 0; part < count; ++part) {
    const PartRows rows{cuts.rows[part], cuts.rows[part + 1], &halos[part], send_rows[part],
                        own(part)};
    PartShape& shape = plans_[part].shape;
    RowPieces pieces{on_host(engine)};
    shape = shape_of(a, rows, storage, pieces);
    tiles_[part] =
        std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(shape.bytes));
    pack(a, rows, shape, options, pieces, tiles_[part].get());
  }
  for (std::size_t part = 0; part < count; ++part) {
    const std::int64_t bytes = plans_[part].shape.bytes;
    data_.push_back(EngineAccess::add(
        engine, no_device, {tiles_[part].get(), bytes, 1, bytes, DType::bytes}, {}, true));
  }
}

LevelMatrix::~LevelMatrix() {
  try {
    engine_.remove(data_, true);
  } catch (...) {
    // An engine that has broken down said so where somebody waited.
  }
}

}  // namespace quadriga::sparse
