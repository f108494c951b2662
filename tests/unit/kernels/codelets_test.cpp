// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/codelets_test.cpp: codelets unpack their parameters, tell their cost and their
// failures.
#include "linalg/kernels/codelets.h"

#include "device/reference_machine.h"
#include "linalg/kernels/blas_threads.h"
#include "linalg/kernels/tile_measure.h"
#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

#include <cmath>
#include <cstring>
#include <thread>

namespace quadriga::kernels {
namespace {

template <class T>
constexpr DType dtype = DType::bytes;
template <>
constexpr DType dtype<float> = DType::float32;
template <>
constexpr DType dtype<double> = DType::float64;
template <>
constexpr DType dtype<std::complex<float>> = DType::complex64;
template <>
constexpr DType dtype<std::complex<double>> = DType::complex128;

template <class T>
View view(Matrix<T>& matrix) {
  const KernelTile<T> tile = matrix.tile();
  return {tile.data, tile.rows, tile.cols, tile.ld, dtype<T>};
}

/// Calls `use` with the arguments that a task of these operands and parameters gets.
template <class Params, class Use>
auto with(std::initializer_list<View> operands, const Params& params, Use use) {
  static_assert(std::is_trivially_copyable_v<Params>);
  const std::vector<View> views(operands);
  return use(Arguments{views, std::as_bytes(std::span(&params, 1)), nullptr});
}

template <class Params>
void run(const Codelet& codelet, std::initializer_list<View> operands, const Params& params) {
  EXPECT_EQ(codelet.access.size(), operands.size());
  with(operands, params, codelet.cpu);
}

template <class T>
class Codelets : public ::testing::Test {};
TYPED_TEST_SUITE(Codelets, Types);

TYPED_TEST(Codelets, GemmUpdatesOrOverwrites) {
  using T = TypeParam;
  auto a = Matrix<T>::random(12, 7, 1);
  auto b = Matrix<T>::random(9, 7, 2);
  auto c = Matrix<T>::random(12, 9, 3);
  auto d = c;
  auto expected = c;
  gemm(Op::none, Op::conjugate, T(-1), a.input(), b.input(), T(1), expected.tile());
  const GemmParams params{{-1, 0}, {1, 0}, Op::none, Op::conjugate};
  run(gemm_codelet(dtype<T>), {view(a), view(b), view(c)}, params);
  expect_same(c, expected);
  set(not_a_number<T>(), not_a_number<T>(), d.tile());
  gemm(Op::none, Op::conjugate, T(-1), a.input(), b.input(), T(0), expected.tile());
  run(gemm_write_codelet(dtype<T>), {view(a), view(b), view(d)}, params);
  expect_same(d, expected);
}

TYPED_TEST(Codelets, GemmTakesAPartOfTheRightFactor) {
  using T = TypeParam;
  auto a = Matrix<T>::random(12, 4, 1);
  for (const Op op : {Op::none, Op::transpose}) {
    auto b = op == Op::none ? Matrix<T>::random(10, 6, 2) : Matrix<T>::random(6, 10, 2);
    auto c = Matrix<T>::random(12, 6, 3);
    auto expected = c;
    const KernelTile<const T> all = b.input();
    const KernelTile<const T> rows = op == Op::none
                                         ? KernelTile<const T>{all.data + 5, 4, 6, all.ld}
                                         : KernelTile<const T>{all.column(5), 6, 4, all.ld};
    gemm(Op::none, op, T(1), a.input(), rows, T(1), expected.tile());
    run(gemm_codelet(dtype<T>), {view(a), view(b), view(c)},
        GemmParams{{1, 0}, {1, 0}, Op::none, op, false, false, 5});
    expect_same(c, expected);
    EXPECT_THROW(run(gemm_codelet(dtype<T>), {view(a), view(b), view(c)},
                     GemmParams{{1, 0}, {1, 0}, Op::none, op, false, false, 7}),
                 Error);
  }
}

TYPED_TEST(Codelets, ComplexScalarsArrive) {
  using T = TypeParam;
  auto a = Matrix<T>::random(4, 4, 1);
  const auto before = a;
  run(scale_codelet(dtype<T>), {view(a)}, ScaleParams{{0.5, 2}, {}});
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 4; ++i) {
      std::complex<double> expected(before(i, j));
      expected *= complex_type<T> ? std::complex<double>(0.5, 2) : 0.5;
      EXPECT_NEAR(std::abs(std::complex<double>(a(i, j)) - expected), 0, 1e-6);
    }
}

TYPED_TEST(Codelets, RankUpdatesWriteTheirTriangleAndClearTheOther) {
  using T = TypeParam;
  auto a = Matrix<T>::random(10, 6, 1);
  for (const Uplo uplo : {Uplo::lower, Uplo::upper}) {
    Matrix<T> c(10, 10);
    set(not_a_number<T>(), not_a_number<T>(), c.tile());
    auto d = c;
    const SyrkParams params{{2, 0}, {1, 0}, uplo, Op::none};
    run(syrk_write_codelet(dtype<T>), {view(a), view(c)}, params);
    run(herk_write_codelet(dtype<T>), {view(a), view(d)}, params);
    Matrix<T> expected(10, 10);
    syrk(uplo, Op::none, T(2), a.input(), T(0), expected.tile());
    expect_same(c, expected);
    run(syrk_codelet(dtype<T>), {view(a), view(c)}, params);
    syrk(uplo, Op::none, T(2), a.input(), T(1), expected.tile());
    expect_same(c, expected);
    expected = Matrix<T>(10, 10);
    herk(uplo, Op::none, 2, a.input(), 0, expected.tile());
    expect_same(d, expected);
    run(herk_codelet(dtype<T>), {view(a), view(d)}, params);
    herk(uplo, Op::none, 2, a.input(), 1, expected.tile());
    expect_same(d, expected);
  }
}

TYPED_TEST(Codelets, CholeskyAndSolve) {
  using T = TypeParam;
  auto a = Matrix<T>::positive(20, 1);
  auto b = Matrix<T>::random(5, 20, 2);
  const auto right = b;
  run(potrf_codelet(dtype<T>), {view(a)}, PotrfParams{});
  const TrsmParams params{{1, 0}, Side::right, Uplo::lower, Op::conjugate, Diag::non_unit};
  run(trsm_codelet(dtype<T>), {view(a), view(b)}, params);
  const auto factor = triangle_of(Uplo::lower, Diag::non_unit, a);
  expect_near(product(b, applied(Op::conjugate, factor)), right, tolerance<T>(20));
}

TYPED_TEST(Codelets, PotrfNamesTheMinorOfTheWholeMatrix) {
  using T = TypeParam;
  auto a = Matrix<T>::positive(20, 1);
  a(6, 6) = T(-1);
  try {
    run(potrf_codelet(dtype<T>), {view(a)}, PotrfParams{.first = 5'000'000'000});
    FAIL() << "nothing was thrown";
  } catch (const NotPositiveDefinite& error) {
    EXPECT_EQ(error.minor(), 5'000'000'007);
    EXPECT_EQ(error.code(), Errc::not_positive_definite);
  }
}

TYPED_TEST(Codelets, ElementsAreCopiedSetAndGenerated) {
  using T = TypeParam;
  const DType type = dtype<T>;
  auto a = Matrix<T>::random(8, 6, 1);
  Matrix<T> c(6, 8);
  run(copy_codelet(type), {view(a), view(c)}, CopyParams{Op::conjugate, {}});
  expect_same(c, applied(Op::conjugate, a));
  Matrix<T> d(8, 6);
  set(not_a_number<T>(), not_a_number<T>(), d.tile());
  run(copy_write_codelet(type), {view(a), view(d)}, CopyParams{Op::none, {Part::lower, 0}});
  expect_same(d, triangle_of(Uplo::lower, Diag::non_unit, a));
  run(axpby_codelet(type), {view(a), view(d)}, AxpbyParams{{1, 0}, {0, 0}, Op::none, {}});
  expect_same(d, a);
  run(set_codelet(type), {view(d)}, SetParams{{0, 0}, {1, 0}, {Part::upper, 0}});
  auto expected = a;
  set(T(0), T(1), expected.tile(), {Part::upper, 0});
  expect_same(d, expected);
  run(set_write_codelet(type), {view(d)}, SetParams{{3, 0}, {4, 0}, {Part::lower, 0}});
  expected = Matrix<T>(8, 6);
  set(T(3), T(4), expected.tile(), {Part::lower, 0});
  expect_same(d, expected);
  run(add_diagonal_codelet(type), {view(d)}, AddDiagonalParams{{2, 0}, 1});
  add_diagonal(T(2), expected.tile(), 1);
  expect_same(d, expected);
  const RandomMatrix random{.seed = 9, .first_row = 40, .first_col = 50};
  run(random_codelet(type), {view(d)}, random);
  fill_random(random, expected.tile());
  expect_same(d, expected);
  auto square = Matrix<T>::random(5, 5, 4);
  auto mirrored = square;
  mirror(Uplo::upper, Op::transpose, mirrored.tile());
  run(mirror_codelet(type), {view(square)}, MirrorParams{Uplo::upper, Op::transpose});
  expect_same(square, mirrored);
}

TYPED_TEST(Codelets, CostsAreNamedAndMeasuredAsInTheTables) {
  using T = TypeParam;
  const DType type = dtype<T>;
  const std::string letter(1, "sdcz"[static_cast<int>(type)]);
  const View a{nullptr, 30, 20, 30, type};
  const View b{nullptr, 20, 10, 20, type};
  const View c{nullptr, 30, 10, 30, type};
  const View square{nullptr, 30, 30, 30, type};
  const auto check = [&](const Cost& cost, const std::string& kernel, double volume) {
    EXPECT_EQ(cost.kernel, letter + kernel);
    EXPECT_DOUBLE_EQ(cost.volume, volume);
    EXPECT_NEAR(cost.order, std::cbrt(volume), 1e-12);
  };
  check(with({a, b, c}, GemmParams{}, gemm_codelet(type).cost), "gemm", 6000);
  check(with({a, a, b}, GemmParams{{}, {}, Op::transpose, Op::none}, gemm_write_codelet(type).cost),
        "gemm", 20 * 10 * 30);
  check(with({a, square}, SyrkParams{}, syrk_codelet(type).cost), "syrk", 18000);
  check(with({a, square}, SyrkParams{}, herk_codelet(type).cost), "syrk", 18000);
  check(with({square, c}, TrsmParams{}, trsm_codelet(type).cost), "trsm", 9000);
  check(with({square}, PotrfParams{}, potrf_codelet(type).cost), "potrf", 27000);
  EXPECT_EQ(with({a}, RandomMatrix{}, random_codelet(type).cost).kernel, letter + "gemm");
  EXPECT_EQ(gemm_codelet(type).name, letter + "gemm");
  EXPECT_EQ(&gemm_codelet(type), &gemm_codelet(type));
}

TEST(CovarianceCodelet, FillsATile) {
  const std::vector<double> coordinates{0, 1, 3, 6, 10};
  const Covariance covariance({}, Points(coordinates, 1));
  Matrix<double> a(2, 3);
  Matrix<double> expected(2, 3);
  run(covariance_codelet(DType::float64), {view(a)}, CovarianceTile{&covariance, 3, 1});
  covariance.fill(3, 1, expected.tile());
  expect_same(a, expected);
  EXPECT_THROW(covariance_codelet(DType::complex64), Error);
  EXPECT_THROW(gemm_codelet(DType::bytes), Error);
}

/// They were foretold to take half a millisecond on a GPU, so that few were queued ahead.
TEST(ElementsCodelet, OfFewElementsTakesALaunch) {
  const Machine& machine = reference_machine();
  const auto seconds = [&](std::int64_t order) {
    const View tile{nullptr, order, order, order, DType::float64};
    const Cost cost = scale_codelet(DType::float64).cost({{&tile, 1}, {}, nullptr});
    return machine.kernel_seconds(machine.devices.front(), cost.kernel, cost.order, cost.volume);
  };
  for (const std::int64_t order : {1, 2, 3, 8, 33}) EXPECT_LT(seconds(order), 2 * seconds(64));
}

TEST(MeasureCodelet, WritesAColumnOfDoubles) {
  auto a = Matrix<float>::random(6, 4, 1);
  Matrix<double> one(1, 1);
  run(measure_codelet(DType::float32), {view(a), view(one)}, MeasureParams{Measure::max_abs, {}});
  EXPECT_EQ(one(0, 0), max_abs<float>(a.input()));
  Matrix<double> rows(6, 1);
  set(1.0, 1.0, rows.tile());
  run(measure_codelet(DType::float32), {view(a), view(rows)}, MeasureParams{Measure::row_sums, {}});
  std::vector<double> expected(6);
  add_row_sums<float>(a.input(), expected);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(rows(i, 0), expected[i]);
  EXPECT_THROW(run(measure_codelet(DType::float32), {view(a), view(one)},
                   MeasureParams{Measure::column_sums, {}}),
               Error);
}

TEST(BlasThreads, AreOneExceptInAScope) {
  gemm_codelet(DType::float64);
  EXPECT_EQ(blas_threads(), 1);
  {
    const BlasThreads reference(2);
    EXPECT_EQ(blas_threads(), 2);
    use_one_blas_thread();
    EXPECT_EQ(blas_threads(), 2);
  }
  EXPECT_EQ(blas_threads(), 1);
  EXPECT_THROW(BlasThreads(0), Error);
}

/// A factor and a product, large enough to take some milliseconds.
std::vector<double> some_work() {
  auto a = Matrix<double>::positive(300, 1);
  potrf(Uplo::lower, a.tile());
  auto b = Matrix<double>::random(300, 300, 2);
  trsm(Side::right, Uplo::lower, Op::conjugate, Diag::non_unit, 1, a.input(), b.tile());
  auto c = Matrix<double>::random(300, 300, 3);
  gemm(Op::none, Op::conjugate, -1, b.input(), b.input(), 1, c.tile());
  syrk(Uplo::lower, Op::none, -1, b.input(), 1, c.tile());
  const KernelTile<double> tile = c.tile();
  return {tile.data, tile.data + static_cast<std::size_t>(tile.ld) * 300};
}

TEST(Kernels, GiveTheSameBitsInSeveralThreadsAtOnce) {
  use_one_blas_thread();
  const auto alone = some_work();
  constexpr int threads = 3;
  constexpr int rounds = 5;
  int different = 0;
  std::vector<int> differences(threads);
  {
    std::vector<std::jthread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&, t] {
        for (int round = 0; round < rounds; ++round) differences[t] += some_work() != alone;
      });
  }
  for (const int count : differences) different += count;
  EXPECT_EQ(different, 0);
}

}  // namespace
}  // namespace quadriga::kernels
