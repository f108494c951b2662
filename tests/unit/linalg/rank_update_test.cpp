// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/rank_update_test.cpp: syrk and herk against their definition.
#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {
namespace {

struct Case {
  DType dtype = DType::float64;
  bool hermitian = false;
  Op op = Op::none;
  Uplo uplo = Uplo::lower;
  Lay lay_a = Lay::columns;
  Lay lay_c = Lay::columns;
  double beta = 0.5;
};

void check(Engine& engine, const Case& given) {
  const auto [dtype, hermitian, op, uplo, lay_a, lay_c, beta] = given;
  const std::int64_t order = 37;
  const std::int64_t inner = 25;
  const Array a = op == Op::none ? random_matrix(order, inner, dtype, lay_a, 1)
                                 : random_matrix(inner, order, dtype, lay_a, 1);
  Array c = spd_matrix(order, dtype, lay_c, 2);
  const Array before = c;
  Options options;
  options.tile = 16;
  if (hermitian)
    herk(engine, 1.5, a.view(), op, beta, c.view(), uplo, options);
  else
    syrk(engine, 1.5, a.view(), op, beta, c.view(), uplo, options);
  Array expected = before;
  for (std::int64_t j = 0; j < order; ++j) {
    for (std::int64_t i = 0; i < order; ++i) {
      if (!in_triangle(uplo, i, j)) continue;
      Complex sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        const Complex other = element(a, op, j, k);
        sum += element(a, op, i, k) * (hermitian ? std::conj(other) : other);
      }
      const Complex value = 1.5 * sum + (beta == 0 ? 0 : beta * before.get(i, j));
      ASSERT_LE(std::abs(c.get(i, j) - value), 8 * epsilon(dtype) * 40)
          << i << ", " << j << " " << name(dtype) << (hermitian ? " herk " : " syrk ")
          << static_cast<int>(op) << static_cast<int>(lay_a) << static_cast<int>(lay_c);
      expected.set(i, j, c.get(i, j));
    }
  }
  EXPECT_TRUE(c.same_bytes(expected)) << "the other triangle was touched";
}

void check_all(Engine& engine, DType dtype, Lay lay_a, Lay lay_c) {
  for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
    check(engine, {dtype, false, Op::none, uplo, lay_a, lay_c});
    check(engine, {dtype, false, Op::transpose, uplo, lay_a, lay_c});
    check(engine, {dtype, true, Op::none, uplo, lay_a, lay_c, 0});
    check(engine, {dtype, true, Op::conjugate, uplo, lay_a, lay_c});
  }
}

TEST(RankUpdate, TypesAndLayouts) {
  const auto engine = make_engine("cpu:2");
  for (const DType dtype : all_types)
    for (const Lay lay_a : all_layouts)
      for (const Lay lay_c : all_layouts) check_all(*engine, dtype, lay_a, lay_c);
}

TEST(RankUpdate, DevicesOfThreeTiles) {
  for (const char* const devices :
       {"emulated:2,memory=6KiB", "virtual:emulated:3,memory=6KiB,peer=off"}) {
    const auto engine = make_engine(devices);
    check_all(*engine, DType::float64, Lay::columns, Lay::rows);
    check_all(*engine, DType::float64, Lay::reversed, Lay::columns);
  }
}

TEST(RankUpdate, NothingToAdd) {
  const auto engine = make_engine("cpu:1");
  const Array a(3, 0, DType::float64);
  Array c = spd_matrix(3, DType::float64, Lay::columns, 1);
  const Array before = c;
  syrk(*engine, 1, a.view(), Op::none, 2, c.view(), Uplo::lower);
  EXPECT_EQ(c.get(2, 1), 2.0 * before.get(2, 1));
  EXPECT_EQ(c.get(1, 2), before.get(1, 2));
}

TEST(RankUpdate, RefusesWhatDoesNotFit) {
  const auto engine = make_engine("cpu:1");
  const Array a(4, 5, DType::complex64);
  Array c(4, 4, DType::complex64);
  EXPECT_THROW(herk(*engine, 1, a.view(), Op::transpose, 0, c.view(), Uplo::lower), Error);
  EXPECT_THROW(syrk(*engine, 1, a.view(), Op::conjugate, 0, c.view(), Uplo::lower), Error);
  EXPECT_THROW(syrk(*engine, 1, a.view(), Op::transpose, 0, c.view(), Uplo::lower), Error);
}

}  // namespace
}  // namespace quadriga::linalg::testing
