// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/device_packer_test.cpp: messages packed by kernels against the host's packing, in
// memory with margins that must not change.
#include "message/pack/device_packer.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>

#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_check.h"
#include "message/pack/stream.h"
#include "unit/message/move_case.h"
#include "unit/message/random_layout.h"

namespace quadriga::message {
namespace {

using cuda::check;
using Bytes = std::vector<std::byte>;
using Numbers = std::vector<std::int64_t>;

/// A layout's memory and its packed bytes at odd places, on the host and on the device.
class Field {
 public:
  Field(Random& random, const Layout& each)
      : layout(each),
        memory(static_cast<std::size_t>(each.bounds().second - each.bounds().first) + 192),
        packed(static_cast<std::size_t>(each.bytes()) + 192) {
    for (Bytes* bytes : {&memory, &packed})
      for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
    const bool aligned = random.chance(0.5);
    const std::int64_t low = each.bounds().first;
    data_at = 64 - low + static_cast<std::int64_t>(aligned ? low & 15 : random.below(32));
    packed_at = 64 + static_cast<std::int64_t>(aligned ? 0 : random.below(32));
    on_device = allocated(memory.size());
    packed_on_device = allocated(packed.size());
  }
  ~Field() {
    cudaFree(on_device);
    cudaFree(packed_on_device);
  }
  static std::byte* allocated(std::size_t bytes) {
    void* result = nullptr;
    check(cudaMalloc(&result, bytes), "memory");
    return static_cast<std::byte*>(result);
  }
  void to_device() {
    check(cudaMemcpy(on_device, memory.data(), memory.size(), cudaMemcpyDefault), "in");
    check(cudaMemcpy(packed_on_device, packed.data(), packed.size(), cudaMemcpyDefault), "in");
  }
  Bytes of_device(const std::byte* from, std::size_t bytes) const {
    Bytes result(bytes);
    check(cudaMemcpy(result.data(), from, bytes, cudaMemcpyDefault), "out");
    return result;
  }
  PackPart part(std::size_t offset, std::size_t bytes) const {
    return {layout, on_device + data_at, packed_on_device + packed_at + offset, offset, bytes};
  }
  std::byte* data() { return memory.data() + data_at; }
  std::byte* stream() { return packed.data() + packed_at; }

  Layout layout;
  Bytes memory, packed;
  std::int64_t data_at = 0, packed_at = 0;
  std::byte* on_device = nullptr;
  std::byte* packed_on_device = nullptr;
};

class DevicePackerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    packer_ = DevicePacker::on_cuda(0);
    queue_.stream = nullptr;
  }

  void check_moves(Random& random, const Layout& layout, const std::string& text) {
    const auto bytes = static_cast<std::size_t>(layout.bytes());
    if (bytes == 0) return;
    queue_.most_processors = random.chance(0.3) ? 3 : 0;
    Field field(random, layout);
    field.to_device();
    const std::size_t cut = random.chance(0.5) ? 0 : random.below(bytes + 1);
    const PackPart parts[] = {field.part(0, cut), field.part(cut, PackPart::whole)};
    Packer(layout, field.data()).pack(0, {field.stream(), bytes});
    packer_->pack(parts, queue_);
    ASSERT_EQ(field.of_device(field.packed_on_device, field.packed.size()), field.packed) << text;
    if (layout.overlapping()) return;
    for (std::size_t i = 0; i < bytes; ++i) field.stream()[i] = static_cast<std::byte>(random());
    field.to_device();
    Unpacker(layout, field.data()).unpack(0, {field.stream(), bytes});
    packer_->unpack(parts, queue_);
    ASSERT_EQ(field.of_device(field.on_device, field.memory.size()), field.memory) << text;
  }

  std::unique_ptr<DevicePacker> packer_;
  PackQueue queue_;
};

TEST_F(DevicePackerTest, RandomLayoutsArePackedAsOnTheHost) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const DrawnLayout drawn = draw_layout(random, 1 + static_cast<int>(seed % 4));
    check_moves(random, drawn.layout, drawn.text);
    if (HasFatalFailure()) return;
  }
}

TEST_F(DevicePackerTest, LargeLayoutsArePackedAsOnTheHost) {
  const ElementType types[] = {ElementType::int8, ElementType::int16, ElementType::float32,
                               ElementType::float64, ElementType::complex128};
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto upto = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(1 + random.below(most));
    };
    const Layout element = types[random.below(5)];
    const std::int64_t size = element.bytes(), rows = upto(700), columns = upto(700);
    const std::int64_t gap = upto(20) - 1, ld = (columns + gap) * size, many = upto(3);
    check_moves(random, Layout::view(Numbers{columns, rows}, Numbers{size, ld}, element), "a.T");
    check_moves(
        random,
        Layout::view(Numbers{columns, many, rows}, Numbers{size, rows * ld + 64, ld}, element),
        "the middle");
    check_moves(random, Layout::vector(rows, columns, columns + gap + 1, element), "sub-matrix");
    const Half half = random.chance(0.5) ? Half::lower : Half::upper;
    check_moves(
        random,
        Layout::triangle({.order = rows, .leading_dimension = rows + gap, .half = half}, element),
        "triangle");
    Numbers lengths, places;
    const std::int64_t longest = upto(300);
    for (std::int64_t i = 0, at = 0; i < 2000; ++i) {
      lengths.push_back(upto(static_cast<std::uint64_t>(longest)));
      places.push_back(at);
      at += lengths.back() + upto(9) - 1;
    }
    check_moves(random, Layout::indexed(lengths, places, element), "list");
    if (HasFatalFailure()) return;
  }
}

TEST_F(DevicePackerTest, ElementsMoveFromPlaceToPlaceAsOnTheHost) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const MoveCase drawn = draw_move(random, seed % 3 == 0 ? 700 : 60);
    Field from(random, drawn.from), to(random, drawn.to);
    const auto begin = static_cast<std::size_t>(drawn.begin);
    const auto bytes = static_cast<std::size_t>(drawn.end - drawn.begin);
    const MovePart part{drawn.from, from.on_device + from.data_at,
                        drawn.to,   to.on_device + to.data_at,
                        begin,      bytes};
    if (!moves_directly(part)) continue;
    ++moved;
    from.to_device();
    to.to_device();
    Bytes packed(bytes);
    Packer(drawn.from, from.data()).pack(begin, packed);
    Unpacker(drawn.to, to.data()).unpack(begin, packed);
    queue_.most_processors = random.chance(0.3) ? 3 : 0;
    packer_->move(part, queue_);
    ASSERT_EQ(to.of_device(to.on_device, to.memory.size()), to.memory)
        << drawn.from.text() << " to " << drawn.to.text();
    ASSERT_EQ(from.of_device(from.on_device, from.memory.size()), from.memory);
  }
  EXPECT_GT(moved, 100);
}

/// Makes numbers below 2 of what is random, so that none is infinite or no number.
void make_finite(std::byte* begin, std::byte* end, ElementType type) {
  if (type < ElementType::float16) return;
  const bool complex = type == ElementType::complex64 || type == ElementType::complex128;
  const auto size = static_cast<std::ptrdiff_t>(size_of(type) / (complex ? 2 : 1));
  for (std::byte* each = begin; end - each >= size; each += size) each[size - 1] &= std::byte{0xbf};
}

TEST_F(DevicePackerTest, ReductionsAreThoseOfTheHost) {
  for (std::uint64_t seed = 0; seed < element_types * reduce_operations * 3; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto type = static_cast<ElementType>(seed % element_types);
    const auto operation = static_cast<ReduceOperation>(seed / element_types % reduce_operations);
    try {
      combine_of(operation, type);
    } catch (const Error&) {
      continue;
    }
    const auto rows = static_cast<std::int64_t>(1 + random.below(80));
    const Layout layout = random.chance(0.5)
                              ? Layout::vector(rows, 37, 40, type)
                              : Layout::triangle({.order = rows, .leading_dimension = rows}, type);
    Field field(random, layout);
    if (type == ElementType::boolean) {
      for (Bytes* bytes : {&field.memory, &field.packed})
        for (std::byte& byte : *bytes) byte &= std::byte{1};
    }
    const auto bytes = static_cast<std::size_t>(layout.bytes());
    make_finite(field.data(), field.data() + layout.bounds().second, type);
    make_finite(field.stream(), field.stream() + bytes, type);
    field.to_device();
    Unpacker(layout, field.data(), combine_of(operation, type)).unpack(0, {field.stream(), bytes});
    packer_->unpack_reduce(field.part(0, PackPart::whole), operation, queue_);
    const Bytes got = field.of_device(field.on_device, field.memory.size());
    ASSERT_EQ(got, field.memory) << name(operation) << " of " << name(type);
  }
}

// Fewer elements than a block takes, and more than all threads take at a time.
TEST_F(DevicePackerTest, ElementsSideBySideAreCombined) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    constexpr std::array types{ElementType::float64,    ElementType::float32, ElementType::int16,
                               ElementType::complex128, ElementType::uint8,   ElementType::float16};
    const ElementType type = types[seed % types.size()];
    const std::size_t count = seed < 12 ? 1 + random.below(3000) : 9'000'000 + random.below(9);
    const std::size_t bytes = count * size_of(type);
    Field field(random, Layout::contiguous(static_cast<std::int64_t>(count), type));
    make_finite(field.data(), field.data() + bytes, type);
    make_finite(field.stream(), field.stream() + bytes, type);
    field.to_device();
    std::byte* const with = field.packed_on_device + field.packed_at;
    std::byte* const into = random.chance(0.5) ? field.on_device + field.data_at : with;
    Bytes expected(field.data(), field.data() + bytes);
    combine_of(ReduceOperation::sum, type)(expected.data(), field.stream(), count);
    packer_->combine({into, field.on_device + field.data_at, with, bytes, type},
                     ReduceOperation::sum, queue_);
    ASSERT_EQ(field.of_device(into, bytes), expected);
    EXPECT_EQ(packer_->counters().launches, seed + 1);
  }
}

TEST_F(DevicePackerTest, ManyMessagesAreOneLaunch) {
  Random random(1);
  const Layout layout = Layout::vector(100, 16, 32, ElementType::float64);
  std::vector<std::unique_ptr<Field>> fields;
  std::vector<PackPart> parts;
  for (int i = 0; i < 30; ++i) {
    fields.push_back(std::make_unique<Field>(random, layout));
    fields.back()->data_at = fields.back()->packed_at = 64;
    fields.back()->to_device();
    parts.push_back(fields.back()->part(0, PackPart::whole));
    Packer(layout, fields.back()->data())
        .pack(0, {fields.back()->stream(), static_cast<std::size_t>(layout.bytes())});
  }
  packer_->pack(parts, queue_);
  EXPECT_EQ(packer_->counters().launches, 1u);
  for (const auto& field : fields)
    EXPECT_EQ(field->of_device(field->packed_on_device, field->packed.size()), field->packed);
}

// More runs than a slice holds; the same list in another layout finds its table.
TEST_F(DevicePackerTest, ALongListsTableIsKept) {
  Random random(2);
  Numbers lengths, places;
  for (std::int64_t i = 0; i < 600000; ++i) {
    lengths.push_back(1 + static_cast<std::int64_t>(random.below(3)));
    places.push_back(4 * i + static_cast<std::int64_t>(random.below(2)));
  }
  const auto make = [&] { return Layout::indexed(lengths, places, ElementType::int32); };
  check_moves(random, make(), "a long list");
  const PackCounters first = packer_->counters();
  EXPECT_GT(first.table_bytes, 0u);
  EXPECT_EQ(first.table_bytes, first.table_uploads);
  check_moves(random, make(), "a long list");
  const PackCounters later = packer_->counters();
  EXPECT_EQ(later.table_uploads, first.table_uploads);
  EXPECT_GT(later.tables_reused, first.tables_reused);
}

TEST_F(DevicePackerTest, TablesAreBounded) {
  packer_ = DevicePacker::on_cuda(0, 10000);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Numbers lengths, places;
    for (std::int64_t i = 0; i < 900; ++i) {
      lengths.push_back(1 + static_cast<std::int64_t>(random.below(3)));
      places.push_back(4 * i + static_cast<std::int64_t>(random.below(2)));
    }
    check_moves(random, Layout::indexed(lengths, places, ElementType::int32), "a list");
    EXPECT_LE(packer_->counters().table_bytes, 10000u);
  }
}

}  // namespace
}  // namespace quadriga::message
