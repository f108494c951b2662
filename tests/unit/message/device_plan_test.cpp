// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/device_plan_test.cpp: plans of devices' kernels, run on the host, against a
// plain walk of a layout's elements.
#include "message/pack/device_plan.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <map>

#include "message/kernels/reduce_tiles.h"
#include "message/pack/device_table.h"
#include "message/pack/stream.h"
#include "sanitized.h"
#include "unit/message/plan_on_host.h"
#include "unit/message/random_layout.h"

namespace quadriga::message {
namespace {

using Bytes = std::vector<std::byte>;
using Numbers = std::vector<std::int64_t>;

TEST(FastDivision, DividesAsTheProcessorDoes) {
  Random random(1);
  for (int i = 0; i < 200000; ++i) {
    const auto divisor =
        static_cast<std::int64_t>(1 + (random() >> (2 + random.below(62))) % (1ull << 62));
    const auto value = static_cast<std::int64_t>(random() >> (1 + random.below(63)));
    const FastDivision by(divisor);
    ASSERT_EQ(by.quotient(value), value / divisor) << value << " / " << divisor;
    const std::int64_t near = value / divisor * divisor;
    ASSERT_EQ(by.quotient(near), near / divisor);
    if (near == 0) continue;
    ASSERT_EQ(by.quotient(near - 1), (near - 1) / divisor);
  }
}

TEST(TaperRow, IsTheRowThatHoldsAByte) {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    const auto rows =
        static_cast<std::int64_t>(2 + random.below(random.chance(0.5) ? 20 : 1 << 20));
    const auto step = static_cast<std::int64_t>(1 + random.below(40));
    const auto shortest = static_cast<std::int64_t>(1 + random.below(100));
    Taper taper{rows, 1 << 20, shortest, step};
    if (random.chance(0.5)) taper = {rows, 1 << 20, shortest + (rows - 1) * step, -step};
    const auto row = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows)));
    ASSERT_EQ(taper_row(taper, taper.before(row)), row);
    ASSERT_EQ(taper_row(taper, taper.before(row + 1) - 1), row);
  }
}

// Memory of a layout with odd places for what is packed, and margins that must not change.
struct Field {
  Field(Random& random, const Layout& each)
      : layout(each),
        memory(static_cast<std::size_t>(each.bounds().second - each.bounds().first) + 192),
        packed(static_cast<std::size_t>(each.bytes()) + 192) {
    for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
    for (std::byte& byte : packed) byte = static_cast<std::byte>(random());
    const bool aligned = random.chance(0.5);
    data = aligned_by(memory.data() + 64, -each.bounds().first) + (aligned ? 0 : random.below(32)) -
           each.bounds().first;
    stream = aligned_by(packed.data() + 64, 0) + (aligned ? 0 : random.below(32));
  }
  // So that the address that offsets count from is a multiple of 16.
  static std::byte* aligned_by(std::byte* from, std::int64_t shift) {
    const auto address = reinterpret_cast<std::uintptr_t>(from + shift);
    return from + (-address & 15);
  }
  Layout layout;
  Bytes memory, packed;
  std::byte* data;
  std::byte* stream;
};

// Plans of the packed bytes `begin` to `end`, their tables in `tables`.
std::vector<PackPlan> plans_of(const Canonical& form, const PlanRequest& whole,
                               std::int64_t most_runs, std::vector<std::vector<double>>& tables) {
  if (form.leaf != Leaf::list) return {plan_of(form, whole)};
  std::vector<PackPlan> plans;
  const bool sliced = form.blocks() == 1;
  for (const RunSlice& slice : slices_of(*form.list, sliced ? most_runs : std::int64_t{1} << 60)) {
    PlanRequest request = whole;
    if (sliced) {
      request.begin = std::max(whole.begin, slice.begin);
      request.end = std::min(whole.end, slice.end);
      request.packed += request.begin - whole.begin;
    }
    if (request.begin >= request.end) continue;
    const TableShape shape(*form.list, slice);
    auto* const at = reinterpret_cast<std::byte*>(tables.emplace_back(shape.bytes() / 8).data());
    shape.write(at);
    plans.push_back(plan_of(form, request, shape.at(at), slice.begin));
  }
  return plans;
}

using Seen = std::map<std::string, int>;

void note(const PackPlan& plan, Seen& seen) {
  constexpr const char* paths[] = {"granules", "windows", "transpose"};
  constexpr const char* leaves[] = {" of runs", " of a taper", " of equal runs", " of a list"};
  const std::string path = paths[static_cast<int>(plan.path)];
  ++seen[path + leaves[static_cast<int>(plan.leaf)]];
  ++seen[path + std::to_string(plan.granule)];
}

void check(Random& random, const Layout& layout, Seen& seen, const std::string& text) {
  Field field(random, layout);
  const auto bytes = static_cast<std::int64_t>(layout.bytes());
  if (bytes == 0) return;
  PlanRequest request{field.data, field.stream, 0, bytes};
  if (random.chance(0.5)) {
    request.begin = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bytes)));
    request.end =
        request.begin + 1 +
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bytes - request.begin)));
    if (random.chance(0.7)) {  // As segments are cut, in whole windows.
      request.begin &= ~15;
      request.end = std::min((request.end | 15) + 1, bytes);
    }
  }
  const auto offset = static_cast<std::size_t>(request.begin);
  const auto size = static_cast<std::size_t>(request.end - request.begin);
  std::vector<std::vector<double>> tables;
  const Canonical form = with_few_strides(layout.form());
  const auto most_runs = static_cast<std::int64_t>(1 + random.below(40));
  const std::vector<PackPlan> plans = plans_of(form, request, most_runs, tables);

  Bytes expected = field.packed;
  std::byte* const expected_at = expected.data() + (field.stream - field.packed.data());
  Packer(layout, field.data).pack(offset, {expected_at, size});
  for (const PackPlan& plan : plans) {
    note(plan, seen);
    run_plan<true>(plan);
  }
  ASSERT_EQ(field.packed, expected) << text;

  if (layout.overlapping()) return;
  for (std::size_t i = 0; i < size; ++i) field.stream[i] = static_cast<std::byte>(random());
  Bytes before = field.memory;
  std::byte* const before_at = before.data() + (field.data - field.memory.data());
  Unpacker(layout, before_at).unpack(offset, {field.stream, size});
  for (const PackPlan& plan : plans) run_plan<false>(plan);
  ASSERT_EQ(field.memory, before) << text;
}

TEST(DevicePlan, RandomLayoutsArePackedAsByThePlainWalk) {
  Seen seen;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const DrawnLayout drawn = draw_layout(random, 1 + static_cast<int>(seed % 4));
    check(random, drawn.layout, seen, drawn.text);
    if (HasFatalFailure()) return;
  }
  for (const char* path : {"granules of runs", "granules of a taper", "granules of equal runs",
                           "granules of a list", "granules16", "granules8", "granules1"})
    EXPECT_GT(seen[path], 0) << path;
}

// Large enough for windows and for squares.
TEST(DevicePlan, LongRunsAndTransposesArePackedAsByThePlainWalk) {
  Seen seen;
  const ElementType types[] = {ElementType::int8, ElementType::int16, ElementType::float32,
                               ElementType::float64, ElementType::complex128};
  for (std::uint64_t seed = 0; seed < (is_sanitized ? 60 : 300); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto upto = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(1 + random.below(most));
    };
    const Layout element = types[random.below(5)];
    const std::int64_t size = element.bytes();
    const std::int64_t rows = upto(150), columns = upto(150), gap = upto(20) - 1, many = upto(3);
    const std::int64_t ld = (columns + gap) * size;
    check(random, Layout::view(Numbers{columns, rows}, Numbers{size, ld}, element), seen, "a.T");
    check(random,
          Layout::view(Numbers{many, columns, rows}, Numbers{rows * ld + 64, size, ld}, element),
          seen, "many a.T");
    check(random,
          Layout::view(Numbers{columns, many, rows}, Numbers{size, rows * ld + 64, ld}, element),
          seen, "the middle");
    check(random, Layout::view(Numbers{columns, rows}, Numbers{-size, -ld}, element), seen, "back");
    check(random, Layout::vector(rows, columns, columns + gap + 1, element), seen, "sub-matrix");
    const Half half = random.chance(0.5) ? Half::lower : Half::upper;
    check(random,
          Layout::triangle({.order = rows, .leading_dimension = rows + gap, .half = half}, element),
          seen, "triangle");
    Numbers lengths, places;
    for (std::int64_t i = 0, at = 0; i < many * 20; ++i) {
      lengths.push_back(upto(200));
      places.push_back(at);
      at += lengths.back() + upto(9) - 1;
    }
    check(random, Layout::indexed(lengths, places, element), seen, "list");
    if (HasFatalFailure()) return;
  }
  for (const char* path :
       {"windows of runs", "windows of a taper", "windows of a list", "transpose of runs",
        "transpose1", "transpose2", "transpose4", "transpose8", "transpose16", "windows1"})
    EXPECT_GT(seen[path], 0) << path;
}

TEST(DevicePlan, ReductionsAreThoseOfTheHost) {
  for (std::uint64_t seed = 0; seed < element_types * reduce_operations * 4; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto type = static_cast<ElementType>(seed % element_types);
    const auto operation = static_cast<ReduceOperation>(seed / element_types % reduce_operations);
    const bool complex = type == ElementType::complex64 || type == ElementType::complex128;
    const bool ordered = operation == ReduceOperation::min || operation == ReduceOperation::max;
    const bool whole = type <= ElementType::uint64;
    if ((complex && ordered) || (!whole && operation >= ReduceOperation::land)) continue;
    if (type == ElementType::bytes && operation < ReduceOperation::band) continue;
    const auto rows = static_cast<std::int64_t>(1 + random.below(50));
    Field field(random, Layout::triangle({.order = rows, .leading_dimension = rows}, type));
    if (type == ElementType::boolean)
      for (Bytes* bytes : {&field.memory, &field.packed})
        for (std::byte& byte : *bytes) byte &= std::byte{1};
    const auto bytes = static_cast<std::size_t>(field.layout.bytes());
    Bytes expected = field.memory;
    Unpacker(field.layout, expected.data() + (field.data - field.memory.data()),
             combine_of(operation, type))
        .unpack(0, {field.stream, bytes});
    const PlanRequest request{field.data, field.stream, 0, field.layout.bytes(),
                              static_cast<int>(size_of(type))};
    const PackPlan plan = plan_of(field.layout.form(), request);
    with_element(type, operation, [&]<class T>(T, ReduceOperation done) {
      for (std::int64_t tile = 0; tile < plan.tiles; ++tile)
        for (int thread = 0; thread < tile_threads; ++thread)
          reduce_elements<T>(plan, tile, thread, done);
    });
    ASSERT_EQ(field.memory, expected) << name(operation) << " of " << name(type);
  }
}

// Elements of all types at odd and even places, as many threads as there are or fewer.
TEST(DevicePlan, ElementsSideBySideAreCombinedAsOnTheHost) {
  for (std::uint64_t seed = 0; seed < element_types * reduce_operations * 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto type = static_cast<ElementType>(seed % element_types);
    const auto operation = static_cast<ReduceOperation>(seed / element_types % reduce_operations);
    Combine combine;
    try {
      combine = combine_of(operation, type);
    } catch (const Error&) {
      continue;
    }
    const std::size_t size = size_of(type), count = random.below(700), bytes = count * size;
    std::array<Bytes, 3> all;
    for (Bytes& each : all) {
      each.resize(bytes + 64);
      for (std::byte& byte : each)
        byte = static_cast<std::byte>(random()) & std::byte(type == ElementType::boolean ? 1 : 255);
    }
    const bool aligned = random.chance(0.5);
    const auto place = [&](Bytes& each) {
      return each.data() +
             (aligned ? 16 - reinterpret_cast<std::uintptr_t>(each.data()) % 16 : random.below(32));
    };
    std::byte *const from = place(all[0]), *const with = place(all[1]);
    std::byte* const apart = place(all[2]);
    std::byte* const into = std::array{apart, from, with}[random.below(3)];
    Bytes expected(from, from + bytes);
    combine(expected.data(), with, count);
    const std::int64_t threads = 1 + static_cast<std::int64_t>(random.below(300));
    const CombinePlan plan{into, from, with, static_cast<std::int64_t>(count)};
    with_element(type, operation, [&]<class T>(T, ReduceOperation done) {
      for (std::int64_t thread = 0; thread < threads; ++thread)
        combine_elements<T>(plan, thread, threads, done);
    });
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), into))
        << name(operation) << " of " << name(type);
  }
}

TEST(DevicePlan, MoreStridesThanAPlanHasBecomeAList) {
  Numbers shape(12, 2), strides;
  for (std::int64_t i = 0, step = 3; i < 12; ++i, step *= 3) strides.insert(strides.begin(), step);
  const Layout layout = Layout::view(shape, strides, ElementType::int8);
  ASSERT_GT(layout.form().strides.size(), static_cast<std::size_t>(most_plan_levels));
  EXPECT_LE(with_few_strides(layout.form()).strides.size(),
            static_cast<std::size_t>(most_plan_levels));
  Seen seen;
  Random random(3);
  check(random, layout, seen, layout.text());
}

}  // namespace
}  // namespace quadriga::message
