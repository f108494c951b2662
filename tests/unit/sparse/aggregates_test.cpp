// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/aggregates_test.cpp: which nodes form one of the next level, and what prolongs
// them.
#include "sparse/aggregates.h"

#include <set>

#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

NodeGraph graph_of(const std::vector<std::set<std::int32_t>>& neighbours) {
  NodeGraph graph;
  for (const auto& each : neighbours) {
    graph.columns.insert(graph.columns.end(), each.begin(), each.end());
    graph.offsets.push_back(static_cast<std::int64_t>(graph.columns.size()));
  }
  return graph;
}

std::vector<std::set<std::int32_t>> random_graph(std::int32_t nodes, std::mt19937_64& random) {
  std::vector<std::set<std::int32_t>> neighbours(static_cast<std::size_t>(nodes));
  const auto edges = random() % static_cast<std::uint64_t>(3 * nodes);
  for (std::uint64_t i = 0; i < edges; ++i) {
    const auto a = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(nodes));
    const auto b = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(nodes));
    if (a == b) continue;
    neighbours[static_cast<std::size_t>(a)].insert(b);
    neighbours[static_cast<std::size_t>(b)].insert(a);
  }
  return neighbours;
}

TEST(Aggregates, OfALineAreThreeNodesEach) {
  std::vector<std::set<std::int32_t>> line(9);
  for (std::int32_t i = 0; i + 1 < 9; ++i) {
    line[static_cast<std::size_t>(i)].insert(i + 1);
    line[static_cast<std::size_t>(i + 1)].insert(i);
  }
  const Aggregates found = aggregate(graph_of(line));
  // The first node takes its only neighbour; later ones have one on each side.
  EXPECT_EQ(found.of, (std::vector<std::int32_t>{0, 0, 1, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(found.count, 3);
}

TEST(Aggregates, HaveAllNodesWithNeighboursAndAreConnected) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const auto nodes = static_cast<std::int32_t>(1 + random() % 60);
    const auto neighbours = random_graph(nodes, random);
    const Aggregates found = aggregate(graph_of(neighbours));
    std::int32_t next = 0;
    std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(found.count));
    for (std::int32_t node = 0; node < nodes; ++node) {
      const std::int32_t each = found.of[static_cast<std::size_t>(node)];
      ASSERT_EQ(each < 0, neighbours[static_cast<std::size_t>(node)].empty());
      if (each < 0) continue;
      ASSERT_LE(each, next);
      next = std::max(next, each + 1);
      members[static_cast<std::size_t>(each)].push_back(node);
    }
    ASSERT_EQ(next, found.count);
    for (const auto& all : members) {
      std::set<std::int32_t> left(all.begin(), all.end());
      std::vector<std::int32_t> reached{all.front()};
      left.erase(all.front());
      for (std::size_t i = 0; i < reached.size(); ++i)
        for (const std::int32_t each : neighbours[static_cast<std::size_t>(reached[i])])
          if (left.erase(each) > 0) reached.push_back(each);
      ASSERT_TRUE(left.empty());
      ASSERT_GE(all.size(), 1U);
    }
  }
}

template <class T>
class TentativeOf : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(TentativeOf, Types);

TYPED_TEST(TentativeOf, MapsCoarseVectorsToTheGivenOnesByOrthonormalColumns) {
  using T = TypeParam;
  constexpr int unknowns = 3, vectors = 4;
  Aggregates aggregates{{0, 0, 1, 0, -1, 1, 2}, 3};
  NearNull fine{random_vector<double>(7 * unknowns * vectors, 5), vectors};
  // The last vector is twice the first one; the last aggregate has fewer rows than vectors.
  for (std::size_t i = 0; i < fine.values.size(); i += vectors)
    fine.values[i + 3] = 2 * fine.values[i];
  const Tentative<T> made = tentative_of<T>(aggregates, fine, unknowns);
  EXPECT_EQ(made.is_zero, (std::vector<bool>{false, false, false, true, false, false, false, true,
                                             false, false, false, true}));
  std::vector<double> dots(static_cast<std::size_t>(3 * vectors * vectors));
  for (std::size_t node = 0; node < aggregates.of.size(); ++node) {
    const std::int32_t to = aggregates.of[node];
    ASSERT_EQ(made.matrix.offsets[node + 1] - made.matrix.offsets[node], to < 0 ? 0 : 1);
    if (to < 0) continue;
    ASSERT_EQ(made.matrix.columns[static_cast<std::size_t>(made.matrix.offsets[node])], to);
    const T* const block = made.matrix.block(made.matrix.offsets[node]);
    for (int row = 0; row < unknowns; ++row)
      for (int c = 0; c < vectors; ++c) {
        double sum = 0;
        for (int k = 0; k < vectors; ++k)
          sum += std::real(block[row * vectors + k]) *
                 made.coarse.values[static_cast<std::size_t>((to * vectors + k) * vectors + c)];
        EXPECT_NEAR(sum, fine.values[(node * unknowns + row) * vectors + c], 1e-5);
        for (int k = 0; k < vectors; ++k)
          dots[static_cast<std::size_t>((to * vectors + c) * vectors + k)] +=
              std::real(block[row * vectors + c]) * std::real(block[row * vectors + k]);
      }
  }
  for (int a = 0; a < 3; ++a)
    for (int c = 0; c < vectors; ++c)
      for (int k = 0; k < vectors; ++k)
        EXPECT_NEAR(dots[static_cast<std::size_t>((a * vectors + c) * vectors + k)],
                    c == k && !made.is_zero[static_cast<std::size_t>(a * vectors + c)] ? 1 : 0,
                    1e-5);
}

}  // namespace
}  // namespace quadriga::sparse::testing
