// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/graph/subgraph_test.cpp: which fine task of a divided one follows which.
#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/subgraph.h"

namespace quadriga {
namespace {

using enum Access;

const std::array<Access, 2> signature{read, update};

class SubgraphTest : public testing::Test {
 protected:
  SubgraphTest() {
    for (Codelet* each : {&read_, &write_, &step_}) each->cpu = [](const Arguments&) {};
  }
  View from(std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols) const {
    return part_of(views_[0], row, col, rows, cols);
  }
  View to(std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t cols) const {
    return part_of(views_[1], row, col, rows, cols);
  }
  void add(const Codelet& codelet, std::initializer_list<View> operands) {
    Division(graph_).add(codelet, operands);
  }
  std::set<std::size_t> successors(std::size_t task) const {
    std::set<std::size_t> found;
    graph_.each_successor(task, [&](std::size_t next) { found.insert(next); });
    return found;
  }
  std::string refusal(const Codelet& codelet, std::initializer_list<View> operands) {
    try {
      add(codelet, operands);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  std::array<double, 200> memory_{};
  /// 8 x 8 elements each, in columns of 10.
  std::array<View, 2> views_{View{memory_.data(), 8, 8, 10, DType::float64},
                             View{memory_.data() + 100, 8, 8, 10, DType::float64}};
  Codelet read_{.name = "look", .access = {read}};
  Codelet write_{.name = "fill", .access = {write}};
  Codelet step_{.name = "step", .access = {read, update}};
  Subgraph graph_{"coarse", signature, views_};
};

TEST_F(SubgraphTest, OnlyTasksOnTheSameElementsFollowEachOther) {
  add(write_, {to(0, 0, 4, 8)});
  add(write_, {to(4, 0, 4, 8)});  // interleaves with the first in memory
  add(read_, {to(0, 2, 2, 2)});
  add(read_, {to(2, 2, 4, 2)});
  add(write_, {to(0, 0, 4, 8)});
  EXPECT_EQ(successors(0), (std::set<std::size_t>{2, 3, 4}));
  EXPECT_EQ(successors(1), (std::set<std::size_t>{3}));
  EXPECT_EQ(successors(2), (std::set<std::size_t>{4}));
  EXPECT_EQ(successors(3), (std::set<std::size_t>{4}));
  EXPECT_EQ(graph_.predecessors(0) + graph_.predecessors(1), 0);
  EXPECT_EQ(graph_.predecessors(4), 3);
}

TEST_F(SubgraphTest, ReadersDontFollowEachOtherAndNoTaskFollowsItself) {
  add(step_, {to(0, 0, 4, 4), to(2, 2, 4, 4)});
  add(read_, {from(0, 0, 4, 4)});
  add(read_, {from(0, 0, 4, 4)});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(graph_.predecessors(i), 0) << i;
}

/// Against what each pair of tasks accesses element by element: tasks that conflict are joined by a
/// path, and edges join tasks that conflict only.
TEST_F(SubgraphTest, EdgesAreWhatElementsSay) {
  std::uint64_t state = 1;
  const auto below = [&](std::uint64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::int64_t>((state >> 33) % n);
  };
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t count = 12;
    Subgraph graph("coarse", signature, views_);
    std::array<std::array<char, 200>, count> touched{};
    for (std::size_t task = 0; task < count; ++task) {
      const auto some = [&](const View& whole, char mark) {
        const std::int64_t row = below(8), col = below(8);
        const View part = part_of(whole, row, col, 1 + below(8 - row), 1 + below(8 - col));
        for (std::int64_t j = 0; j < part.cols; ++j)
          for (std::int64_t i = 0; i < part.rows; ++i)
            touched[task][part.as<double>() + i + j * part.ld - memory_.data()] |= mark;
        return part;
      };
      const View source = some(views_[below(2)], 1);
      graph.add(step_, std::array{source, some(views_[1], 2)}, {});
    }
    const auto conflict = [&](std::size_t a, std::size_t b) {
      for (std::size_t k = 0; k < 200; ++k)
        if (touched[a][k] && touched[b][k] && ((touched[a][k] | touched[b][k]) & 2)) return true;
      return false;
    };
    std::array<std::set<std::size_t>, count> after;
    for (std::size_t task = count; task-- > 0;)
      graph.each_successor(task, [&](std::size_t next) {
        ASSERT_TRUE(conflict(task, next)) << "round " << round << ": " << task << ", " << next;
        after[task].insert(next);
        after[task].insert(after[next].begin(), after[next].end());
      });
    for (std::size_t a = 0; a < count; ++a)
      for (std::size_t b = a + 1; b < count; ++b)
        if (conflict(a, b)) {
          ASSERT_TRUE(after[a].contains(b)) << "round " << round << ": " << a << ", " << b;
        }
  }
}

TEST_F(SubgraphTest, RefusalsNameTheFineTaskAndWhatIsWrong) {
  Codelet no_variant{.name = "gpu only", .access = {read}};
  Codelet submits{.name = "parent", .access = {read}, .cpu = [](const Arguments&) {}};
  submits.submits = true;
  add(read_, {from(0, 0, 1, 1)});
  EXPECT_NE(refusal(no_variant, {from(0, 0, 1, 1)}).find("'gpu only') has no cpu variant"),
            std::string::npos);
  EXPECT_NE(refusal(submits, {from(0, 0, 1, 1)}).find("'parent') submits, blocks or detaches"),
            std::string::npos);
  EXPECT_NE(refusal(read_, {}).find("has 0 operands; its codelet accesses 1"), std::string::npos);
  EXPECT_NE(refusal(write_, {from(0, 0, 1, 1)}).find("the divided task only reads"),
            std::string::npos);
  View beyond = to(4, 4, 4, 4);
  beyond.rows = 5;
  EXPECT_NE(refusal(read_, {beyond}).find("fine task 1 ('look') has an operand 0 that isn't part"),
            std::string::npos);
  EXPECT_EQ(graph_.size(), 1);
  EXPECT_THROW(to(0, 0, 9, 1), Error);
  EXPECT_THROW(to(0, 7, 1, 2), Error);
}

}  // namespace
}  // namespace quadriga
