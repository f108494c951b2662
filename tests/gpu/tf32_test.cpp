// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/tf32_test.cpp: products of float32 by way of TF32 where it is allowed, and only there.
#include <cmath>
#include <vector>

#include "gpu/on_device.h"

namespace quadriga::kernels {
namespace {

constexpr int order = 1024;
// Half a unit in the last place of each format, relative.
constexpr double tf32_rounding = 1.0 / 2048;
constexpr double float32_rounding = 1.0 / (1 << 24);

class Tf32 : public OnDevice {
 protected:
  Tf32() {
    fill_random(RandomMatrix{.seed = 1}, a_.tile());
    fill_random(RandomMatrix{.seed = 2}, b_.tile());
  }

  /// The largest error of C = A*B, as a part of the sum of the products' magnitudes.
  double error_of_product(bool allow_tf32) {
    Matrix<float> c(order, order, 0);
    GemmParams params{{1, 0}, {}, Op::none, Op::none};
    params.allow_tf32 = allow_tf32;
    run(gemm_write_codelet(DType::float32), {view_of(a_), view_of(b_), view_of(c)}, params);
    EXPECT_EQ(error_, nullptr);
    double largest = 0;
    for (int j = 0; j < order; j += 7)
      for (int i = 0; i < order; ++i) largest = std::max(largest, error_at(c, i, j));
    return largest;
  }

 private:
  double error_at(const Matrix<float>& c, int i, int j) const {
    double sum = 0;
    double magnitude = 0;
    for (int k = 0; k < order; ++k) {
      const double product = static_cast<double>(a_(i, k)) * b_(k, j);
      sum += product;
      magnitude += std::abs(product);
    }
    return std::abs(c(i, j) - sum) / magnitude;
  }

  // Without margins, so that columns are aligned as tensor cores like it.
  Matrix<float> a_{order, order, 0};
  Matrix<float> b_{order, order, 0};
};

TEST_F(Tf32, RoundsFactorsWhereItIsAllowed) {
  const double error = error_of_product(true);
  // Both factors of a product are rounded, perhaps by leaving bits out.
  EXPECT_LT(error, 4 * tf32_rounding + order * float32_rounding);
  EXPECT_GT(error, 16 * float32_rounding);
}

TEST_F(Tf32, IsLeftAgainByTheNextProductOfTheStream) {
  EXPECT_GT(error_of_product(true), 16 * float32_rounding);
  EXPECT_LT(error_of_product(false), 8 * float32_rounding);
}

}  // namespace
}  // namespace quadriga::kernels
