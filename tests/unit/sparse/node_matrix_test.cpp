// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/node_matrix_test.cpp: matrices of blocks beside dense ones.
#include "sparse/node_matrix.h"

#include "sparse/aggregation.h"
#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

template <class T>
using Dense = std::vector<std::vector<T>>;

template <class T>
Dense<T> dense(const NodeMatrix<T>& a) {
  Dense<T> all(static_cast<std::size_t>(a.rows * a.row_size),
               std::vector<T>(static_cast<std::size_t>(a.cols * a.col_size)));
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (std::int64_t i = a.offsets[row]; i < a.offsets[row + 1]; ++i) {
      if (i > a.offsets[row]) {
        EXPECT_LT(a.columns[i - 1], a.columns[i]);
      }
      for (int r = 0; r < a.row_size; ++r)
        for (int c = 0; c < a.col_size; ++c)
          all[row * a.row_size + r][a.columns[i] * a.col_size + c] = a.block(i)[r * a.col_size + c];
    }
  return all;
}

template <class T>
Dense<T> dense(const CsrView& a) {
  Dense<T> all(static_cast<std::size_t>(a.rows), std::vector<T>(static_cast<std::size_t>(a.cols)));
  const auto* const offsets = static_cast<const std::int32_t*>(a.offsets);
  const auto* const columns = static_cast<const std::int32_t*>(a.columns);
  EXPECT_EQ(a.index_bytes, 4);
  for (std::int64_t row = 0; row < a.rows; ++row)
    for (auto i = offsets[row]; i < offsets[row + 1]; ++i)
      all[row][columns[i]] += static_cast<const T*>(a.values)[i];
  return all;
}

template <class T>
Dense<T> product(const Dense<T>& a, const Dense<T>& b) {
  Dense<T> c(a.size(), std::vector<T>(b.front().size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < c[i].size(); ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}

template <class T>
void expect_near(const Dense<T>& a, const Dense<T>& b, double most = 1e-4) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    for (std::size_t j = 0; j < a[i].size(); ++j)
      ASSERT_NEAR(std::abs(a[i][j] - b[i][j]), 0, most) << i << " " << j;
  }
}

template <class T>
class Nodes : public ::testing::Test {};
using Types = ::testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Nodes, Types);

TYPED_TEST(Nodes, AreTheMatrixAndMultiplyAsIt) {
  using T = TypeParam;
  Engine engine({"cpu:2"});
  for (const int size : {1, 2, 3}) {
    const auto csr = random_matrix<T>(36, 7);
    const NodeMatrix<T> a = by_nodes<T>(engine, csr.view(), size);
    EXPECT_EQ(a.rows, 36 / size);
    const Dense<T> all = dense<T>(csr.view());
    expect_near(dense(a), all);
    expect_near(dense<T>(LevelCsr(a).view()), all);
    expect_near(dense(multiply(engine, a, a)), product(all, all));
    const Dense<T> turned = dense(adjoint(a));
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < all.size(); ++j)
        ASSERT_NEAR(std::abs(std::complex<double>(turned[j][i]) -
                             std::conj(std::complex<double>(all[i][j]))),
                    0, 1e-6);
  }
}

TYPED_TEST(Nodes, HaveInversesOfTheirDiagonalAndOfAll) {
  using T = TypeParam;
  Engine engine({"cpu:2"});
  const auto csr = grid_matrix<T>({4, 3, 2}, 0.5);
  const Dense<T> all = dense(by_nodes<T>(engine, csr.view(), 1));
  Dense<T> identity(24, std::vector<T>(24));
  for (std::size_t i = 0; i < 24; ++i) identity[i][i] = T(1);
  expect_near(product(all, dense<T>(dense_inverse(csr.view()).view())), identity);
  const NodeMatrix<T> nodes = by_nodes<T>(engine, csr.view(), 6);
  const std::vector<T> inverses = diagonal_inverses(engine, nodes, 3);
  ASSERT_EQ(inverses.size(), 72U);
  for (std::size_t b = 0; b < 8; ++b) {
    Dense<T> block(3, std::vector<T>(3)), inverse = block, one = block;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        block[i][j] = all[3 * b + i][3 * b + j];
        inverse[i][j] = inverses[(3 * b + i) * 3 + j];
        one[i][j] = T(i == j ? 1 : 0);
      }
    expect_near(product(block, inverse), one);
  }
}

TEST(NodesOfMatrices, RefuseWhatIsBroken) {
  Engine engine({"cpu:2"});
  auto a = grid_matrix<double>({4, 3, 2});
  EXPECT_THROW(by_nodes<double>(engine, a.view(), 5), Error);
  const auto was = a.columns[3];
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{24}}) {
    a.columns[3] = wrong;
    EXPECT_THROW(by_nodes<double>(engine, a.view(), 2), Error);
    EXPECT_THROW(dense_inverse(a.view()), Error);
  }
  a.columns[3] = was;
  EXPECT_THROW(dense_inverse(grid_matrix<double>({2001, 1, 1}).view()), Error);
  LevelCsr zeros(NodeMatrix<double>{2, 2, 1, 1, {0, 1, 1}, {0}, {4}});
  const Dense<double> found = dense<double>(dense_inverse(zeros.view()).view());
  EXPECT_EQ(found, (Dense<double>{{0.25, 0}, {0, 0}}));
}

TEST(Connections, AreThoseOfElementsThatCount) {
  Engine engine({"cpu:2"});
  // 1: 9 and 4 on the diagonal; off it 3 and 0.5: 9 > s^2 * 36 where s < 0.5.
  const NodeMatrix<double> a{
      3, 3, 1, 1, {0, 3, 5, 7}, {0, 1, 2, 0, 1, 0, 2}, {9, 3, 0.5, 3, 4, 0.5, 4}};
  const NodeGraph all = connections(engine, a, 0);
  EXPECT_EQ(all.columns, (std::vector<std::int32_t>{1, 2, 0, 0}));
  const NodeGraph strong = connections(engine, a, 0.4);
  EXPECT_EQ(strong.columns, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(strong.offsets, (std::vector<std::int64_t>{0, 1, 2, 2}));
  EXPECT_TRUE(connections(engine, a, 0.6).columns.empty());
}

}  // namespace
}  // namespace quadriga::sparse::testing
