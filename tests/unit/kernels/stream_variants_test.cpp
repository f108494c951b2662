// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/kernels/stream_variants_test.cpp: variants for streams, on a stream that computes on
// the host, give what the host's give, by the calls that are meant.
#include "unit/kernels/host_stream.h"
#include "unit/kernels/matrices.h"

#include <quadriga/error.h>

#include <functional>
#include <tuple>

namespace quadriga::kernels {
namespace {

template <class T>
constexpr DType data_type = std::is_same_v<T, float>                 ? DType::float32
                            : std::is_same_v<T, double>              ? DType::float64
                            : std::is_same_v<T, std::complex<float>> ? DType::complex64
                                                                     : DType::complex128;

constexpr Op ops[] = {Op::none, Op::transpose, Op::conjugate};

const KernelSpec& row(std::string_view name) {
  for (const KernelModule module : kernel_table())
    for (const KernelSpec& spec : module())
      if (spec.name == name) return spec;
  throw std::invalid_argument(std::string(name));
}

template <class T>
class StreamVariants : public ::testing::Test {
 protected:
  /// Runs both variants, and compares the last operand.
  template <class P>
  void compare(std::string_view kernel, std::vector<Matrix<T>> operands, const P& params,
               int terms) {
    SCOPED_TRACE(kernel);
    std::vector<Matrix<T>> expected = operands;
    call(expected, params, [&](const Arguments& arguments) {
      row(kernel).host[type_index(data_type<T>)](arguments);
    });
    queue(kernel, operands, params);
    if (on_end_) on_end_();
    expect_near(operands.back(), expected.back(), terms * tolerance<T>(terms));
  }
  template <class P>
  void queue(std::string_view kernel, std::vector<Matrix<T>>& operands, const P& params) {
    call(operands, params, [&](Arguments arguments) {
      arguments.on_end = &on_end_;
      arguments.workspace = workspace_;
      std::get<StreamVariant<T>>(row(kernel).stream)(arguments, on_);
    });
  }

  HostStream<T> on_;
  std::function<void()> on_end_;
  std::vector<std::byte> workspace_;  ///< Of stream variants.

 private:
  template <class P, class Use>
  static void call(std::vector<Matrix<T>>& operands, const P& params, Use use) {
    std::vector<View> views;
    for (Matrix<T>& each : operands) {
      const KernelTile<T> tile = each.tile();
      views.push_back({tile.data, tile.rows, tile.cols, tile.ld, data_type<T>});
    }
    use(Arguments{views, std::as_bytes(std::span(&params, 1)), nullptr});
  }
};
TYPED_TEST_SUITE(StreamVariants, Types);

TYPED_TEST(StreamVariants, ProductsAreOneCall) {
  using T = TypeParam;
  for (const Op op_a : ops)
    for (const Op op_b : ops) {
      const auto a = op_a == Op::none ? Matrix<T>::random(12, 7, 1) : Matrix<T>::random(7, 12, 1);
      const auto b = op_b == Op::none ? Matrix<T>::random(7, 9, 2) : Matrix<T>::random(9, 7, 2);
      const GemmParams params{{-1, 0.5}, {0.5, 1}, op_a, op_b};
      this->compare("gemm", {a, b, Matrix<T>::random(12, 9, 3)}, params, 7);
      this->compare("gemm_write", {a, b, Matrix<T>::random(12, 9, 3)}, params, 7);
    }
  EXPECT_EQ(this->on_.calls["gemm"], 18);
  this->compare("gemm", {Matrix<T>(5, 0), Matrix<T>(0, 4), Matrix<T>::random(5, 4, 1)},
                GemmParams{{1, 0}, {2, 0}, Op::none, Op::none}, 1);
  EXPECT_EQ(this->on_.calls["gemm"], 18);
}

/// Edges that are no whole number of loads of 16 bytes are cut: all of the product is there.
TYPED_TEST(StreamVariants, ProductsOfOddEdgesAreCut) {
  using T = TypeParam;
  constexpr int m = 517, n = 519, k = 515;
  constexpr bool one_load = sizeof(T) == 16;
  const auto cuts = [&](Op op_a, Op op_b) {
    if (one_load) return 1;
    return 1 + int{op_a != Op::none || op_b == Op::none} + int{op_a == Op::none} +
           int{op_b != Op::none};
  };
  for (const Op op_a : {Op::none, Op::conjugate})
    for (const Op op_b : {Op::none, Op::transpose}) {
      const auto a = op_a == Op::none ? Matrix<T>::random(m, k, 1) : Matrix<T>::random(k, m, 1);
      const auto b = op_b == Op::none ? Matrix<T>::random(k, n, 2) : Matrix<T>::random(n, k, 2);
      this->on_.calls.clear();
      this->compare("gemm", {a, b, Matrix<T>::random(m, n, 3)},
                    GemmParams{{-1, 0.5}, {0.5, 1}, op_a, op_b}, k);
      EXPECT_EQ(this->on_.calls["gemm"], cuts(op_a, op_b));
    }
}

TYPED_TEST(StreamVariants, RankUpdates) {
  using T = TypeParam;
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    for (const bool turned : {false, true}) {
      const auto a = turned ? Matrix<T>::random(23, 50, 1) : Matrix<T>::random(50, 23, 1);
      const SyrkParams plain{{2, 0}, {-1, 0}, uplo, turned ? Op::transpose : Op::none};
      const SyrkParams adjoint{{2, 0}, {-1, 0}, uplo, turned ? Op::conjugate : Op::none};
      const auto c = Matrix<T>::random(50, 50, 2);
      this->compare("syrk", {a, c}, plain, 23);
      this->compare("syrk_write", {a, c}, plain, 23);
      this->compare("herk", {a, c}, adjoint, 23);
      this->compare("herk_write", {a, c}, adjoint, 23);
    }
  EXPECT_EQ(this->on_.calls["syrk"], complex_type<T> ? 8 : 16);
  EXPECT_EQ(this->on_.calls["herk"], complex_type<T> ? 8 : 0);
}

TYPED_TEST(StreamVariants, SolvesGoByHalvesWhereTheDeviceSubstitutes) {
  using T = TypeParam;
  for (const int most : {0, 16})
    for (const int order : {16, 30, 65})
      for (const Side side : {Side::left, Side::right})
        for (const Uplo uplo : {Uplo::lower, Uplo::upper})
          for (const Op op : ops) {
            auto a = Matrix<T>::random(order, order, 1);
            scale(T(0.125f), a.tile());
            add_diagonal(T(4), a.tile());
            const auto b = side == Side::left ? Matrix<T>::random(order, 7, 2)
                                              : Matrix<T>::random(7, order, 2);
            this->on_.calls.clear();
            this->on_.most_by_substitution = most;
            this->compare("trsm", {a, b}, TrsmParams{{2, 0}, side, uplo, op}, order);
            EXPECT_EQ(this->on_.calls["trsm"], most == 0);
            const int parts = most == 0 ? 0 : (order + most - 1) / most;
            EXPECT_EQ(this->on_.calls["substitute"], parts);
            EXPECT_EQ(this->on_.calls["gemm"], std::max(0, parts - 1));
          }
}

/// What a task states is what it takes; a library that wants more gets scratch.
TYPED_TEST(StreamVariants, CholeskyComputesInItsWorkspace) {
  using T = TypeParam;
  const View shape{nullptr, 20, 20, 20, data_type<T>};
  const PotrfParams params;
  const std::size_t stated =
      row("potrf").workspace({{&shape, 1}, std::as_bytes(std::span(&params, 1)), nullptr});
  const std::size_t needed =
      256 + this->on_.potrf_bytes(Uplo::lower, Matrix<T>(20, 20).tile()).device;
  ASSERT_LE(needed, stated);
  for (const std::size_t bytes : {stated, needed, needed - 1, std::size_t{0}}) {
    this->on_.calls.clear();
    this->workspace_.assign(bytes, std::byte{0});
    this->compare("potrf", {Matrix<T>::positive(20, 1)}, params, 20);
    EXPECT_EQ(this->on_.calls["solver_scratch"], bytes < needed) << bytes;
  }
}

TYPED_TEST(StreamVariants, CholeskyReportsItsMinorAtTheEnd) {
  using T = TypeParam;
  for (const Uplo uplo : {Uplo::lower, Uplo::upper})
    this->compare("potrf", {Matrix<T>::positive(20, 1)}, PotrfParams{0, uplo}, 20);
  this->compare("potrf", {Matrix<T>(0, 0)}, PotrfParams{}, 1);
  EXPECT_EQ(this->on_.calls["potrf"], 2);
  EXPECT_EQ(this->on_.host_words->in_use, 0);
  std::vector<Matrix<T>> bad{Matrix<T>::positive(20, 1)};
  bad[0](6, 6) = T(-1);
  this->queue("potrf", bad, PotrfParams{.first = 5'000'000'000});
  EXPECT_EQ(this->on_.host_words->in_use, 1);
  try {
    this->on_end_();
    FAIL() << "nothing was thrown";
  } catch (const NotPositiveDefinite& error) {
    EXPECT_EQ(error.minor(), 5'000'000'007);
  }
  EXPECT_EQ(this->on_.host_words->in_use, 0);
}

TYPED_TEST(StreamVariants, Elements) {
  using T = TypeParam;
  const auto a = Matrix<T>::random(8, 6, 1);
  const auto c = Matrix<T>::random(8, 6, 2);
  const TileRegion lower{Part::lower, 0};
  this->compare("copy", {a, c}, CopyParams{Op::none, lower}, 1);
  this->compare("copy_write", {a, c}, CopyParams{Op::none, lower}, 1);
  this->compare("axpby", {a, c}, AxpbyParams{{2, 1}, {3, 0}, Op::none, lower}, 1);
  this->compare("scale", {a}, ScaleParams{{2, 1}, lower}, 1);
  this->compare("set", {a}, SetParams{{2, 1}, {3, 0}, lower}, 1);
  this->compare("set_write", {a}, SetParams{{2, 1}, {3, 0}, lower}, 1);
  this->compare("add_diagonal", {a}, AddDiagonalParams{{2, 1}, 1}, 1);
  this->compare("mirror", {Matrix<T>::random(6, 6, 3)}, MirrorParams{Uplo::upper, Op::transpose},
                1);
  this->compare("random", {a}, RandomMatrix{.seed = 9, .first_row = 40}, 1);
}

TEST(StreamProducts, TurnTheRightFactorFirstWhereThereIsMemory) {
  HostStream<double> on;
  const auto a = Matrix<double>::random(4096, 1024, 1);
  const auto b = Matrix<double>::random(1024, 1024, 2);
  auto c = Matrix<double>(4096, 1024);
  auto d = c;
  queue_gemm(on, Op::none, Op::conjugate, 1, a.input(), b.input(), 0, c.tile());
  EXPECT_EQ(on.calls["copy"], 1);
  EXPECT_EQ(on.calls["gemm"], 1);
  on.has_memory = false;
  queue_gemm(on, Op::none, Op::conjugate, 1, a.input(), b.input(), 0, d.tile());
  EXPECT_EQ(on.calls["copy"], 1);
  EXPECT_EQ(on.calls["gemm"], 2);
  expect_near(c, d, tolerance<double>(1024));
}

}  // namespace
}  // namespace quadriga::kernels
