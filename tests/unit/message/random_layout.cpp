// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/random_layout.cpp: makers of layouts and, beside them, loops over elements.
#include "unit/message/random_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace quadriga::message {
namespace {

using Numbers = std::vector<std::int64_t>;

std::int64_t between(Random& random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

// Seldom none: nothing of nothing hides what is made inside it.
std::int64_t some(Random& random, std::int64_t most) {
  return random.chance(0.03) ? 0 : between(random, 1, most);
}

// Copies of a layout at places in bytes; bounds are those of all copies.
PlainLayout placed(const std::vector<std::pair<std::int64_t, const PlainLayout*>>& places) {
  PlainLayout result;
  std::int64_t low = INT64_MAX, high = INT64_MIN;
  for (const auto& [offset, of] : places) {
    for (const PlainElement& each : of->elements)
      result.elements.push_back({each.offset + offset, each.type});
    low = std::min(low, offset + of->lower);
    high = std::max(high, offset + of->lower + of->extent);
  }
  if (!places.empty()) {
    result.lower = low;
    result.extent = high - low;
  }
  return result;
}

PlainLayout placed_at(const Numbers& offsets, const PlainLayout& of) {
  std::vector<std::pair<std::int64_t, const PlainLayout*>> places;
  for (const std::int64_t offset : offsets) places.emplace_back(offset, &of);
  return placed(places);
}

DrawnLayout element(Random& random) {
  const auto type =
      static_cast<ElementType>(random.below(4) ? 12 + random.below(2) : random.below(16));
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  return {type, {{{0, type}}, 0, bytes}, std::string(name(type))};
}

DrawnLayout contiguous(Random& random, const DrawnLayout& of) {
  const std::int64_t count = some(random, 5);
  Numbers offsets;
  for (std::int64_t i = 0; i < count; ++i) offsets.push_back(i * of.plain.extent);
  return {Layout::contiguous(count, of.layout), placed_at(offsets, of.plain),
          fmt::format("contiguous({}, {})", count, of.text)};
}

DrawnLayout vector(Random& random, const DrawnLayout& of) {
  const std::int64_t count = some(random, 4), length = some(random, 3);
  const std::int64_t stride = between(random, -4, 6);
  Numbers offsets;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j < length; ++j) offsets.push_back((i * stride + j) * of.plain.extent);
  }
  return {Layout::vector(count, length, stride, of.layout), placed_at(offsets, of.plain),
          fmt::format("vector({}, {}, {}, {})", count, length, stride, of.text)};
}

DrawnLayout indexed(Random& random, const DrawnLayout& of) {
  Numbers lengths, displacements, offsets;
  const std::int64_t blocks = some(random, 6);
  std::int64_t at = between(random, -3, 3);
  for (std::int64_t i = 0; i < blocks; ++i) {
    lengths.push_back(some(random, 3));
    displacements.push_back(at);
    for (std::int64_t j = 0; j < lengths.back(); ++j) offsets.push_back((at + j) * of.plain.extent);
    at += random.below(3) ? lengths.back() + between(random, 0, 2) : between(random, -3, 6);
  }
  return {Layout::indexed(lengths, displacements, of.layout), placed_at(offsets, of.plain),
          fmt::format("indexed({}, {}, {})", lengths, displacements, of.text)};
}

DrawnLayout structure(Random& random, const DrawnLayout& of, const DrawnLayout& other) {
  Numbers lengths, displacements;
  std::vector<Layout> fields;
  std::vector<std::pair<std::int64_t, const PlainLayout*>> places;
  std::int64_t at = between(random, 0, 3) * 4;
  for (const DrawnLayout* each : {&of, &other, &of}) {
    if (!random.below(3)) continue;
    lengths.push_back(some(random, 2));
    displacements.push_back(at);
    fields.push_back(each->layout);
    for (std::int64_t j = 0; j < lengths.back(); ++j)
      places.emplace_back(at + j * each->plain.extent, &each->plain);
    at += lengths.back() * each->plain.extent + between(random, 0, 2) * 4;
  }
  return {Layout::structure(lengths, displacements, fields), placed(places),
          fmt::format("structure({}, {}, {} | {})", lengths, displacements, of.text, other.text)};
}

DrawnLayout resized(Random& random, const DrawnLayout& of) {
  const std::int64_t lower = between(random, -2, 2) * 4, extent = between(random, -2, 12) * 4;
  PlainLayout plain = of.plain;
  plain.lower = lower;
  plain.extent = extent;
  return {Layout::resized(of.layout, lower, extent), plain,
          fmt::format("resized({}, {}, {})", lower, extent, of.text)};
}

// Calls `visit` with the index of each element of an array part, the fastest dimension innermost.
template <class Visit>
void for_each_index(const std::vector<Numbers>& along, StorageOrder order, Visit visit) {
  Numbers index(along.size());
  const auto step = [&](auto& self, std::size_t level) -> void {
    if (level == along.size()) return visit(index);
    const std::size_t axis = order == StorageOrder::c ? level : along.size() - 1 - level;
    for (const std::int64_t each : along[axis]) {
      index[axis] = each;
      self(self, level + 1);
    }
  };
  step(step, 0);
}

std::int64_t linear(const Numbers& index, const Numbers& shape, StorageOrder order) {
  std::int64_t result = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = order == StorageOrder::c ? i : shape.size() - 1 - i;
    result = result * shape[axis] + index[axis];
  }
  return result;
}

// The elements of an array of `shape` whose indices are listed along each dimension.
PlainLayout part_of(const Numbers& shape, const std::vector<Numbers>& along, StorageOrder order,
                    const PlainLayout& of) {
  Numbers offsets;
  for_each_index(along, order, [&](const Numbers& index) {
    offsets.push_back(linear(index, shape, order) * of.extent);
  });
  PlainLayout plain = placed_at(offsets, of);
  plain.lower = of.lower;
  plain.extent = of.extent;
  for (const std::int64_t length : shape) plain.extent *= length;
  return plain;
}

DrawnLayout subarray(Random& random, const DrawnLayout& of) {
  Numbers shape, part, start;
  std::vector<Numbers> along;
  for (std::int64_t i = between(random, 1, 3); i-- > 0;) {
    shape.push_back(between(random, 1, 4));
    part.push_back(some(random, shape.back()));
    start.push_back(between(random, 0, shape.back() - part.back()));
    along.emplace_back();
    for (std::int64_t j = 0; j < part.back(); ++j) along.back().push_back(start.back() + j);
  }
  const StorageOrder order = random.chance(0.5) ? StorageOrder::c : StorageOrder::fortran;
  return {Layout::subarray(shape, part, start, order, of.layout),
          part_of(shape, along, order, of.plain),
          fmt::format("subarray({}, {}, {}, {}, {})", shape, part, start, static_cast<int>(order),
                      of.text)};
}

DrawnLayout block_cyclic(Random& random, const DrawnLayout& of) {
  BlockCyclic part;
  std::vector<Numbers> along;
  for (std::int64_t i = between(random, 1, 2); i-- > 0;) {
    part.shape.push_back(some(random, 9));
    part.block.push_back(between(random, 1, 3));
    part.processes.push_back(between(random, 1, 3));
    part.coordinates.push_back(between(random, 0, part.processes.back() - 1));
    along.emplace_back();
    for (std::int64_t j = 0; j < part.shape.back(); ++j) {
      if (j / part.block.back() % part.processes.back() == part.coordinates.back())
        along.back().push_back(j);
    }
  }
  part.order = random.chance(0.5) ? StorageOrder::c : StorageOrder::fortran;
  part.in_whole = random.chance(0.7);
  Numbers shape = part.shape;
  for (std::size_t axis = 0; !part.in_whole && axis < shape.size(); ++axis) {
    shape[axis] = std::ssize(along[axis]);
    for (std::size_t i = 0; i < along[axis].size(); ++i)
      along[axis][i] = static_cast<std::int64_t>(i);
  }
  return {Layout::block_cyclic(part, of.layout), part_of(shape, along, part.order, of.plain),
          fmt::format("block_cyclic({}, {}, {}, {}, {}, {}, {})", part.shape, part.block,
                      part.processes, part.coordinates, static_cast<int>(part.order), part.in_whole,
                      of.text)};
}

DrawnLayout triangle(Random& random, const DrawnLayout& of) {
  TrianglePart triangle{.order = some(random, 6)};
  triangle.leading_dimension = triangle.order + between(random, 0, 2);
  triangle.half = random.chance(0.5) ? Half::lower : Half::upper;
  triangle.storage = random.chance(0.5) ? StorageOrder::c : StorageOrder::fortran;
  triangle.diagonal = random.chance(0.5);
  Numbers offsets;
  for (std::int64_t slow = 0; slow < triangle.order; ++slow) {
    for (std::int64_t fast = 0; fast < triangle.order; ++fast) {
      const std::int64_t row = triangle.storage == StorageOrder::c ? slow : fast;
      const std::int64_t column = triangle.storage == StorageOrder::c ? fast : slow;
      const bool inside = triangle.half == Half::lower ? row > column : row < column;
      if (inside || (row == column && triangle.diagonal))
        offsets.push_back((slow * triangle.leading_dimension + fast) * of.plain.extent);
    }
  }
  PlainLayout plain = placed_at(offsets, of.plain);
  plain.lower = of.plain.lower;
  plain.extent = triangle.order * triangle.leading_dimension * of.plain.extent;
  if (offsets.empty()) plain.lower = of.layout.lower();
  return {Layout::triangle(triangle, of.layout), plain,
          fmt::format("triangle({}, {}, {}, {}, {}, {})", triangle.order,
                      triangle.leading_dimension, static_cast<int>(triangle.half),
                      static_cast<int>(triangle.storage), triangle.diagonal, of.text)};
}

DrawnLayout view(Random& random, const DrawnLayout& of) {
  Numbers shape, strides;
  std::vector<Numbers> along;
  for (std::int64_t i = between(random, 0, 3); i-- > 0;) {
    shape.push_back(some(random, 4));
    strides.push_back(between(random, -6, 6) * 4);
    along.emplace_back();
    for (std::int64_t j = 0; j < shape.back(); ++j) along.back().push_back(j);
  }
  Numbers offsets;
  for_each_index(along, StorageOrder::c, [&](const Numbers& index) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
    offsets.push_back(offset);
  });
  PlainLayout plain = placed_at(offsets, of.plain);
  std::int64_t low = INT64_MAX, high = INT64_MIN;
  for (const PlainElement& each : plain.elements) {
    low = std::min(low, each.offset);
    high = std::max(high, each.offset + static_cast<std::int64_t>(size_of(each.type)));
  }
  plain.lower = plain.elements.empty() ? 0 : low;
  plain.extent = plain.elements.empty() ? 0 : high - low;
  return {Layout::view(shape, strides, of.layout), plain,
          fmt::format("view({}, {}, {})", shape, strides, of.text)};
}

DrawnLayout made(Random& random, int maker, const DrawnLayout& of, int depth) {
  switch (maker) {
    case 0:
      return contiguous(random, of);
    case 1:
      return vector(random, of);
    case 2:
      return indexed(random, of);
    case 3:
      return structure(random, of, draw_layout(random, depth - 1));
    case 4:
      return resized(random, of);
    case 5:
      return subarray(random, of);
    case 6:
      return block_cyclic(random, of);
    case 7:
      return triangle(random, of);
    default:
      return view(random, of);
  }
}

std::string runs_text(const std::vector<ByteRun>& runs) {
  std::string text;
  for (const ByteRun& run : runs) text += fmt::format(" {}+{}", run.offset, run.bytes);
  return text;
}

bool plain_overlap(const PlainLayout& plain) {
  std::map<std::int64_t, bool> taken;
  for (const PlainElement& each : plain.elements) {
    for (std::size_t i = 0; i < size_of(each.type); ++i) {
      if (!taken.emplace(each.offset + static_cast<std::int64_t>(i), true).second) return true;
    }
  }
  return false;
}

}  // namespace

DrawnLayout draw_layout(Random& random, int depth) {
  constexpr std::size_t most_elements = 600;
  if (depth <= 0) return element(random);
  const DrawnLayout of = draw_layout(random, depth - static_cast<int>(1 + random.below(2)));
  DrawnLayout result = made(random, static_cast<int>(random.below(9)), of, depth);
  return result.plain.elements.size() > most_elements ? of : result;
}

std::vector<ByteRun> plain_runs(const PlainLayout& plain) {
  std::vector<ByteRun> runs;
  for (const PlainElement& each : plain.elements)
    runs.push_back({each.offset, static_cast<std::int64_t>(size_of(each.type))});
  return runs;
}

ElementSignature plain_signature(const PlainLayout& plain) {
  ElementSignature result;
  for (const PlainElement& each : plain.elements)
    result = result.followed_by(ElementSignature(each.type));
  return result;
}

std::vector<std::byte> plain_pack(const PlainLayout& plain, const std::byte* data) {
  std::vector<std::byte> packed;
  for (const ByteRun& run : plain_runs(plain))
    packed.insert(packed.end(), data + run.offset, data + run.offset + run.bytes);
  return packed;
}

std::string layout_fault(const DrawnLayout& drawn) {
  const Layout& layout = drawn.layout;
  const std::vector<ByteRun> expected_runs = plain_runs(drawn.plain);
  const Canonical expected = form_of(expected_runs);
  std::vector<ByteRun> touching;
  for (const ByteRun& run : expected_runs) {
    if (!touching.empty() && touching.back().offset + touching.back().bytes == run.offset)
      touching.back().bytes += run.bytes;
    else
      touching.push_back(run);
  }
  const std::vector<ByteRun> runs = runs_of(layout.form());
  if (runs != touching)
    return fmt::format("runs{}, expected{}", runs_text(runs), runs_text(touching));
  if (layout.form() != expected) {
    const Layout found = Layout::from_parts(expected, layout.elements(), 0, 0);
    return fmt::format("form {}, from its runs {}:{}", layout.text(), found.text(),
                       runs_text(runs));
  }
  if (layout.elements() != plain_signature(drawn.plain)) return "another signature";
  if (layout.lower() != drawn.plain.lower || layout.extent() != drawn.plain.extent)
    return fmt::format("lower bound {} and extent {}, expected {} and {}", layout.lower(),
                       layout.extent(), drawn.plain.lower, drawn.plain.extent);
  if (layout.overlapping() != plain_overlap(drawn.plain))
    return fmt::format("overlapping() is {}", layout.overlapping());
  return {};
}

}  // namespace quadriga::message
