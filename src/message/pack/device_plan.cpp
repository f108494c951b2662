// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/device_plan.cpp: chooses the kernel of a part and computes its numbers.
#include "message/pack/device_plan.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

namespace quadriga::message {
namespace {

// What memory moves at least: closer neighbours should be moved together.
constexpr std::int64_t sector_bytes = 32;
constexpr int window_bytes = 16;

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; }

PlanLeaf leaf_of(const Canonical& form, const ListTable& table) {
  if (form.leaf == Leaf::run) return PlanLeaf::run;
  if (form.leaf == Leaf::taper) return PlanLeaf::taper;
  return table.positions == nullptr ? PlanLeaf::equal_runs : PlanLeaf::list;
}

// The power of 2, at most 16, that divides all lengths, places and addresses.
int granule_of(const Canonical& form, const PlanRequest& request, const ListTable& table,
               std::int64_t leaf_begin) {
  std::int64_t all = window_bytes | form.origin | request.begin | request.end;
  all |= static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(request.data) |
                                   reinterpret_cast<std::uintptr_t>(request.packed));
  if (!form.strides.empty() || form.leaf == Leaf::run) all |= form.block_bytes;
  for (const Stride& stride : form.strides) all |= stride.bytes;
  if (form.leaf == Leaf::taper)
    all |= form.taper.offset_step | form.taper.first_bytes | form.taper.bytes_step;
  if (form.leaf == Leaf::list) all |= table.divisors | leaf_begin;
  return 1 << std::countr_zero(static_cast<std::uint64_t>(all));
}

std::int64_t size_of_stride(const PlanLevel& level) { return std::abs(level.bytes); }

// The level whose neighbours share a sector though they aren't packed side by side; 0: none.
int level_across(const PackPlan& plan) {
  if (plan.leaf != PlanLeaf::run || plan.levels < 2 || plan.block.divisor != plan.granule) return 0;
  int nearest = 0;
  for (int i = 1; i < plan.levels; ++i)
    if (size_of_stride(plan.level[i]) < size_of_stride(plan.level[nearest])) nearest = i;
  // Fewer than a sector's elements side by side, on either side, gain nothing by shared memory.
  const std::int64_t least = sector_bytes / plan.granule;
  const bool pays = size_of_stride(plan.level[nearest]) < sector_bytes &&
                    plan.level[nearest].count.divisor >= least &&
                    plan.level[0].count.divisor >= 2 * least;
  return pays ? nearest : 0;
}

void plan_transpose(PackPlan& plan) {
  TransposePlan& transpose = plan.transpose;
  const std::int64_t edge = transpose_edge(plan.granule);
  const PlanLevel &along = plan.level[0], &across = plan.level[transpose.across];
  transpose.pitch = plan.granule;
  for (int i = 0; i < transpose.across; ++i) transpose.pitch *= plan.level[i].count.divisor;
  std::int64_t batches = 1;
  for (int i = 1; i < plan.levels; ++i)
    if (i != transpose.across) batches *= plan.level[i].count.divisor;
  std::int64_t tiles_across = rounded_up(across.count.divisor, edge);
  if (transpose.across == 1) {  // A segment is a range of batches, or of rows of one.
    const std::int64_t batch_bytes = transpose.pitch * across.count.divisor;
    transpose.first_batch = plan.begin / batch_bytes;
    batches = rounded_up(plan.end, batch_bytes) - transpose.first_batch;
    if (batches == 1) {
      const std::int64_t before = transpose.first_batch * batch_bytes,
                         band = transpose.pitch * edge;
      transpose.first_tile_across = (plan.begin - before) / band;
      tiles_across = rounded_up(plan.end - before, band) - transpose.first_tile_across;
    }
  }
  const std::int64_t tiles_along = rounded_up(along.count.divisor, edge);
  transpose.tiles_along = FastDivision(tiles_along);
  transpose.tiles_across = FastDivision(tiles_across);
  plan.tiles = tiles_along * tiles_across * batches;
}

std::int64_t tiles_of(std::int64_t bytes, int unit) {
  return rounded_up(rounded_up(bytes, unit), std::int64_t{granules_a_thread(unit)} * tile_threads);
}

void choose_path(PackPlan& plan, const Canonical& form, int element_bytes) {
  const std::int64_t bytes = plan.end - plan.begin;
  if (element_bytes != 0) {
    plan.tiles = tiles_of(bytes, element_bytes);
    return;
  }
  plan.transpose.across = level_across(plan);
  if (plan.transpose.across != 0) {
    plan.path = PlanPath::transpose;
    plan_transpose(plan);
  } else if (plan.granule < 8 && form.block_bytes / form.leaf_runs() >= 4 * window_bytes) {
    plan.path = PlanPath::windows;
    plan.tiles = tiles_of(bytes, window_bytes);
  } else {
    plan.tiles = tiles_of(bytes, plan.granule);
  }
}

}  // namespace

FastDivision::FastDivision(std::int64_t by) noexcept : divisor(by) {
  __extension__ using Wide = unsigned __int128;
  const auto unsigned_by = static_cast<std::uint64_t>(by);
  shift = static_cast<int>(std::bit_width(unsigned_by - 1));
  multiplier =
      static_cast<std::uint64_t>(((Wide{1} << (63 + shift)) + unsigned_by - 1) / unsigned_by);
}

PackPlan plan_of(const Canonical& form, const PlanRequest& request, const ListTable& table,
                 std::int64_t leaf_begin) {
  PackPlan plan;
  plan.data = request.data;
  plan.packed = request.packed;
  plan.begin = request.begin;
  plan.end = request.end;
  plan.origin = form.origin;
  plan.leaf_begin = leaf_begin;
  plan.block = FastDivision(form.block_bytes);
  plan.taper = form.taper;
  plan.table = table;
  plan.levels = static_cast<int>(form.strides.size());
  for (int i = 0; i < plan.levels; ++i) {
    const Stride& stride = form.strides[static_cast<std::size_t>(plan.levels - 1 - i)];
    plan.level[i] = {FastDivision(stride.count), stride.bytes};
  }
  plan.leaf = leaf_of(form, table);
  plan.granule = granule_of(form, request, table, leaf_begin);
  choose_path(plan, form, request.element_bytes);
  return plan;
}

std::optional<MovePlan> move_plan_of(const Canonical& from, std::byte* from_data,
                                     const Canonical& to, std::byte* to_data, std::int64_t begin,
                                     std::int64_t end) {
  const auto takes = [](const Canonical& form) {
    return form.leaf != Leaf::list && form.strides.size() <= most_plan_levels;
  };
  if (!takes(from) || !takes(to)) return std::nullopt;
  // Nothing is packed: an address as good as the data's own.
  MovePlan plan{plan_of(from, {from_data, from_data, begin, end}),
                plan_of(to, {to_data, to_data, begin, end})};
  if (plan.from.path != PlanPath::granules || plan.to.path != PlanPath::granules)
    return std::nullopt;
  plan.from.granule = plan.to.granule = std::min(plan.from.granule, plan.to.granule);
  plan.from.tiles = plan.to.tiles = tiles_of(end - begin, plan.to.granule);
  return plan;
}

Canonical with_few_strides(const Canonical& form) {
  if (form.strides.size() <= most_plan_levels) return form;
  const std::vector<ByteRun> runs = runs_of(form);
  Canonical listed;
  listed.leaf = Leaf::list;
  auto list = std::make_shared<RunList>();
  for (const ByteRun& run : runs) {
    list->push_back({run.offset, listed.block_bytes});
    listed.block_bytes += run.bytes;
  }
  list->push_back({0, listed.block_bytes});
  listed.list = std::move(list);
  return listed;
}

}  // namespace quadriga::message
