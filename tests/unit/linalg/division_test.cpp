// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/division_test.cpp: coarse tiles that divide on cores give the same bits however
// many cores take part, and those of undivided ones if told so.
#include <gtest/gtest.h>

#include "base/config.h"
#include "unit/linalg/matrices.h"

namespace quadriga::linalg::testing {
namespace {

class LinalgDivision : public ::testing::Test {
 protected:
  ~LinalgDivision() override { Config::global().unset("divide"); }

  /// By four tiles along an edge, each of which divides.
  static Array factor(const char* devices, DType type, Lay lay,
                      std::optional<bool> reproducible = std::nullopt) {
    const auto engine = make_engine(devices);
    Array c = spd_matrix(600, type, lay, 3);
    Options options;
    options.tile = 150;
    options.reproducible = reproducible;
    cholesky(*engine, c.view(), c.view(), Uplo::lower, Other::zero, options);
    return c;
  }
};

TEST_F(LinalgDivision, TheBitsDontDependOnTheNumberOfCores) {
  for (const DType type : {DType::float32, DType::complex128})
    for (const Lay lay : {Lay::columns, Lay::rows}) {
      const Array alone = factor("cpu:1", type, lay);
      for (int repeat = 0; repeat < 4; ++repeat)
        EXPECT_TRUE(alone.same_bytes(factor("cpu:4", type, lay)));
      EXPECT_TRUE(alone.same_bytes(factor("emulated:2", type, lay)));
    }
}

TEST_F(LinalgDivision, ByTheSettingAndReproducibleTheBitsAreThoseOfUndividedTiles) {
  const Array divided = factor("cpu:4", DType::float32, Lay::columns);
  const Array reproducible = factor("cpu:4", DType::float32, Lay::columns, true);
  Config::global().set("divide", "off");
  const Array off = factor("cpu:4", DType::float32, Lay::columns);
  EXPECT_TRUE(off.same_bytes(reproducible));
  EXPECT_FALSE(off.same_bytes(divided)) << "the tiles weren't divided";
}

TEST_F(LinalgDivision, AMinorThatIsNotPositiveIsNamedFromWithinADividedTile) {
  const auto engine = make_engine("cpu:4");
  Array c = spd_matrix(600, DType::float64, Lay::columns, 3);
  c.set(479, 479, -1e6);
  Options options;
  options.tile = 150;
  try {
    cholesky(*engine, c.view(), c.view(), Uplo::lower, Other::zero, options);
    FAIL() << "nothing was thrown";
  } catch (const NotPositiveDefinite& error) {
    EXPECT_EQ(error.minor(), 480);
  }
}

}  // namespace
}  // namespace quadriga::linalg::testing
