// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/partition_test.cpp: rows in parts, and what parts need of each other.
#include "sparse/partition.h"

#include <set>

#include "sparse/exchange.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

TEST(Partition, BlocksDependOnRowsAlone) {
  EXPECT_EQ(block_rows_of(0), 8);
  EXPECT_EQ(block_rows_of(64 * 8 - 1), 8);
  EXPECT_EQ(block_rows_of(64 * 64), 64);
  EXPECT_EQ(block_rows_of(100'000'000), 512);
}

TEST(Partition, PartsBeginAtBlocksAndFollowWeights) {
  const auto a = grid_matrix<double>({40, 40, 40});
  const std::int64_t block = block_rows_of(a.rows);
  const std::vector<double> weights{1, 2, 1};
  const auto first = cut_rows(a.view(), block, weights, 40);
  ASSERT_EQ(first.size(), 4u);
  EXPECT_EQ(first.front(), 0);
  EXPECT_EQ(first.back(), a.rows);
  for (std::size_t part = 0; part < 3; ++part) {
    EXPECT_EQ(first[part] % block, 0);
    const double share =
        static_cast<double>(first[part + 1] - first[part]) / static_cast<double>(a.rows);
    EXPECT_NEAR(share, weights[part] / 4, 0.02);
  }
}

TEST(Partition, OneHeavyRowLeavesPartsEmpty) {
  OwnedCsr<double> a;
  a.cols = 4096;
  for (std::int64_t row = 0; row < 4096; ++row) {
    for (std::int64_t j = 0; j < (row == 0 ? 4096 : 0); ++j) a.add(j, 1);
    a.end_row();
  }
  const auto first = cut_rows(a.view(), block_rows_of(4096), std::vector<double>(8, 1), 1);
  EXPECT_TRUE(std::ranges::is_sorted(first));
  EXPECT_EQ(first.front(), 0);
  EXPECT_EQ(first.back(), 4096);
}

std::string message_of(const CsrView& a) {
  try {
    check_offsets(a);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(Partition, OffsetsOfNoMatrixAreRefused) {
  OwnedCsr<double> a;
  a.cols = 3;
  for (int row = 0; row < 3; ++row) {
    a.add(row, 1);
    a.end_row();
  }
  EXPECT_EQ(message_of(a.view()), "");
  auto bad = a;
  bad.offsets[1] = 3;
  EXPECT_EQ(message_of(bad.view()), "row 1 begins at 3 and ends at 2; offsets must not descend");
  bad = a;
  bad.offsets[0] = 1;
  EXPECT_EQ(message_of(bad.view()), "the first offset is 1; expected 0");
  bad = a;
  bad.offsets[3] = 4;
  EXPECT_EQ(message_of(bad.view()), "the last offset is 4, but there are 3 elements");
  CsrView view = a.view();
  view.index_bytes = 2;
  EXPECT_EQ(message_of(view), "indices of 2 bytes; expected 4 or 8");
}

/// What each row reads of other parts, element by element.
std::set<std::int64_t> plain_halo(const OwnedCsr<double>& a, std::int64_t first,
                                  std::int64_t last) {
  std::set<std::int64_t> halo;
  for (auto at = a.offsets[first]; at < a.offsets[last]; ++at)
    if (a.columns[at] < first || a.columns[at] >= last) halo.insert(a.columns[at]);
  return halo;
}

void expect_transfers(std::span<const HaloTransfer> transfers, std::span<const Halo> halos,
                      std::span<const std::int64_t> first) {
  std::vector<std::int64_t> arrived(halos.size(), 0);
  for (const HaloTransfer& each : transfers) {
    EXPECT_NE(each.from, each.to);
    EXPECT_EQ(each.first, arrived[each.to]);
    arrived[each.to] += each.count;
    for (std::int64_t i = each.first; i < each.first + each.count; ++i) {
      EXPECT_GE(halos[each.to].columns[i], first[each.from]);
      EXPECT_LT(halos[each.to].columns[i], first[each.from + 1]);
    }
  }
  for (std::size_t part = 0; part < halos.size(); ++part)
    EXPECT_EQ(arrived[part], static_cast<std::int64_t>(halos[part].columns.size()));
}

TEST(Exchange, RandomMatricesAndCuts) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto n = static_cast<std::int64_t>(1 + seed * 13);
    const auto a = random_matrix<double>(n, seed);
    const std::int64_t block = block_rows_of(n);
    const auto first = cut_rows(a.view(), block, std::vector<double>(1 + seed % 5, 1), 40);
    std::vector<Halo> halos;
    for (std::size_t part = 0; part + 1 < first.size(); ++part) {
      halos.push_back(find_halo(a.view(), first[part], first[part + 1], {block}));
      const auto plain = plain_halo(a, first[part], first[part + 1]);
      EXPECT_TRUE(std::ranges::equal(halos.back().columns, plain));
      const LocalColumns local(first[part], first[part + 1], n, halos.back().columns);
      std::int64_t place = first[part + 1] - first[part];
      for (const std::int64_t column : plain) EXPECT_EQ(local[column], place++);
      for (std::int64_t b = 0; b < static_cast<std::int64_t>(halos.back().border.size()); ++b) {
        const std::int64_t begin = first[part] + b * block;
        const std::int64_t end = std::min(begin + block, first[part + 1]);
        bool is_border = false;
        for (auto at = a.offsets[begin]; at < a.offsets[end]; ++at)
          is_border |= plain.contains(a.columns[at]);
        EXPECT_EQ(halos.back().border[b], is_border);
      }
    }
    expect_transfers(plan_exchange(halos, first), halos, first);
  }
}

TEST(Exchange, ColumnsOutOfRangeAreNamed) {
  auto a = random_matrix<double>(50, 3);
  for (const int wrong : {-1, 50}) {
    a.columns[7] = wrong;
    try {
      find_halo(a.view(), 0, 50, {8});
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what())
                    .find("in column " + std::to_string(wrong) + "; expected 0 to 49"),
                std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace quadriga::sparse::testing
