// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/device_plan.h: how a device moves a part of a message: kernel and numbers.
//
// A plan says where each packed byte is without walking over those before it, so that any thread
// can begin anywhere. Kernels and the tests on the host compute with the same functions.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "message/layout/form.h"

namespace quadriga::message {

/// Division of numbers below 2^63 by one known before, without dividing.
/// Source:  Granlund, Montgomery, Division by invariant integers using multiplication, PLDI 1994.
struct FastDivision {
  FastDivision() = default;
  /// divisor: 1 to 2^62.
  explicit FastDivision(std::int64_t divisor) noexcept;
  constexpr std::int64_t quotient(std::int64_t value) const noexcept {
    __extension__ using Wide = unsigned __int128;
    const auto twice = static_cast<std::uint64_t>(value) * 2;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>((Wide{multiplier} * twice) >> 64) >>
                                     shift);
  }

  std::uint64_t multiplier = std::uint64_t{1} << 63;
  std::int64_t divisor = 1;
  int shift = 0;
};

/// Runs of a list, or a slice of them, as a device reads them; positions count from the slice's
/// first packed byte. One allocation holds all that is pointed to.
struct ListTable {
  const void* offsets = nullptr;  ///< (offset - low) >> grain_shift of each run, 4 or 8 bytes each.
  const void* positions = nullptr;       ///< Of each run and the end; null: all are of one length.
  const std::uint32_t* first = nullptr;  ///< The run that holds the first byte of each unit.
  std::int64_t low = 0;
  std::int64_t runs = 0;
  FastDivision run;           ///< The length of runs that are of one.
  std::int64_t divisors = 0;  ///< Whatever power of 2 divides this divides all lengths and places.
  int grain_shift = 0;
  bool wide_offsets = false;
  bool wide_positions = false;
};

/// Packed bytes of a list that are found together.
inline constexpr int list_unit_shift = 10;

/// Which kernel moves a part.
enum class PlanPath : std::uint8_t {
  granules,   ///< A granule a thread: as large as all lengths and places allow.
  windows,    ///< Long runs at odd places: 16 bytes that are aligned where they are written.
  transpose,  ///< Tiles through shared memory: neighbours in memory aren't packed side by side.
};

enum class PlanLeaf : std::uint8_t { run, taper, equal_runs, list };

struct PlanLevel {
  FastDivision count;
  std::int64_t bytes = 0;
};

/// Strides of a plan; a form with more is given as a list.
inline constexpr int most_plan_levels = 8;
/// Threads that share a tile.
inline constexpr int tile_threads = 256;
inline constexpr int warp_threads = 32;

/// The edge of the squares of elements in which a transpose moves.
constexpr int transpose_edge(int granule) noexcept { return granule >= 8 ? 32 : 64; }
/// Granules that a thread moves at once, so that enough bytes are on their way.
constexpr int granules_a_thread(int granule) noexcept { return granule == 16 ? 4 : 8; }

/// Tiles of a part's transpose: which levels are its sides, and where it begins.
struct TransposePlan {
  FastDivision tiles_along;   ///< Tiles along the innermost level, which is packed side by side.
  FastDivision tiles_across;  ///< Tiles along the level that lies side by side in memory.
  std::int64_t first_tile_across = 0;
  std::int64_t first_batch = 0;
  std::int64_t pitch = 0;  ///< Packed bytes from an index to the next of the level across.
  int across = 1;          ///< That level, counted from the innermost one.
};

/// A part of a message: packed bytes begin to end of a stream whose byte 0 is in the first block.
struct PackPlan {
  std::byte* data = nullptr;    ///< What offsets count from.
  std::byte* packed = nullptr;  ///< Where byte `begin` is.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t tiles = 0;  ///< That its kernel works on.
  std::int64_t origin = 0;
  std::int64_t leaf_begin = 0;  ///< Packed byte of the leaf where its table begins.
  FastDivision block;           ///< Packed bytes of a leaf.
  Taper taper;
  ListTable table;
  TransposePlan transpose;
  PlanLevel level[most_plan_levels];  ///< Innermost first.
  int levels = 0;
  int granule = 1;  ///< A power of 2, at most 16, that divides every length, place and address.
  PlanPath path = PlanPath::granules;
  PlanLeaf leaf = PlanLeaf::run;
};

/// Where a packed byte is.
struct BytePlace {
  std::int64_t offset = 0;
  std::int64_t left = 0;    ///< Bytes from here to the end of its run.
  std::int64_t passed = 0;  ///< Bytes of its run before it.
};

/// The row of a taper that holds its packed byte `at`: the root of a quadratic equation, put right.
constexpr std::int64_t taper_row(const Taper& taper, std::int64_t at) noexcept {
  const auto step = static_cast<double>(taper.bytes_step), sought = static_cast<double>(at);
  const double linear = static_cast<double>(taper.first_bytes) - step / 2;
  const double square = linear * linear + 2 * step * sought;
  const double root = std::sqrt(square > 0 ? square : 0.0);
  const double row = linear > 0 ? 2 * sought / (linear + root) : (root - linear) / step;
  std::int64_t found = static_cast<std::int64_t>(row);
  if (found > taper.rows - 1) found = taper.rows - 1;
  while (found > 0 && taper.before(found) > at) --found;
  while (found + 1 < taper.rows && taper.before(found + 1) <= at) ++found;
  return found;
}

constexpr std::int64_t table_entry(const void* entries, bool wide, std::int64_t index) noexcept {
  return wide ? static_cast<const std::int64_t*>(entries)[index]
              : static_cast<std::int64_t>(static_cast<const std::uint32_t*>(entries)[index]);
}

constexpr std::int64_t run_offset(const ListTable& table, std::int64_t run) noexcept {
  return table.low + (table_entry(table.offsets, table.wide_offsets, run) << table.grain_shift);
}

/// The run of a list that holds packed byte `at` of its table.
constexpr std::int64_t listed_run(const ListTable& table, std::int64_t at) noexcept {
  const std::int64_t unit = at >> list_unit_shift;
  std::int64_t low = table.first[unit], high = std::int64_t{table.first[unit + 1]} + 1;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (table_entry(table.positions, table.wide_positions, middle) <= at ? low : high) = middle;
  }
  return low;
}

/// Where byte `at` of a leaf is, from the leaf's first byte.
template <PlanLeaf leaf>
constexpr BytePlace place_in_leaf(const PackPlan& plan, std::int64_t at) noexcept {
  if constexpr (leaf == PlanLeaf::run) {
    return {at, plan.block.divisor - at, at};
  } else if constexpr (leaf == PlanLeaf::taper) {
    const std::int64_t row = taper_row(plan.taper, at);
    const std::int64_t passed = at - plan.taper.before(row);
    return {row * plan.taper.offset_step + passed, plan.taper.length(row) - passed, passed};
  } else if constexpr (leaf == PlanLeaf::equal_runs) {
    const std::int64_t in_table = at - plan.leaf_begin;
    const std::int64_t run = plan.table.run.quotient(in_table);
    const std::int64_t passed = in_table - run * plan.table.run.divisor;
    return {run_offset(plan.table, run) + passed, plan.table.run.divisor - passed, passed};
  } else {
    const std::int64_t in_table = at - plan.leaf_begin;
    const std::int64_t run = listed_run(plan.table, in_table);
    const bool wide = plan.table.wide_positions;
    const std::int64_t passed = in_table - table_entry(plan.table.positions, wide, run);
    return {run_offset(plan.table, run) + passed,
            table_entry(plan.table.positions, wide, run + 1) - in_table, passed};
  }
}

/// Where byte `at` of the stream is, from `data`.
template <PlanLeaf leaf>
constexpr BytePlace place_of(const PackPlan& plan, std::int64_t at) noexcept {
  std::int64_t block = plan.levels == 0 ? 0 : plan.block.quotient(at);
  BytePlace place = place_in_leaf<leaf>(plan, at - block * plan.block.divisor);
  place.offset += plan.origin;
  for (int level = 0; level < plan.levels; ++level) {
    const PlanLevel& each = plan.level[level];
    const std::int64_t outer = level + 1 < plan.levels ? each.count.quotient(block) : 0;
    place.offset += (block - outer * each.count.divisor) * each.bytes;
    block = outer;
  }
  return place;
}

/// The same for any leaf.
constexpr BytePlace place_of(const PackPlan& plan, std::int64_t at) noexcept {
  if (plan.leaf == PlanLeaf::run) return place_of<PlanLeaf::run>(plan, at);
  if (plan.leaf == PlanLeaf::taper) return place_of<PlanLeaf::taper>(plan, at);
  if (plan.leaf == PlanLeaf::equal_runs) return place_of<PlanLeaf::equal_runs>(plan, at);
  return place_of<PlanLeaf::list>(plan, at);
}

/// What a part moves, before it is known where tables are.
struct PlanRequest {
  std::byte* data = nullptr;
  std::byte* packed = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  int element_bytes = 0;  ///< A reduction's; 0: bytes are only moved.
};

/// The plan of a form without a list, or of one slice of its list: `table` describes the runs whose
/// first packed byte is `leaf_begin`.
PackPlan plan_of(const Canonical& form, const PlanRequest& request, const ListTable& table = {},
                 std::int64_t leaf_begin = 0);

/// A part that goes from one place to another without being packed: plans of the same bytes, with
/// one granule and as many tiles.
struct MovePlan {
  PackPlan from, to;
};

/// What moves packed bytes `begin` to `end` of two streams that agree; nothing if that takes a
/// list, a transpose or windows, which are quicker packed and unpacked.
std::optional<MovePlan> move_plan_of(const Canonical& from, std::byte* from_data,
                                     const Canonical& to, std::byte* to_data, std::int64_t begin,
                                     std::int64_t end);

/// The form itself, or one with fewer strides, its blocks listed.
/// Errors: too_large beyond most_listed_runs.
Canonical with_few_strides(const Canonical& form);

}  // namespace quadriga::message
