// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/pack_test.cpp: segments of packed streams against a plain walk of elements.
#include "message/pack/stream.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "message/pack/kernels.h"
#include "message/pack/walk.h"
#include "sanitized.h"
#include "unit/message/random_layout.h"

namespace quadriga::message {
namespace {

using Bytes = std::vector<std::byte>;
using Numbers = std::vector<std::int64_t>;

Bytes random_bytes(Random& random, std::size_t count) {
  Bytes bytes(count);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

// Where segments end, in an order drawn at random.
std::vector<std::pair<std::size_t, std::size_t>> segments(Random& random, std::size_t bytes,
                                                          std::size_t unit) {
  std::vector<std::pair<std::size_t, std::size_t>> result;
  const std::size_t most = 1 + random.below(random.chance(0.5) ? 40 : bytes / unit + 1);
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t size = std::min(bytes - at, unit * (1 + random.below(most)));
    result.emplace_back(at, size);
    at += size;
  }
  for (std::size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[random.below(i)]);
  return result;
}

// A drawn layout's memory, and the address that its offsets count from.
struct Memory {
  Memory(Random& random, const Layout& layout)
      : bytes(random_bytes(
            random, static_cast<std::size_t>(layout.bounds().second - layout.bounds().first) + 64)),
        shift(32 - layout.bounds().first) {}
  std::byte* data() { return bytes.data() + shift; }
  Bytes bytes;
  std::ptrdiff_t shift;
};

void check_packing(Random& random, const DrawnLayout& drawn) {
  Memory memory(random, drawn.layout);
  const Bytes expected = plain_pack(drawn.plain, memory.data());
  const Packer packer(drawn.layout, memory.data());
  ASSERT_EQ(packer.bytes(), expected.size());
  Bytes packed(expected.size() + 1, std::byte{0xa5});
  for (const auto& [at, size] : segments(random, expected.size(), 1))
    ASSERT_EQ(packer.pack(at, std::span(packed).subspan(at, size)), size);
  ASSERT_EQ(packed.back(), std::byte{0xa5}) << "beyond the end";
  packed.pop_back();
  ASSERT_EQ(packed, expected);
}

void check_unpacking(Random& random, const DrawnLayout& drawn) {
  Memory memory(random, drawn.layout);
  Bytes expected = memory.bytes;
  const Bytes stream = random_bytes(random, static_cast<std::size_t>(drawn.layout.bytes()));
  std::size_t at = 0;
  for (const ByteRun& run : plain_runs(drawn.plain)) {
    std::memcpy(expected.data() + memory.shift + run.offset, stream.data() + at,
                static_cast<std::size_t>(run.bytes));
    at += static_cast<std::size_t>(run.bytes);
  }
  const Unpacker unpacker(drawn.layout, memory.data());
  for (const auto& [begin, size] : segments(random, stream.size(), 1))
    unpacker.unpack(begin, std::span(stream).subspan(begin, size));
  ASSERT_EQ(memory.bytes, expected);
}

// As segments that exceed the cache are moved.
void check_past_the_cache(Random& random, const DrawnLayout& drawn) {
  if (drawn.layout.bytes() == 0) return;
  Memory memory(random, drawn.layout);
  const Bytes before = memory.bytes, expected = plain_pack(drawn.plain, memory.data());
  const auto begin = static_cast<std::int64_t>(random.below(expected.size()));
  const std::int64_t end = drawn.layout.bytes();
  Bytes packed(expected.size() + 64, std::byte{0xa5});
  const std::size_t shift = random.below(64);
  PieceMover<Way::gather> gather(memory.data(), packed.data() + shift, SIZE_MAX);
  Walk(drawn.layout.form(), begin, end, gather);
  gather.finish();
  Bytes found(packed.begin() + static_cast<std::ptrdiff_t>(shift), packed.end());
  found.resize(static_cast<std::size_t>(end - begin));
  ASSERT_EQ(found, Bytes(expected.begin() + begin, expected.end()));
  ASSERT_EQ(std::ranges::count(packed.begin() + static_cast<std::ptrdiff_t>(shift) + end - begin,
                               packed.end(), std::byte{0xa5}),
            64 - static_cast<std::ptrdiff_t>(shift) + begin);
  if (drawn.layout.overlapping()) return;
  for (const ByteRun& run : plain_runs(drawn.plain))
    std::memset(memory.data() + run.offset, 0, static_cast<std::size_t>(run.bytes));
  const Unpacker unpacker(drawn.layout, memory.data());
  unpacker.unpack(0, std::span(expected).first(static_cast<std::size_t>(begin)));
  PieceMover<Way::scatter> scatter(memory.data(), found.data(), SIZE_MAX);
  Walk(drawn.layout.form(), begin, end, scatter);
  scatter.finish();
  ASSERT_EQ(memory.bytes, before);
}

TEST(Pack, AnySegmentsEqualAPlainWalk) {
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    Random random(seed);
    const DrawnLayout drawn = draw_layout(random, 1 + static_cast<int>(seed % 4));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + drawn.text);
    check_packing(random, drawn);
    check_past_the_cache(random, drawn);
    if (!drawn.layout.overlapping()) check_unpacking(random, drawn);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Large enough for the kernels that copy by blocks, wide registers and past the cache.
TEST(Pack, LargeViewsEqualAPlainWalk) {
  for (std::uint64_t seed = 1; seed <= (is_sanitized ? 60 : 300); ++seed) {
    Random random(seed);
    const auto unit = static_cast<ElementType>(random.below(element_types));
    const auto bytes = static_cast<std::int64_t>(size_of(unit));
    const Layout of = Layout::contiguous(1 + static_cast<std::int64_t>(random.below(3)), unit);
    Numbers shape, strides;
    std::int64_t reach = of.extent() + static_cast<std::int64_t>(random.below(3)) * bytes;
    for (int i = 0; i < 3; ++i) {
      shape.push_back(1 + static_cast<std::int64_t>(random.below(i < 2 ? 70 : 9)));
      strides.push_back(random.chance(0.3) ? -reach : reach);
      reach *= shape.back();
      reach += static_cast<std::int64_t>(random.below(3)) * bytes;
    }
    std::array<std::size_t, 3> axes{0, 1, 2};
    for (std::size_t i = 3; i > 1; --i) std::swap(axes[i - 1], axes[random.below(i)]);
    DrawnLayout drawn;
    Numbers turned_shape, turned_strides;
    for (const std::size_t axis : axes) {
      turned_shape.push_back(shape[axis]);
      turned_strides.push_back(strides[axis]);
    }
    drawn.layout = Layout::view(turned_shape, turned_strides, of);
    for (std::int64_t i = 0; i < turned_shape[0]; ++i) {
      for (std::int64_t j = 0; j < turned_shape[1]; ++j) {
        for (std::int64_t k = 0; k < turned_shape[2] * of.count(); ++k) {
          const std::int64_t offset = i * turned_strides[0] + j * turned_strides[1] +
                                      k / of.count() * turned_strides[2] + k % of.count() * bytes;
          drawn.plain.elements.push_back({offset, unit});
        }
      }
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + drawn.layout.text());
    check_packing(random, drawn);
    check_past_the_cache(random, drawn);
    check_unpacking(random, drawn);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Runs long enough to be copied side by side, and pages of one run.
TEST(Pack, LongRunsEqualAPlainWalk) {
  for (std::uint64_t seed = 1; seed <= (is_sanitized ? 15 : 60); ++seed) {
    Random random(seed);
    DrawnLayout drawn;
    Numbers lengths, displacements;
    std::int64_t at = 0;
    const std::uint64_t most = random.chance(0.3) ? 150'000 : random.chance(0.5) ? 9000 : 700;
    for (std::uint64_t i = 0; i < 1 + random.below(12); ++i) {
      lengths.push_back(1 + static_cast<std::int64_t>(random.below(most)));
      displacements.push_back(at);
      for (std::int64_t j = 0; j < lengths.back(); ++j)
        drawn.plain.elements.push_back({at + j, ElementType::int8});
      at += lengths.back() + static_cast<std::int64_t>(random.below(200));
    }
    drawn.layout = Layout::indexed(lengths, displacements, ElementType::int8);
    SCOPED_TRACE("seed " + std::to_string(seed));
    check_packing(random, drawn);
    check_past_the_cache(random, drawn);
    check_unpacking(random, drawn);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(Pack, ATransposeTravelsBetweenDifferentLayouts) {
  constexpr std::int64_t rows = 37, cols = 53;
  std::vector<double> from(rows * cols), to(rows * cols);
  std::iota(from.begin(), from.end(), 0.0);
  const Packer packer(Layout::contiguous(rows * cols, ElementType::float64), from.data());
  const Layout turned =
      Layout::view(Numbers{rows, cols}, Numbers{8, rows * 8}, ElementType::float64);
  turned.check_same_elements(packer.layout().elements());
  const Unpacker unpacker(turned, to.data());
  Bytes segment(100);
  for (std::size_t at = 0; at < packer.bytes(); at += segment.size())
    unpacker.unpack(at, std::span(segment).first(packer.pack(at, segment)));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) ASSERT_EQ(to[j * rows + i], from[i * cols + j]);
  }
}

TEST(Pack, RefusesWhatIsBeyondTheStream) {
  double value = 0;
  Bytes segment(9);
  const Layout layout = ElementType::float64;
  EXPECT_THROW(Packer(layout, &value).pack(9, segment), Error);
  EXPECT_EQ(Packer(layout, &value).pack(8, segment), 0u);
  EXPECT_THROW(Unpacker(layout, &value).unpack(0, segment), Error);
  EXPECT_THROW(Unpacker(layout, &value).unpack(SIZE_MAX, std::span(segment).first(2)), Error);
}

TEST(Reduce, AddsWhatArrivesToWhatIsThere) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const std::int64_t count = 1 + static_cast<std::int64_t>(random.below(5000));
    const std::int64_t step = 1 + static_cast<std::int64_t>(random.below(3));
    std::vector<std::int32_t> values(static_cast<std::size_t>(count * step)),
        stream(static_cast<std::size_t>(count));
    for (std::int32_t& each : values) each = static_cast<std::int32_t>(random());
    for (std::int32_t& each : stream) each = static_cast<std::int32_t>(random());
    std::vector<std::int32_t> expected = values;
    for (std::int64_t i = 0; i < count; ++i)
      expected[static_cast<std::size_t>(i * step)] = static_cast<std::int32_t>(
          static_cast<std::uint32_t>(expected[static_cast<std::size_t>(i * step)]) +
          static_cast<std::uint32_t>(stream[static_cast<std::size_t>(i)]));
    const Unpacker unpacker(Layout::vector(count, 1, step, ElementType::int32), values.data(),
                            combine_of(ReduceOperation::sum, ElementType::int32));
    const auto bytes = std::as_bytes(std::span(stream));
    for (const auto& [at, size] : segments(random, bytes.size(), 4))
      unpacker.unpack(at, bytes.subspan(at, size));
    ASSERT_EQ(values, expected) << "seed " << seed;
  }
}

TEST(Reduce, HasMpisOperations) {
  const auto reduced = [](ReduceOperation operation, auto a, auto b, ElementType type) {
    combine_of(operation, type)(reinterpret_cast<std::byte*>(&a),
                                reinterpret_cast<const std::byte*>(&b), 1);
    return a;
  };
  using enum ReduceOperation;
  EXPECT_EQ(reduced(prod, 3.0, 4.0, ElementType::float64), 12.0);
  EXPECT_EQ(reduced(min, 3.0f, 4.0f, ElementType::float32), 3.0f);
  EXPECT_EQ(reduced(max, std::int8_t{-3}, std::int8_t{4}, ElementType::int8), 4);
  EXPECT_EQ(reduced(land, 2, 4, ElementType::int32), 1);
  EXPECT_EQ(reduced(band, 6, 12, ElementType::int32), 4);
  EXPECT_EQ(reduced(bxor, std::uint8_t{6}, std::uint8_t{12}, ElementType::bytes), 10);
  EXPECT_EQ(reduced(lxor, std::uint64_t{5}, std::uint64_t{9}, ElementType::uint64), 0u);
  const std::uint16_t one_and_half = 0x3e00, two = 0x4000;
  EXPECT_EQ(reduced(sum, one_and_half, two, ElementType::float16), 0x4300);
  const std::uint16_t one = 0x3f80;
  EXPECT_EQ(reduced(sum, one, one, ElementType::bfloat16), 0x4000);
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(reduced(max, none, 1.0, ElementType::float64)));
  EXPECT_TRUE(std::isnan(reduced(max, 1.0, none, ElementType::float64)));
  EXPECT_THROW(combine_of(band, ElementType::float64), Error);
  EXPECT_THROW(combine_of(max, ElementType::complex64), Error);
}

TEST(Reduce, RefusesSegmentsThatCutElements) {
  double value = 1;
  const double other = 2;
  const Unpacker unpacker(ElementType::float64, &value,
                          combine_of(ReduceOperation::sum, ElementType::float64));
  EXPECT_THROW(unpacker.unpack(0, std::as_bytes(std::span(&other, 1)).first(4)), Error);
  EXPECT_EQ(value, 1);
}

TEST(Reduce, TakesTheUsersFunction) {
  std::vector<double> values{1, 2, 3};
  const std::vector<double> arriving{10, 20, 30};
  const Unpacker unpacker(Layout::contiguous(3, ElementType::float64), values.data(),
                          [](std::byte* into, const std::byte* from, std::size_t elements) {
                            for (std::size_t i = 0; i < elements; ++i)
                              reinterpret_cast<double*>(into)[i] -=
                                  reinterpret_cast<const double*>(from)[i];
                          });
  unpacker.unpack(0, std::as_bytes(std::span(arriving)));
  EXPECT_EQ(values, (std::vector<double>{-9, -18, -27}));
}

// Every number of 16 bits becomes a float and itself again.
TEST(Halves, SurviveTheWayToFloatAndBack) {
  const std::uint16_t nothing = 0x8000;  // -0, which changes no other number.
  for (const ElementType type : {ElementType::float16, ElementType::bfloat16}) {
    const Combine add = combine_of(ReduceOperation::sum, type);
    const int infinite = type == ElementType::float16 ? 0x7c00 : 0x7f80;
    for (int bits = 0; bits < 0x10000; ++bits) {
      if ((bits & 0x7fff) > infinite) continue;
      auto value = static_cast<std::uint16_t>(bits);
      add(reinterpret_cast<std::byte*>(&value), reinterpret_cast<const std::byte*>(&nothing), 1);
      ASSERT_EQ(value, bits) << name(type);
    }
  }
}

}  // namespace
}  // namespace quadriga::message
