// SPDX-License-Identifier: BSD-3-Clause
// src/message/layout/arrays.cpp: layouts of parts of arrays: subarrays, views, block-cyclic parts,
// triangles.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

#include "message/layout/layout.h"

namespace quadriga::message {
namespace {

void check_dimensions(std::string_view maker, std::string_view what, std::size_t given,
                      std::size_t expected) {
  if (given != expected)
    fail(Errc::invalid_argument, fmt::format("layout: {}'s {} has {} dimensions; expected {}",
                                             maker, what, given, expected));
}

void check_between(std::string_view what, std::size_t dimension, std::int64_t value,
                   std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    fail(Errc::invalid_argument, fmt::format("layout: {} {} is {}; expected {} to {}", what,
                                             dimension, value, least, most));
}

// The dimensions from the fastest to the slowest.
std::vector<std::size_t> from_fastest(std::size_t dimensions, StorageOrder order) {
  std::vector<std::size_t> axes(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i)
    axes[i] = order == StorageOrder::fortran ? i : dimensions - 1 - i;
  return axes;
}

ElementSignature elements_of(const Layout& of, const std::vector<std::int64_t>& counts) {
  std::int64_t total = 1;
  for (const std::int64_t count : counts) total = checked_product(total, count);
  return of.elements().repeated(static_cast<std::uint64_t>(total));
}

// One dimension of a part: how many blocks, how long, how far apart, and a last shorter one.
struct Dealt {
  std::int64_t first = 0;  // In elements of the memory that holds them.
  std::int64_t blocks = 0;
  std::int64_t length = 0;
  std::int64_t distance = 0;
  std::int64_t rest = 0;
  std::int64_t count() const noexcept { return blocks * length + rest; }
};

Dealt dealt(const BlockCyclic& part, std::size_t axis) {
  const std::int64_t shape = part.shape[axis], block = part.block[axis];
  const std::int64_t processes = part.processes[axis], here = part.coordinates[axis];
  check_between("block_cyclic's shape", axis, shape, 0, INT64_MAX);
  check_between("block_cyclic's block", axis, block, 1, INT64_MAX);
  check_between("block_cyclic's processes", axis, processes, 1, INT64_MAX);
  check_between("block_cyclic's coordinate", axis, here, 0, processes - 1);
  const std::int64_t round = checked_product(block, processes);
  Dealt result;
  result.length = block;
  result.distance = part.in_whole ? round : block;
  result.first = part.in_whole ? checked_product(block, here) : 0;
  result.blocks = shape / round;
  const std::int64_t left = shape % round - here * block;
  if (left >= block) ++result.blocks;
  if (left < block) result.rest = std::max<std::int64_t>(left, 0);
  return result;
}

// One more dimension: `bytes` between neighbours.
Canonical along(const Canonical& form, const Dealt& part, std::int64_t bytes) {
  const std::int64_t distance = checked_product(part.distance, bytes);
  const Canonical blocks = repeated(repeated(form, part.length, bytes), part.blocks, distance);
  const Canonical rest =
      moved(repeated(form, part.rest, bytes), checked_product(part.blocks, distance));
  return moved(joined({blocks, rest}), checked_product(part.first, bytes));
}

// Rows of the triangle from the first that has elements on; in elements.
struct TriangleRows {
  std::int64_t count = 0;
  std::int64_t first_offset = 0;
  std::int64_t offset_step = 0;
  std::int64_t first_length = 0;
  std::int64_t length_step = 0;
};

TriangleRows rows_of(const TrianglePart& triangle) {
  const std::int64_t skipped = triangle.diagonal ? 0 : 1;
  const std::int64_t count = std::max<std::int64_t>(triangle.order - skipped, 0);
  // Lower columns lie as upper rows do.
  const bool grows = (triangle.half == Half::lower) == (triangle.storage == StorageOrder::c);
  const std::int64_t ld = triangle.leading_dimension;
  if (grows) return {count, skipped * ld, ld, 1, 1};
  return {count, skipped, ld + 1, count, -1};
}

}  // namespace

Layout Layout::subarray(std::span<const std::int64_t> shape, std::span<const std::int64_t> part,
                        std::span<const std::int64_t> start, StorageOrder order, const Layout& of) {
  check_dimensions("subarray", "part", part.size(), shape.size());
  check_dimensions("subarray", "start", start.size(), shape.size());
  Canonical form = of.form();
  std::int64_t bytes = of.extent();
  for (const std::size_t axis : from_fastest(shape.size(), order)) {
    check_between("subarray's shape", axis, shape[axis], 0, INT64_MAX);
    check_between("subarray's part", axis, part[axis], 0, shape[axis]);
    check_between("subarray's start", axis, start[axis], 0, shape[axis] - part[axis]);
    form = moved(repeated(form, part[axis], bytes), checked_product(start[axis], bytes));
    bytes = checked_product(bytes, shape[axis]);
  }
  return from_parts(form, elements_of(of, {part.begin(), part.end()}), of.lower(), bytes);
}

Layout Layout::block_cyclic(const BlockCyclic& part, const Layout& of) {
  const std::size_t dimensions = part.shape.size();
  check_dimensions("block_cyclic", "block", part.block.size(), dimensions);
  check_dimensions("block_cyclic", "processes", part.processes.size(), dimensions);
  check_dimensions("block_cyclic", "coordinates", part.coordinates.size(), dimensions);
  Canonical form = of.form();
  std::vector<std::int64_t> counts;
  std::int64_t bytes = of.extent();
  for (const std::size_t axis : from_fastest(dimensions, part.order)) {
    const Dealt here = dealt(part, axis);
    form = along(form, here, bytes);
    counts.push_back(here.count());
    bytes = checked_product(bytes, part.in_whole ? part.shape[axis] : here.count());
  }
  return from_parts(form, elements_of(of, counts), of.lower(), bytes);
}

Layout Layout::triangle(const TrianglePart& triangle, const Layout& of) {
  check_between("triangle's order", 0, triangle.order, 0, INT32_MAX);
  check_between("triangle's leading dimension", 0, triangle.leading_dimension, triangle.order,
                INT64_MAX);
  const TriangleRows rows = rows_of(triangle);
  const std::int64_t size = of.extent();
  const std::int64_t bytes =
      checked_product(size, checked_product(triangle.leading_dimension, triangle.order));
  if (of.form() == run_form(0, size) && rows.count > 0) {
    const Taper taper{rows.count, rows.offset_step * size, rows.first_length * size,
                      rows.length_step * size};
    const auto total = static_cast<std::uint64_t>(rows.count * (rows.count + 1) / 2);
    return from_parts(taper_form(rows.first_offset * size, taper), of.elements().repeated(total),
                      of.lower(), bytes);
  }
  std::vector<std::int64_t> lengths, displacements;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    lengths.push_back(rows.first_length + row * rows.length_step);
    displacements.push_back(rows.first_offset + row * rows.offset_step);
  }
  return resized(indexed(lengths, displacements, of), of.lower(), bytes);
}

Layout Layout::view(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                    const Layout& of) {
  check_dimensions("view", "strides", strides.size(), shape.size());
  Canonical form = of.form();
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    check_between("view's shape", axis, shape[axis], 0, INT64_MAX);
    form = repeated(form, shape[axis], strides[axis]);
  }
  const auto [low, high] = form.bounds();
  return from_parts(form, elements_of(of, {shape.begin(), shape.end()}), low, high - low);
}

}  // namespace quadriga::message
