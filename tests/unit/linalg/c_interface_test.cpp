// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/linalg/c_interface_test.cpp: quadriga.h computes what it says and names what is wrong.
#include <gtest/gtest.h>
#include <quadriga/quadriga.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device_homes.h"
#include "engine/c_engine.h"

namespace quadriga::linalg {
namespace {

/// The routines of a type.
template <class T>
struct Routines;
#define QUADRIGA_ROUTINES_OF(x, T)                     \
  template <>                                          \
  struct Routines<T> {                                 \
    static constexpr auto gemm = quadriga_##x##gemm;   \
    static constexpr auto syrk = quadriga_##x##syrk;   \
    static constexpr auto potrf = quadriga_##x##potrf; \
    static constexpr auto potrs = quadriga_##x##potrs; \
    static constexpr auto posv = quadriga_##x##posv;   \
    static constexpr auto trtrs = quadriga_##x##trtrs; \
  }
QUADRIGA_ROUTINES_OF(s, float);
QUADRIGA_ROUTINES_OF(d, double);
QUADRIGA_ROUTINES_OF(c, std::complex<float>);
QUADRIGA_ROUTINES_OF(z, std::complex<double>);

float conjugate(float value) { return value; }
double conjugate(double value) { return value; }
template <class T>
std::complex<T> conjugate(std::complex<T> value) {
  return std::conj(value);
}

/// Null: matrices are on the host; else in turns on two devices and the host.
DeviceHomes* places = nullptr;

template <class T>
struct Memory {
  using value_type = T;
  static T* allocate(std::size_t count) {
    static int turn = 0;
    const int place = ++turn % 3;
    if (!places || place == 2) return std::allocator<T>().allocate(count);
    return reinterpret_cast<T*>(places->take(static_cast<DeviceId>(place), count * sizeof(T)));
  }
  /// What is on a device goes with its engine.
  static void deallocate(T* memory, std::size_t count) {
    if (!places || !places->holds(memory)) std::allocator<T>().deallocate(memory, count);
  }
  bool operator==(const Memory&) const = default;
};

/// A matrix by columns with gaps between them, of small integers, so that sums are exact.
template <class T>
struct Square {
  std::int64_t n, ld;
  std::vector<T, Memory<T>> elements;
  explicit Square(std::int64_t order, std::int64_t seed = 0)
      : n(order), ld(order + 3), elements(static_cast<std::size_t>(ld * n), T(7)) {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i) (*this)(i, j) = value((i * 5 + j * 3 + seed) % 7 - 3);
  }
  static T value(std::int64_t small) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(small);
    else
      return T(static_cast<typename T::value_type>(small),
               static_cast<typename T::value_type>(small % 2));
  }
  T& operator()(std::int64_t i, std::int64_t j) {
    return elements[static_cast<std::size_t>(i + j * ld)];
  }
  T operator()(std::int64_t i, std::int64_t j) const {
    return elements[static_cast<std::size_t>(i + j * ld)];
  }
  T at(char trans, std::int64_t i, std::int64_t j) const {
    if (trans == 'N') return (*this)(i, j);
    return trans == 'T' ? (*this)(j, i) : conjugate((*this)(j, i));
  }
  T* data() { return elements.data(); }
};

template <class T>
T product(const Square<T>& a, char op_a, const Square<T>& b, char op_b, std::int64_t i,
          std::int64_t j) {
  T sum = 0;
  for (std::int64_t k = 0; k < a.n; ++k) sum += a.at(op_a, i, k) * b.at(op_b, k, j);
  return sum;
}

template <class T, bool on_devices>
struct Case {
  using Element = T;
  static constexpr bool is_on_devices = on_devices;
};

template <class Case>
class CInterface : public testing::Test {
 protected:
  using Element = typename Case::Element;

  CInterface() {
    constexpr const char* devices = "emulated:2,memory=1MiB";
    if (Case::is_on_devices) {
      engine = new quadriga_engine{EngineAccess::make(homes_.around({{.devices = devices}}))};
      places = &homes_;
    } else {
      EXPECT_EQ(quadriga_open(devices, &engine), 0);
    }
  }
  ~CInterface() override {
    places = nullptr;
    quadriga_close(engine);
  }

  /// Positive definite, with elements of both triangles.
  static Square<Element> definite(std::int64_t n) {
    const Square<Element> root(n, 2);
    Square<Element> a(n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i)
        a(i, j) = product(root, 'N', root, 'C', i, j) + (i == j ? Element(40) : Element(0));
    return a;
  }

  DeviceHomes homes_;
  quadriga_engine* engine = nullptr;
  static constexpr std::int64_t order = 37;
};

using Types =
    testing::Types<Case<float, false>, Case<double, false>, Case<std::complex<float>, false>,
                   Case<std::complex<double>, false>, Case<float, true>, Case<double, true>,
                   Case<std::complex<float>, true>, Case<std::complex<double>, true>>;
TYPED_TEST_SUITE(CInterface, Types);

TYPED_TEST(CInterface, Products) {
  using T = typename TypeParam::Element;
  const T two = 2, minus_one = -1;
  for (const char trans_a : {'N', 'T', 'C'})
    for (const char trans_b : {'n', 't', 'c'}) {
      Square<T> a(this->order, 1), b(this->order, 2), c(this->order, 3);
      const Square<T> before = c;
      const std::int64_t n = this->order;
      ASSERT_EQ(Routines<T>::gemm(this->engine, trans_a, trans_b, n, n, n, &two, a.data(), a.ld,
                                  b.data(), b.ld, &minus_one, c.data(), c.ld),
                0)
          << quadriga_message();
      const char op_b = static_cast<char>(trans_b - 'a' + 'A');
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i)
          ASSERT_EQ(c(i, j), two * product(a, trans_a, b, op_b, i, j) - before(i, j));
      for (std::int64_t gap = n; gap < c.ld; ++gap) EXPECT_EQ(c(gap, 0), T(7));
    }
}

TYPED_TEST(CInterface, RankUpdatesTouchOneTriangle) {
  using T = typename TypeParam::Element;
  const T two = 2, three = 3;
  for (const char uplo : {'L', 'U'})
    for (const char trans : {'N', 'T'}) {
      Square<T> a(this->order, 1), c(this->order, 3);
      const Square<T> before = c;
      ASSERT_EQ(Routines<T>::syrk(this->engine, uplo, trans, c.n, c.n, &two, a.data(), a.ld, &three,
                                  c.data(), c.ld),
                0)
          << quadriga_message();
      const char second = trans == 'N' ? 'T' : 'N';
      for (std::int64_t j = 0; j < c.n; ++j)
        for (std::int64_t i = 0; i < c.n; ++i) {
          const bool inside = uplo == 'L' ? i >= j : i <= j;
          ASSERT_EQ(c(i, j), inside
                                 ? two * product(a, trans, a, second, i, j) + three * before(i, j)
                                 : before(i, j));
        }
    }
}

TYPED_TEST(CInterface, FactorsAndSolutions) {
  using T = typename TypeParam::Element;
  for (const char uplo : {'L', 'U'}) {
    const Square<T> a = this->definite(this->order);
    Square<T> factor = a, factor_of_posv = a, x(this->order, 4);
    const std::int64_t n = a.n, nrhs = 5;
    const Square<T> b = x;
    Square<T> y = x, z = x;
    ASSERT_EQ(Routines<T>::potrf(this->engine, uplo, n, factor.data(), factor.ld), 0);
    ASSERT_EQ(
        Routines<T>::potrs(this->engine, uplo, n, nrhs, factor.data(), factor.ld, x.data(), x.ld),
        0);
    ASSERT_EQ(Routines<T>::posv(this->engine, uplo, n, nrhs, factor_of_posv.data(),
                                factor_of_posv.ld, y.data(), y.ld),
              0);
    // The same in two steps: L z = b, then L^H z = z; U^H z = b, then U z = z.
    const char first = uplo == 'L' ? 'N' : 'C', second = uplo == 'L' ? 'C' : 'N';
    for (const char trans : {first, second})
      ASSERT_EQ(Routines<T>::trtrs(this->engine, uplo, trans, 'N', n, nrhs, factor.data(),
                                   factor.ld, z.data(), z.ld),
                0);
    const double tolerance = sizeof(std::abs(T())) == 4 ? 1e-3 : 1e-11;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i) {
        const bool inside = uplo == 'L' ? i >= j : i <= j;
        // Not to the bit: a BLAS may round by alignment.
        ASSERT_LE(std::abs(factor_of_posv(i, j) - factor(i, j)), tolerance);
        if (!inside) {
          ASSERT_EQ(factor(i, j), a(i, j)) << "the other triangle was touched";
        }
        if (j >= nrhs) {
          ASSERT_EQ(x(i, j), b(i, j));
        } else {
          ASSERT_LE(std::abs(x(i, j) - y(i, j)), tolerance);
          ASSERT_LE(std::abs(x(i, j) - z(i, j)), tolerance);
          ASSERT_LE(std::abs(product(a, 'N', x, 'N', i, j) - b(i, j)), 1e3 * tolerance);
        }
      }
  }
}

TYPED_TEST(CInterface, MatricesThatArentDefiniteNameTheMinor) {
  using T = typename TypeParam::Element;
  Square<T> a = this->definite(this->order), b(this->order);
  a(20, 20) = T(-1);
  const Square<T> before = b;
  EXPECT_EQ(Routines<T>::posv(this->engine, 'L', a.n, b.n, a.data(), a.ld, b.data(), b.ld), 21);
  EXPECT_NE(std::string(quadriga_message()).find("21"), std::string::npos) << quadriga_message();
  EXPECT_EQ(b.elements, before.elements);
  EXPECT_EQ(Routines<T>::potrf(this->engine, 'L', 0, nullptr, 1), 0);
  a(4, 4) = 0;
  EXPECT_EQ(
      Routines<T>::trtrs(this->engine, 'U', 'N', 'N', a.n, b.n, a.data(), a.ld, b.data(), b.ld), 5);
  EXPECT_EQ(b.elements, before.elements);
}

TEST(CInterfaceOf, WhatIsOnADeviceStaysThere) {
  DeviceHomes homes;
  quadriga_engine engine{EngineAccess::make(homes.around({{.devices = "emulated:1,memory=1MiB"}}))};
  constexpr std::int64_t n = 20;
  double* matrices[3];
  for (double*& matrix : matrices) {
    matrix = reinterpret_cast<double*>(homes.take(0, n * n * sizeof(double)));
    std::fill_n(matrix, n * n, 2.0);
  }
  const double one = 1;
  ASSERT_EQ(quadriga_dgemm(&engine, 'N', 'N', n, n, n, &one, matrices[0], n, matrices[1], n, &one,
                           matrices[2], n),
            0);
  EXPECT_EQ(matrices[2][n * n - 1], 4 * n + 2);
  for (const LinkCounters& link : engine.engine.counters().links) EXPECT_EQ(link.bytes, 0U);
}

TEST(CInterfaceOf, HermitianUpdates) {
  using T = std::complex<double>;
  quadriga_engine* engine = nullptr;
  ASSERT_EQ(quadriga_open("cpu:2", &engine), 0);
  for (const char trans : {'N', 'C'}) {
    Square<T> a(30, 1), c(30, 2);
    for (std::int64_t i = 0; i < c.n; ++i) c(i, i) = 1;
    const Square<T> before = c;
    ASSERT_EQ(quadriga_zherk(engine, 'L', trans, 30, 30, 2, a.data(), a.ld, 3, c.data(), c.ld), 0);
    for (std::int64_t j = 0; j < 30; ++j)
      for (std::int64_t i = j; i < 30; ++i)
        ASSERT_EQ(c(i, j),
                  2.0 * product(a, trans, a, trans == 'N' ? 'C' : 'N', i, j) + 3.0 * before(i, j));
  }
  double real = 1;
  EXPECT_EQ(quadriga_zherk(engine, 'L', 'T', 1, 1, 1, &real, 1, 1, &real, 1), -3);
  quadriga_close(engine);
}

TEST(CInterfaceOf, EachArgumentIsNamed) {
  quadriga_engine* engine = nullptr;
  EXPECT_EQ(quadriga_open("cpu:2", nullptr), -2);
  EXPECT_EQ(quadriga_open("abacus", &engine), -1);
  EXPECT_EQ(engine, nullptr);
  EXPECT_NE(std::string(quadriga_message()).find("abacus"), std::string::npos);
  ASSERT_EQ(quadriga_open("cpu:1", &engine), 0);
  double one = 1, a[4] = {1, 0, 0, 1}, c[4] = {};
  const auto gemm = [&](char ta, char tb, std::int64_t m, std::int64_t n, std::int64_t k,
                        const double* alpha, const double* x, std::int64_t lda, std::int64_t ldb,
                        double* out, std::int64_t ldc) {
    return quadriga_dgemm(engine, ta, tb, m, n, k, alpha, x, lda, a, ldb, &one, out, ldc);
  };
  EXPECT_EQ(gemm('N', 'N', 2, 2, 2, &one, a, 2, 2, c, 2), 0);
  EXPECT_EQ(gemm('X', 'N', 2, 2, 2, &one, a, 2, 2, c, 2), -2);
  EXPECT_NE(std::string(quadriga_message()).find("'X'"), std::string::npos);
  EXPECT_EQ(gemm('N', 0, 2, 2, 2, &one, a, 2, 2, c, 2), -3);
  EXPECT_NE(std::string(quadriga_message()).find("'\\0'; expected one of"), std::string::npos);
  EXPECT_EQ(gemm('N', 'N', -1, 2, 2, &one, a, 2, 2, c, 2), -4);
  EXPECT_EQ(gemm('N', 'N', 2, -1, 2, &one, a, 2, 2, c, 2), -5);
  EXPECT_EQ(gemm('N', 'N', 2, 2, -1, &one, a, 2, 2, c, 2), -6);
  EXPECT_EQ(gemm('N', 'N', 2, 2, 2, nullptr, a, 2, 2, c, 2), -7);
  EXPECT_EQ(gemm('N', 'N', 2, 2, 2, &one, nullptr, 2, 2, c, 2), -8);
  EXPECT_EQ(gemm('N', 'N', 2, 2, 2, &one, a, 1, 2, c, 2), -9);
  EXPECT_EQ(gemm('N', 'N', 2, 2, 2, &one, a, 2, 1, c, 2), -11);
  EXPECT_EQ(gemm('N', 'N', 2, 2, 2, &one, a, 2, 2, nullptr, 2), -13);
  EXPECT_EQ(gemm('N', 'N', 2, 2, 2, &one, a, 2, 2, c, 1), -14);
  EXPECT_EQ(quadriga_dpotrf(nullptr, 'L', 2, a, 2), -1);
  EXPECT_EQ(quadriga_dtrtrs(engine, 'L', 'N', 'X', 2, 2, a, 2, c, 2), -4);
  // The output may not be an input.
  EXPECT_EQ(gemm('N', 'N', 2, 2, 2, &one, a, 2, 2, a, 2), -13);
  quadriga_close(engine);
  quadriga_close(nullptr);
}

TEST(CInterfaceOf, WhatOverlapsIsRefused) {
  for (const char* const devices : {"cpu:1", "emulated:1,memory=1MiB"}) {
    quadriga_engine* engine = nullptr;
    ASSERT_EQ(quadriga_open(devices, &engine), 0);
    std::vector<double> memory(64, 0.0);
    double* const a = memory.data();
    for (int i = 0; i < 4; ++i) a[5 * i] = 2;
    const std::vector<double> before = memory;
    const double one = 1;
    EXPECT_EQ(quadriga_dpotrs(engine, 'L', 4, 1, a, 4, a, 4), -7);
    EXPECT_NE(std::string(quadriga_message()).find("B overlaps A"), std::string::npos);
    EXPECT_EQ(quadriga_dposv(engine, 'L', 4, 1, a, 4, a + 1, 4), -7);
    EXPECT_EQ(quadriga_dposv(engine, 'L', 4, 2, a, 4, a + 15, 4), -7);
    EXPECT_EQ(quadriga_dtrtrs(engine, 'L', 'N', 'N', 4, 1, a, 4, a, 4), -9);
    EXPECT_EQ(quadriga_dgemm(engine, 'N', 'N', 4, 4, 4, &one, a, 4, a + 32, 4, &one, a, 4), -13);
    EXPECT_EQ(quadriga_dgemm(engine, 'N', 'N', 4, 4, 4, &one, a + 32, 4, a, 4, &one, a, 4), -13);
    EXPECT_EQ(quadriga_dsyrk(engine, 'L', 'N', 4, 4, &one, a, 4, &one, a, 4), -10);
    EXPECT_EQ(memory, before);
    EXPECT_EQ(quadriga_dposv(engine, 'L', 4, 1, a, 4, a + 16, 4), 0) << quadriga_message();
    quadriga_close(engine);
  }
}

TEST(CInterfaceOf, SizesThatNoMemoryHasAreRefused) {
  quadriga_engine* engine = nullptr;
  ASSERT_EQ(quadriga_open("cpu:1", &engine), 0);
  double a[4] = {}, b[4] = {}, c[4] = {};
  const double one = 1;
  constexpr std::int64_t absurd = INT64_MAX / 2;
  constexpr std::int64_t wide = std::int64_t{1} << 40;
  EXPECT_EQ(quadriga_dpotrf(engine, 'L', absurd, a, absurd), -3);
  EXPECT_EQ(quadriga_dpotrf(engine, 'L', wide, a, wide), -5);
  EXPECT_EQ(quadriga_dpotrf(engine, 'L', 2, a, INT64_MAX), -5);
  EXPECT_EQ(quadriga_dpotrs(engine, 'L', 2, absurd, a, 2, b, 2), -4);
  EXPECT_EQ(quadriga_dgemm(engine, 'N', 'N', absurd, 2, 2, &one, a, absurd, b, 2, &one, c, absurd),
            -4);
  EXPECT_EQ(quadriga_dgemm(engine, 'N', 'N', 2, 2, wide, &one, a, wide, b, wide, &one, c, 2), -9);
  EXPECT_NE(std::string(quadriga_message()).find("memory"), std::string::npos);
  quadriga_close(engine);
}

}  // namespace
}  // namespace quadriga::linalg
