// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/byte_ranges_test.cpp: buffers of plain bytes, and ranges of them, as data.
#include <quadriga/engine.h>

#include <vector>

#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class ByteRangesTest : public EngineTest {};

INSTANTIATE_TEST_SUITE_P(Engine, ByteRangesTest, every_engine(), where_name);

TEST_P(ByteRangesTest, RangesShareOrderAndContent) {
  constexpr std::int64_t size = 1000, begin = 333, length = 101;  // no multiple of an element
  std::vector<std::uint8_t> memory(size, 1);
  const auto bytes = [&](std::int64_t from, std::int64_t count) {
    return engine().data(memory.data() + from, count, 1, count, DType::bytes);
  };
  const auto add_to_all = [](int what) {
    return [what](const Arguments& arguments) {
      const View& view = arguments.operands[0];
      auto* const first = static_cast<std::uint8_t*>(view.data);
      for (std::int64_t i = 0; i < view.rows; ++i)
        first[i] = static_cast<std::uint8_t>(2 * first[i] + what);
    };
  };
  Codelet& double_it = codelet(Access::update, add_to_all(0));
  Codelet& and_one = codelet(Access::update, add_to_all(1));
  const Data all = bytes(0, size), range = bytes(begin, length), end = bytes(size - 1, 1);
  for (int i = 0; i < 2; ++i) {  // 1, 3, 6, 13, 26 where both write; 1, 2, 4 elsewhere
    engine().submit(and_one, {{range, Access::update}});
    engine().submit(double_it, {{all, Access::update}});
  }
  engine().submit(and_one, {{end, Access::update}});
  engine().wait(range, patience);
  EXPECT_EQ(memory[begin], 26);
  wait();
  EXPECT_EQ(memory[begin - 1], 4);
  EXPECT_EQ(memory[begin + length - 1], 26);
  EXPECT_EQ(memory[begin + length], 4);
  EXPECT_EQ(memory[size - 1], 9);
}

TEST_P(ByteRangesTest, ATaskOnARangeCopiesNoMore) {
  if (GetParam() == Where::host) GTEST_SKIP() << "nothing is copied";
  constexpr std::int64_t size = 10'000, begin = 333, length = 101;
  std::vector<std::uint8_t> memory(size);
  engine().data(memory.data(), size, 1, size, DType::bytes);
  const Data range = engine().data(memory.data() + begin, length, 1, length, DType::bytes);
  Codelet& set = codelet(Access::update, [](const Arguments& arguments) {
    *static_cast<std::uint8_t*>(arguments.operands[0].data) = 7;
  });
  engine().submit(set, {{range, Access::update}}, SubmitOptions{.device = DeviceId{0}});
  wait();
  EXPECT_EQ(memory[begin], 7);
  EXPECT_EQ(engine().counters().host_bytes(), 2U * length) << "there and back";
}

}  // namespace
}  // namespace quadriga
