// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/message/layout_test.cpp: layouts against plain lists of elements, and their canonical
// forms.
#include "message/layout/layout.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>

#include "unit/message/random_layout.h"

namespace quadriga::message {
namespace {

using Numbers = std::vector<std::int64_t>;
const Layout f64 = ElementType::float64;

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Layout, DrawnAtRandomEqualsItsPlainWalk) {
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    Random random(seed);
    const DrawnLayout drawn = draw_layout(random, 1 + static_cast<int>(seed % 4));
    ASSERT_EQ(layout_fault(drawn), "") << "seed " << seed << ": " << drawn.text;
  }
}

TEST(Layout, HasTheSameFormHoweverItWasMade) {
  const Numbers shape{6, 8}, part{3, 4}, start{0, 0}, view_shape{3, 4}, strides{64, 8};
  const Layout by_array = Layout::subarray(shape, part, start, StorageOrder::c, f64);
  const Layout by_vector = Layout::vector(3, 4, 8, f64);
  const Layout by_view = Layout::view(view_shape, strides, f64);
  const Layout by_list = Layout::indexed(Numbers{4, 4, 4}, Numbers{0, 8, 16}, f64);
  EXPECT_EQ(by_array.form(), by_vector.form());
  EXPECT_EQ(by_view, by_vector);
  EXPECT_EQ(by_list, by_vector);
  EXPECT_EQ(by_list.hash(), by_vector.hash());
  EXPECT_NE(by_array, by_vector) << "an array's extent is the whole array's";
  EXPECT_EQ(by_vector.text(), "strides 3 x 64 B of runs of 32 B, 12 float64");
}

TEST(Layout, KeepsTheOrderOfElements) {
  const Numbers shape{4, 3}, by_rows{24, 8}, turned{3, 4}, by_columns{8, 24};
  EXPECT_EQ(Layout::view(shape, by_rows, f64).form(), run_form(0, 96));
  EXPECT_NE(Layout::view(turned, by_columns, f64).form(), run_form(0, 96));
  const Layout backwards = Layout::view(Numbers{4}, Numbers{-8}, f64);
  EXPECT_EQ(backwards.bounds(), (std::pair<std::int64_t, std::int64_t>{-24, 8}));
}

TEST(Layout, OfATriangleNeedsNoList) {
  const Layout lower = Layout::triangle({.order = 30'000, .leading_dimension = 30'000}, f64);
  EXPECT_EQ(lower.form().leaf, Leaf::taper);
  EXPECT_EQ(lower.bytes(), std::int64_t{30'000} * 30'001 / 2 * 8);
  Numbers lengths, displacements;
  for (std::int64_t row = 0; row < 50; ++row) {
    lengths.push_back(row + 1);
    displacements.push_back(row * 60);
  }
  const Layout rows = Layout::triangle({.order = 50, .leading_dimension = 60}, f64);
  EXPECT_EQ(Layout::indexed(lengths, displacements, f64).form(), rows.form());
}

TEST(Layout, OfRowsThatTouchIsNoTaper) {
  // 8 bytes, then 16 that touch the next 24, each 16 after the last.
  const Canonical form = taper_form(0, {3, 16, 8, 8});
  EXPECT_EQ(runs_of(form), (std::vector<ByteRun>{{0, 8}, {16, 40}}));
  EXPECT_EQ(form, form_of({{0, 8}, {16, 16}, {32, 24}}));
}

TEST(Layout, OfRecordsThatTouchIsRepeatedNotListed) {
  const std::array<Layout, 2> fields{ElementType::float64, ElementType::int32};
  const Layout record =
      Layout::resized(Layout::structure(Numbers{1, 1}, Numbers{0, 28}, fields), 0, 32);
  const Layout many = Layout::contiguous(1'000'000, record);
  EXPECT_EQ(many.form().strides, (std::vector<Stride>{{1'000'000, 32}}));
  EXPECT_EQ(many.form().leaf_runs(), 2);
  EXPECT_EQ(form_of(runs_of(many.form())), many.form());
}

TEST(Layout, ComparesSidesByElementsNotByPlaces) {
  const Layout rows = Layout::contiguous(12, f64);
  const Layout turned = Layout::view(Numbers{3, 4}, Numbers{8, 24}, f64);
  EXPECT_NO_THROW(rows.check_same_elements(turned.elements()));
  EXPECT_EQ(
      message_of(
          [&] { rows.check_same_elements(Layout::contiguous(12, ElementType::int64).elements()); }),
      "layout: one side has 12 float64, the other 12 int64; expected the same elements in the "
      "same order");
}

TEST(Layout, ThatOverlapsOnlySends) {
  const Layout repeated = Layout::view(Numbers{3, 4}, Numbers{0, 8}, f64);
  EXPECT_EQ(message_of([&] { repeated.check_receives(); }),
            "layout: elements of strides 3 x 0 B of runs of 32 B, 12 float64 overlap; it can send, "
            "but not receive");
  // Strides that interleave without meeting.
  EXPECT_NO_THROW(Layout::view(Numbers{3, 2}, Numbers{16, 24}, f64).check_receives());
  EXPECT_THROW(Layout::view(Numbers{4, 3}, Numbers{16, 24}, f64).check_receives(), Error);
}

TEST(Layout, RefusesWhatHasNoMeaning) {
  EXPECT_EQ(message_of([] { Layout::contiguous(-1, f64); }),
            "layout: contiguous's count is -1; expected at least 0");
  EXPECT_EQ(message_of([] {
              Layout::indexed(Numbers{1, 2}, Numbers{0}, f64);
            }),
            "layout: indexed got 2 lengths and 1 displacements");
  EXPECT_EQ(message_of(
                [] { Layout::subarray(Numbers{4}, Numbers{3}, Numbers{2}, StorageOrder::c, f64); }),
            "layout: subarray's start 0 is 2; expected 0 to 1");
}

// Each distance is one that may be, all together reach further than a number can say.
TEST(Layout, RefusesWhatReachesTooFar) {
  constexpr std::string_view too_far = "layout: a size or an offset reaches 2^62 bytes or more";
  EXPECT_EQ(message_of([] { Layout::contiguous(INT64_MAX / 4, f64); }), too_far);
  constexpr std::int64_t third = std::int64_t{3} << 59;
  for (const std::int64_t far : {third, -third}) {
    const Numbers shape{2, 2, 2, 2, 2, 2, 2}, strides{far, far, far, far, far, far, 16};
    EXPECT_EQ(message_of([&] { Layout::view(shape, strides, f64); }), too_far) << far;
  }
  // Few runs are listed; each list is repeated again.
  const Layout few = Layout::indexed(Numbers{1, 2, 1}, Numbers{0, 2, 7}, f64);
  EXPECT_EQ(message_of([&] {
              Layout::view(Numbers{2, 2, 2}, Numbers{third, third, third}, few);
            }),
            too_far);
}

}  // namespace
}  // namespace quadriga::message
