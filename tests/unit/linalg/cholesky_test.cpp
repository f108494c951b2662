// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/cholesky_test.cpp: factors against their definition and LAPACK's, and what goes
// wrong.
#include "unit/linalg/matrices.h"

extern "C" void dpotrf_(const char* uplo, const int* n, double* a, const int* lda, int* info);

namespace quadriga::linalg::testing {
namespace {

/// Element (i, j) of F*F^H or F^H*F, with the other triangle of F taken as zero.
Complex rebuilt(const Array& factor, Uplo uplo, std::int64_t i, std::int64_t j) {
  Complex sum = 0;
  for (std::int64_t k = 0; k <= std::min(i, j); ++k)
    sum += uplo == Uplo::lower ? factor.get(i, k) * std::conj(factor.get(j, k))
                               : std::conj(factor.get(k, i)) * factor.get(k, j);
  return sum;
}

void expect_factor(const Array& factor, const Array& a, Uplo uplo, const std::string& what) {
  const double bound = 8 * epsilon(a.view().dtype) * static_cast<double>(a.rows() + 2) *
                       static_cast<double>(a.rows() + 1);
  for (std::int64_t j = 0; j < a.cols(); ++j)
    for (std::int64_t i = 0; i < a.rows(); ++i)
      ASSERT_LE(std::abs(rebuilt(factor, uplo, i, j) - a.get(i, j)), bound)
          << what << " at " << i << ", " << j;
}

std::string label(DType dtype, Uplo uplo, Lay in, Lay out) {
  return std::string(name(dtype)) + (uplo == Uplo::lower ? " lower " : " upper ") +
         std::to_string(static_cast<int>(in)) + std::to_string(static_cast<int>(out));
}

/// Factorizes a copy whose unwanted triangle holds NaN, in its place or elsewhere.
void check(Engine& engine, DType dtype, Uplo uplo, Lay in, Lay out, bool in_place, Other other,
           std::int64_t order = 43, std::int64_t tile = 16) {
  const Array a = spd_matrix(order, dtype, in, 5);
  Array given = a;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t j = 0; j < order; ++j)
    for (std::int64_t i = 0; i < order; ++i)
      if (!in_triangle(uplo, i, j)) given.set(i, j, nan);
  const Array before = given;
  Array elsewhere = random_matrix(order, order, dtype, out, 6);
  const Array elsewhere_before = elsewhere;
  Array& target = in_place ? given : elsewhere;
  cholesky(engine, given.view(), target.view(), uplo, other, {.tile = tile});
  const std::string what = label(dtype, uplo, in, out);
  expect_factor(target, a, uplo, what);
  if (!in_place) {
    EXPECT_TRUE(given.same_bytes(before)) << what;
  }
  for (std::int64_t j = 0; j < order; ++j)
    for (std::int64_t i = 0; i < order; ++i) {
      if (in_triangle(uplo, i, j)) continue;
      if (other == Other::zero) {
        ASSERT_EQ(target.get(i, j), Complex(0)) << what;
      } else if (!in_place) {
        ASSERT_EQ(target.get(i, j), elsewhere_before.get(i, j)) << what;
      }
    }
}

TEST(Cholesky, TypesTrianglesAndLayouts) {
  const auto engine = make_engine("cpu:2");
  for (const DType dtype : all_types)
    for (const Uplo uplo : {Uplo::lower, Uplo::upper})
      for (const Lay in : all_layouts) {
        check(*engine, dtype, uplo, in, in, true, Other::zero);
        for (const Lay out : all_layouts)
          check(*engine, dtype, uplo, in, out, false,
                out == Lay::gaps || out == Lay::every_other ? Other::leave : Other::zero);
      }
}

TEST(Cholesky, DevicesOfThreeTiles) {
  for (const char* const devices :
       {"emulated:2,memory=6KiB", "emulated:3,memory=7KiB,peer=off",
        "virtual:emulated:3,memory=6KiB", "virtual:emulated:2,memory=20KiB"}) {
    const auto engine = make_engine(devices);
    for (const Uplo uplo : {Uplo::lower, Uplo::upper})
      for (const Lay in : {Lay::columns, Lay::rows, Lay::every_other}) {
        check(*engine, DType::float64, uplo, in, in, true, Other::zero);
        check(*engine, DType::float64, uplo, in, Lay::rows, false, Other::leave);
        check(*engine, DType::complex64, uplo, in, Lay::reversed, false, Other::zero);
      }
  }
}

TEST(Cholesky, SizesAroundTheTile) {
  const auto engine = make_engine("cpu:2");
  for (const std::int64_t order : {0, 1, 2, 15, 16, 17, 31, 32, 33})
    for (const std::int64_t tile : {0, 1, 16})
      check(*engine, DType::float64, Uplo::lower, Lay::columns, Lay::rows, false, Other::zero,
            order, tile);
}

TEST(Cholesky, AgreesWithLapack) {
  const int order = 200;
  const auto engine = make_engine("cpu:2");
  const Array a = spd_matrix(order, DType::float64, Lay::columns, 7);
  Array factor = a;
  cholesky(*engine, a.view(), factor.view(), Uplo::lower, Other::leave, {.tile = 48});
  Array expected = a;
  int info = 0;
  dpotrf_("L", &order, static_cast<double*>(expected.view().data), &order, &info);
  ASSERT_EQ(info, 0);
  for (std::int64_t j = 0; j < order; ++j)
    for (std::int64_t i = j; i < order; ++i)
      ASSERT_NEAR(factor.get(i, j).real(), expected.get(i, j).real(), 1e-13);
}

TEST(Cholesky, NamesTheLeadingMinorAndTheEngineWorksOn) {
  for (const char* const devices :
       {"cpu:2", "emulated:2,memory=16KiB", "virtual:emulated:3,memory=8KiB"}) {
    const auto engine = make_engine(devices);
    for (const std::int64_t bad : {0, 15, 16, 38, 59}) {
      for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
        Array a = spd_matrix(60, DType::float64, Lay::columns, 8);
        a.set(bad, bad, -1e6);
        if (bad < 59) a.set(59, 59, -1e9);  // the smallest minor counts
        const Array before = a;
        Array out(60, 60, DType::float64);
        try {
          cholesky(*engine, a.view(), out.view(), uplo, Other::zero, {.tile = 16});
          FAIL() << "no error";
        } catch (const NotPositiveDefinite& error) {
          EXPECT_EQ(error.minor(), bad + 1) << devices;
        }
        EXPECT_TRUE(a.same_bytes(before));
        EXPECT_THROW(cho_factor(*engine, a.view(), {uplo}, {.tile = 16}), NotPositiveDefinite);
        EXPECT_TRUE(a.same_bytes(before));
      }
    }
    check(*engine, DType::float64, Uplo::lower, Lay::columns, Lay::columns, false, Other::zero);
  }
}

TEST(Cholesky, NaNIsNotPositiveDefiniteUnlessLookedFor) {
  const auto engine = make_engine("cpu:2");
  Array a = spd_matrix(40, DType::float64, Lay::columns, 9);
  a.set(20, 3, std::numeric_limits<double>::quiet_NaN());
  Array out(40, 40, DType::float64);
  EXPECT_THROW(cholesky(*engine, a.view(), out.view(), Uplo::lower, Other::zero, {.tile = 16}),
               NotPositiveDefinite);
  try {
    cholesky(*engine, a.view(), out.view(), Uplo::lower, Other::zero,
             {.tile = 16, .check_finite = true});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
  }
}

TEST(Cholesky, RefusesWhatDoesNotFit) {
  const auto engine = make_engine("cpu:1");
  const Array a = spd_matrix(9, DType::float64, Lay::columns, 1);
  const Array wide(9, 8, DType::float64);
  const Array single(9, 9, DType::float32);
  EXPECT_THROW(cholesky(*engine, wide.view(), wide.view()), Error);
  EXPECT_THROW(cholesky(*engine, a.view(), single.view()), Error);
  MatrixView shifted = a.view();
  shifted.data = static_cast<double*>(shifted.data) + 1;
  EXPECT_THROW(cholesky(*engine, a.view(), shifted), Error);
  EXPECT_THROW(cholesky(*engine, a.view().transposed(), a.view()), Error);
}

TEST(Cholesky, TooLargeATileIsRefusedWithBothSizes) {
  const auto engine = make_engine("emulated:1,memory=64KiB");
  Array a = spd_matrix(300, DType::float64, Lay::columns, 1);
  try {
    cholesky(*engine, a.view(), a.view(), Uplo::lower, Other::zero, {.tile = 100});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::too_large) << error.what();
  }
  check(*engine, DType::float64, Uplo::lower, Lay::columns, Lay::columns, true, Other::zero);
}

}  // namespace
}  // namespace quadriga::linalg::testing
