// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/divisions_test.cpp: on the finer grid kernels compute what they do without.
#include "linalg/kernels/divisions.h"

#include "linalg/kernels/codelets.h"
#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

#include "graph/subgraph.h"

namespace quadriga::kernels {
namespace {

template <class T>
constexpr DType type_of = std::is_same_v<T, float>                 ? DType::float32
                          : std::is_same_v<T, double>              ? DType::float64
                          : std::is_same_v<T, std::complex<float>> ? DType::complex64
                                                                   : DType::complex128;

template <class T>
View view(Matrix<T>& matrix) {
  const KernelTile<T> tile = matrix.tile();
  return {tile.data, tile.rows, tile.cols, tile.ld, type_of<T>};
}

template <class T>
class Divisions : public ::testing::Test {
 protected:
  /// Runs the task with and without `fine`, and compares its last operand.
  template <class P>
  void compare(const Codelet& codelet, std::vector<Matrix<T>> operands, P params, int terms,
               std::size_t fine_tasks) {
    auto divided = operands;
    run(codelet, operands, params);
    params.fine = true;
    EXPECT_EQ(run(codelet, divided, params), fine_tasks) << codelet.name;
    const double largest = std::abs(std::complex<double>(operands.back()(0, 0))) + 1;
    expect_near(divided.back(), operands.back(), largest * tolerance<T>(terms));
    for (std::size_t i = 0; i + 1 < operands.size(); ++i) expect_same(divided[i], operands[i]);
  }

  /// Returns the number of fine tasks.
  template <class P>
  std::size_t run(const Codelet& codelet, std::vector<Matrix<T>>& operands, const P& params) {
    std::vector<View> views;
    for (Matrix<T>& each : operands) views.push_back(view(each));
    const Arguments arguments{views, std::as_bytes(std::span(&params, 1)), nullptr};
    Subgraph graph(codelet.name, codelet.access, views);
    Division division(graph);
    for (const KernelModule module : kernel_table())
      for (const KernelSpec& spec : module())
        if (spec.divide && &spec.codelet(type_of<T>) == &codelet) spec.divide(arguments, division);
    codelet.cpu(arguments);
    return graph.size();
  }
};
TYPED_TEST_SUITE(Divisions, Types);

TEST(FineLength, IsAQuarterOfATileThatIsLargeEnough) {
  EXPECT_EQ(fine_length(0), 0);
  EXPECT_EQ(fine_length(127), 127);
  EXPECT_EQ(fine_length(128), 64);
  EXPECT_EQ(fine_length(1024), 256);
  EXPECT_EQ(fine_length(1000), 256);
}

TYPED_TEST(Divisions, OfProducts) {
  using T = TypeParam;
  constexpr int m = 150, n = 140, k = 20;
  for (const Op op_a : {Op::none, Op::transpose, Op::conjugate})
    for (const Op op_b : {Op::none, Op::conjugate}) {
      const auto a = op_a == Op::none ? Matrix<T>::random(m, k, 1) : Matrix<T>::random(k, m, 1);
      const auto b = op_b == Op::none ? Matrix<T>::random(k, n, 2) : Matrix<T>::random(n, k, 2);
      const GemmParams params{{-1, 0.5}, {2, 0}, op_a, op_b};
      this->compare(gemm_codelet(type_of<T>), {a, b, Matrix<T>::random(m, n, 3)}, params, k, 9);
    }
}

TYPED_TEST(Divisions, OfProductsWithAPartOfTheRightFactor) {
  using T = TypeParam;
  GemmParams params{{1, 0}, {1, 0}, Op::none, Op::transpose};
  params.inner = 7;
  this->compare(
      gemm_codelet(type_of<T>),
      {Matrix<T>::random(130, 9, 1), Matrix<T>::random(10, 20, 2), Matrix<T>::random(130, 10, 3)},
      params, 9, 3);
}

TYPED_TEST(Divisions, OfRankUpdates) {
  using T = TypeParam;
  constexpr int n = 140, k = 15;
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    for (const bool turned : {false, true})
      for (const bool adjoint : {false, true}) {
        const auto a = turned ? Matrix<T>::random(k, n, 1) : Matrix<T>::random(n, k, 1);
        const Op op = !turned ? Op::none : adjoint ? Op::conjugate : Op::transpose;
        const SyrkParams params{{-1.5, adjoint ? 0 : 0.5}, {0.5, 0}, uplo, op};
        this->compare(adjoint ? herk_codelet(type_of<T>) : syrk_codelet(type_of<T>),
                      {a, Matrix<T>::positive(n, 2)}, params, n, 6);
      }
}

TYPED_TEST(Divisions, OfSolves) {
  using T = TypeParam;
  for (const Side side : {Side::left, Side::right})
    for (const Uplo uplo : {Uplo::lower, Uplo::upper})
      for (const Op op : {Op::none, Op::transpose, Op::conjugate}) {
        const auto b =
            side == Side::left ? Matrix<T>::random(12, 130, 2) : Matrix<T>::random(130, 12, 2);
        this->compare(trsm_codelet(type_of<T>), {Matrix<T>::positive(12, 1), b},
                      TrsmParams{{2, 0}, side, uplo, op}, 12, 3);
      }
}

TYPED_TEST(Divisions, OfCholesky) {
  using T = TypeParam;
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    this->compare(potrf_codelet(type_of<T>), {Matrix<T>::positive(150, 1)}, PotrfParams{0, uplo},
                  150, 10);
}

TYPED_TEST(Divisions, OfWhatIsSmallAreNone) {
  using T = TypeParam;
  this->compare(potrf_codelet(type_of<T>), {Matrix<T>::positive(127, 1)}, PotrfParams{}, 127, 0);
}

TYPED_TEST(Divisions, TheFirstMinorThatIsNotPositiveIsNamed) {
  using T = TypeParam;
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    for (const T bad : {T(-1), not_a_number<T>()}) {
      std::vector<Matrix<T>> a{Matrix<T>::positive(150, 1)};
      a[0](70, 70) = bad;
      a[0](149, 149) = T(-1);
      try {
        this->run(potrf_codelet(type_of<T>), a, PotrfParams{1000, uplo, true});
        FAIL() << "nothing was thrown";
      } catch (const NotPositiveDefinite& error) {
        EXPECT_EQ(error.minor(), 1071);
      }
    }
}

}  // namespace
}  // namespace quadriga::kernels
