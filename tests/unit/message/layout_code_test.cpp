// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/layout_code_test.cpp: encoded layouts return; mutated ones are refused, or
// mean what they say.
#include "message/layout/code.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstring>

#include "sanitized.h"
#include "unit/message/random_layout.h"

namespace quadriga::message {
namespace {

using Bytes = std::vector<std::byte>;

std::string refusal(const Bytes& bytes) {
  try {
    decoded(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
    return error.what();
  }
  return {};
}

void put(Bytes& bytes, std::size_t number, std::int64_t value) {
  std::memcpy(bytes.data() + 8 * number, &value, sizeof value);
}

TEST(EncodedLayout, IsTheSameAgain) {
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    Random random(seed);
    const DrawnLayout drawn = draw_layout(random, 1 + static_cast<int>(seed % 4));
    const Bytes bytes = encoded(drawn.layout);
    ASSERT_EQ(decoded(bytes), drawn.layout) << "seed " << seed << ": " << drawn.text;
    ASSERT_EQ(decoded(bytes).bounds(), drawn.layout.bounds());
  }
}

void mutate(Random& random, Bytes& bytes) {
  static constexpr std::int64_t odd[] = {0, 1, 2, -1, INT64_MAX, INT64_MIN, INT64_MAX / 2, 1 << 20};
  switch (random.below(4)) {
    case 0:
      bytes[random.below(bytes.size())] ^= std::byte{1} << random.below(8);
      break;
    case 1:
      put(bytes, random.below(bytes.size() / 8), odd[random.below(std::size(odd))]);
      break;
    case 2:
      bytes.resize(random.below(bytes.size()));
      break;
    default:
      bytes.insert(bytes.end(), 8 * (1 + random.below(4)), static_cast<std::byte>(random()));
  }
}

// What is taken is what the bytes say, small enough to have been sent in them, and safe to look at.
TEST(EncodedLayout, MutatedIsRefusedOrMeansWhatItSays) {
  int refused = 0, taken = 0;
  for (std::uint64_t seed = 1; seed <= (is_sanitized ? 20'000 : 100'000); ++seed) {
    Random random(seed);
    Bytes bytes = encoded(draw_layout(random, 1 + static_cast<int>(seed % 4)).layout);
    for (std::uint64_t i = 0; i < 1 + random.below(3) && bytes.size() >= 8; ++i)
      mutate(random, bytes);
    if (!refusal(bytes).empty()) {
      ++refused;
      continue;
    }
    ++taken;
    const Layout layout = decoded(bytes);
    ASSERT_EQ(encoded(layout), bytes) << "seed " << seed;
    ASSERT_GE(layout.bytes(), layout.count());
    ASSERT_LE(layout.bounds().first, layout.bounds().second);
  }
  EXPECT_GT(refused, taken);
  EXPECT_GT(taken, 0);
}

TEST(EncodedLayout, SaysWhatIsWrong) {
  const Layout layout = Layout::vector(3, 2, 4, ElementType::float64);
  const Bytes good = encoded(layout);
  Bytes bytes = good;
  bytes.pop_back();
  EXPECT_EQ(refusal(bytes), "encoded layout: it ends before the length of a run");
  bytes = good;
  bytes.resize(bytes.size() + 8);
  EXPECT_EQ(refusal(bytes), "encoded layout: 8 bytes beyond its end");
  bytes = good;
  bytes[0] = std::byte{2};
  EXPECT_EQ(refusal(bytes), "encoded layout: the version is 2; expected 1 to 1");
  bytes = good;
  put(bytes, 1, 7);
  EXPECT_EQ(refusal(bytes), "encoded layout: 7 elements don't fit its 48 bytes");
  bytes = good;
  put(bytes, 7, 16);  // The stride: runs touch now.
  EXPECT_EQ(refusal(bytes), "encoded layout: it isn't the canonical form of its elements");
  bytes = good;
  put(bytes, 6, INT64_MAX / 4);
  EXPECT_NE(refusal(bytes).find("2^62 bytes or more"), std::string::npos);
}

TEST(EncodedLayout, ListsOfLongRunsAreBounded) {
  // Each run is short enough, all together aren't: lengths that are added up must not wrap.
  Bytes bytes = encoded(Layout::indexed(std::vector<std::int64_t>{1, 2, 1},
                                        std::vector<std::int64_t>{0, 2, 7}, ElementType::int8));
  ASSERT_EQ(bytes.size() / 8, 6u + 1 + 2 * 3);
  for (const std::size_t run : {0, 1, 2}) put(bytes, 8 + 2 * run, (std::int64_t{1} << 61) + 8);
  EXPECT_NE(refusal(bytes).find("2^62 bytes or more"), std::string::npos) << refusal(bytes);
}

TEST(EncodedLayout, TapersFarAwayAreBounded) {
  // The origin, the way to the last row and its length are short enough; their sum isn't.
  Bytes bytes = encoded(Layout::triangle({.order = 4, .leading_dimension = 5}, ElementType::int8));
  constexpr std::int64_t far = (std::int64_t{1} << 62) - 1;
  put(bytes, 5, far);          // The origin.
  put(bytes, 7, far / 4);      // The distance of rows.
  put(bytes, 8, far / 4 - 8);  // The first one's length.
  EXPECT_NE(refusal(bytes).find("2^62 bytes or more"), std::string::npos) << refusal(bytes);
}

TEST(EncodedLayout, CannotAskForMemory) {
  // A list that claims more runs than there are, and a taper that would have to be listed.
  Bytes bytes = encoded(Layout::indexed(std::vector<std::int64_t>{1, 1, 1},
                                        std::vector<std::int64_t>{0, 2, 5}, ElementType::int32));
  put(bytes, 6, std::int64_t{1} << 40);
  EXPECT_EQ(refusal(bytes), "encoded layout: the number of runs is 1099511627776; expected 2 to 3");
  bytes = encoded(Layout::triangle({.order = 4, .leading_dimension = 4}, ElementType::int8));
  put(bytes, 6, std::int64_t{1} << 30);
  EXPECT_EQ(refusal(bytes), "encoded layout: changing runs that don't change, or touch");
}

}  // namespace
}  // namespace quadriga::message
