// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/sparse/vectors_test.cpp: methods written on distributed vectors and scalars.
#include <quadriga/sparse_vectors.h>

#include <array>
#include <cmath>
#include <functional>

#include "unit/sparse/matrices.h"

namespace quadriga::sparse::testing {
namespace {

constexpr std::array devices_of_a_kind = {"emulated:1", "emulated:2", "emulated:3"};

/// Runs the same on 1, 2 and 3 devices: the bits must be those of one.
template <class T>
std::vector<T> same_on_all(const CsrView& a,
                           const std::function<std::vector<T>(const Matrix&)>& method) {
  std::vector<T> first;
  for (const char* devices : devices_of_a_kind) {
    Engine engine({devices});
    std::vector<T> found = method(Matrix(engine, a));
    const Counters counters = engine.counters();
    for (std::size_t i = 0; i < counters.devices.size(); ++i)
      if (engine.machine().devices[i].kind == DeviceKind::emulated) {
        EXPECT_GT(counters.devices[i].tasks, 0u) << "of " << devices << " had nothing to do";
      }
    if (first.empty())
      first = std::move(found);
    else
      EXPECT_TRUE(same_bits(first, found)) << devices;
  }
  return first;
}

template <class T>
std::vector<T> on_host(const Vector& x) {
  std::vector<T> elements(static_cast<std::size_t>(x.rows()));
  x.copy_to(elements.data());
  return elements;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// Hestenes and Stiefel, 1952, with M = 1 / 6.
Vector conjugate_gradients(const Matrix& a, const Vector& b, double rtol, int most) {
  Vector x = a.zeros(), r = b, z = r / 6, p = z;
  Scalar rho = dot(r, z);
  const Scalar tolerance = rtol * norm(b);
  for (int i = 0; i < most && norm(r) > tolerance; ++i) {
    const Vector q = a * p;
    const Scalar alpha = rho / dot(p, q);
    x += alpha * p;
    r -= alpha * q;
    z = r / 6;
    const Scalar last = rho;
    rho = dot(r, z);
    p = z + rho / last * p;
  }
  return x;
}

template <class T>
void expect_solution(double rtol) {
  const auto a = grid_matrix<T>({11, 10, 9}, 0.1);
  const auto b = random_vector<T>(a.rows, 3);
  const auto x = same_on_all<T>(a.view(), [&](const Matrix& matrix) {
    return on_host<T>(conjugate_gradients(matrix, matrix.vector(b.data()), rtol, 200));
  });
  EXPECT_LE(residual(a, x, b), 2 * rtol * norm(b));
}

TEST(SparseVectors, ConjugateGradientsSolveInAllTypes) {
  expect_solution<float>(1e-5);
  expect_solution<double>(1e-10);
  expect_solution<std::complex<float>>(1e-5);
  expect_solution<std::complex<double>>(1e-10);
}

TEST(SparseVectors, SumsHaveTheBitsOfOneTermAfterTheOther) {
  const auto a = grid_matrix<double>({7, 6, 5});
  const auto u = random_vector<double>(a.rows, 1);
  const auto v = random_vector<double>(a.rows, 2);
  const auto found = same_on_all<double>(a.view(), [&](const Matrix& matrix) {
    const Vector x = matrix.vector(u.data()), y = matrix.vector(v.data());
    const Scalar three = dot(x, x) / dot(x, x) * 3;
    return on_host<double>(three * x - y + 0.5 * x + y + y - x * 2);
  });
  for (std::size_t i = 0; i < u.size(); ++i)
    EXPECT_EQ(found[i], ((((3 * u[i] - v[i]) + 0.5 * u[i]) + v[i]) + v[i]) - 2 * u[i]);
}

TEST(SparseVectors, AreValues) {
  const auto a = grid_matrix<double>({5, 5, 5});
  const auto ones = std::vector<double>(static_cast<std::size_t>(a.rows), 1);
  const auto all = [&](double value) { return std::vector<double>(ones.size(), value); };
  Engine engine({"emulated:2"});
  const Matrix matrix(engine, a.view());
  Vector x = matrix.vector(ones.data());
  const Vector before = x;
  const Vector later = 2 * x + before;  // computed when it is needed, of what x is now
  x += x;
  x += x;
  EXPECT_EQ(on_host<double>(x), all(4));
  EXPECT_EQ(on_host<double>(before), all(1));
  EXPECT_EQ(on_host<double>(later), all(3));
  x *= 0.5;
  x /= dot(before, before) / static_cast<double>(a.rows) * 2;
  x -= later;
  EXPECT_EQ(on_host<double>(x), all(-2));
  EXPECT_EQ(on_host<double>(-x * x), all(-4));
  for (int i = 0; i < 10; ++i) x = x + before;
  EXPECT_EQ(on_host<double>(x), all(8));
}

TEST(SparseVectors, ProductsAreThoseOfTheMatrix) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto a = random_matrix<std::complex<double>>(40 + 30 * static_cast<int>(seed), seed);
    const auto x = random_vector<std::complex<double>>(a.rows, seed);
    const auto y = same_on_all<std::complex<double>>(a.view(), [&](const Matrix& matrix) {
      return on_host<std::complex<double>>(matrix * matrix.vector(x.data()));
    });
    const auto expected = a.times(x, 1);
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(std::abs(y[i] - expected[i]), 0, 1e-12);
  }
}

TEST(SparseVectors, ScalarsComputeOnTheirDevice) {
  const auto a = grid_matrix<std::complex<double>>({4, 4, 4});
  Engine engine({"emulated:2"});
  const Matrix matrix(engine, a.view());
  const std::vector<std::complex<double>> u(static_cast<std::size_t>(a.rows), {1, 1});
  const Vector x = matrix.vector(u.data());
  const Scalar n = real(dot(x, x));  // 2 * 64
  EXPECT_EQ(double(n), 128);
  EXPECT_TRUE(dot(x, x).is_complex());
  EXPECT_EQ(dot(x, std::complex<double>(0, 1) * x).complex_value(), std::complex<double>(0, 128));
  EXPECT_EQ((dot(x, x) / std::complex<double>(0, 1)).complex_value(),
            std::complex<double>(0, -128));
  EXPECT_EQ(double(abs(dot(x, std::complex<double>(3, 4) * x))), 5 * 128);
  EXPECT_EQ(double(sqrt(n / 2) - 3 * -n + 1), 8 + 3 * 128 + 1);
  EXPECT_TRUE(bool(n > 127));
  EXPECT_TRUE(bool(128 <= n));
  EXPECT_FALSE(bool(n < n));
  EXPECT_TRUE(bool(n >= n));
  EXPECT_EQ(double(Scalar(2) * 3 - 1), 5);
}

TEST(SparseVectors, NameWhatDoesntBelongTogether) {
  Engine engine({"emulated:1"}), other({"emulated:1"});
  const auto small = grid_matrix<double>({3, 3, 3}), large = grid_matrix<double>({4, 4, 4});
  const Matrix a(engine, small.view()), b(engine, large.view()), c(other, small.view());
  const std::vector<double> ones(64, 1);
  const Vector x = a.vector(ones.data()), y = b.vector(ones.data()), z = c.vector(ones.data());
  EXPECT_NE(message_of([&] { x + y; }).find("27 and 64 rows belong to two matrices;"),
            std::string::npos);
  EXPECT_NE(message_of([&] { dot(x, z); }).find("on two engines"), std::string::npos);
  EXPECT_NE(message_of([&] { a* y; }).find("64 rows of another matrix"), std::string::npos);
  EXPECT_NE(message_of([&] { dot(x, x) * y; }).find("a scalar of another matrix"),
            std::string::npos);
  EXPECT_NE(message_of([&] { dot(x, x) + dot(y, y); }).find("two matrices"), std::string::npos);
  EXPECT_NE(message_of([&] { std::complex<double>(0, 1) * x; }).find("complex scalar"),
            std::string::npos);
  EXPECT_NE(message_of([&] { sqrt(Scalar(std::complex<double>(0, 1))); }).find("no square root"),
            std::string::npos);
  EXPECT_NE(message_of([&] { a.vector(nullptr); }).find("expected 27"), std::string::npos);
}

TEST(SparseVectors, ShareAMatrixWithItsSolver) {
  const auto a = grid_matrix<double>({6, 6, 6}, 0.1);
  const auto b = random_vector<double>(a.rows, 9);
  Engine engine({"cpu:2"});
  const Solver solver(engine, a.view());
  std::vector<double> x(b.size());
  solver.cg(b.data(), x.data(), 1, {.rtol = 1e-10});
  const Matrix matrix(solver);
  const auto found =
      on_host<double>(conjugate_gradients(matrix, matrix.vector(b.data()), 1e-10, 200));
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(found[i], x[i], 1e-8);
}

TEST(SparseVectors, OfNoRows) {
  Engine engine({"emulated:2"});
  const OwnedCsr<double> nothing;
  const Matrix matrix(engine, nothing.view());
  Vector x = matrix.zeros();
  x += 2 * (matrix * x);
  EXPECT_EQ(double(dot(x, x)), 0);
  x.copy_to(nullptr);
}

TEST(SparseVectors, MemoryOfVectorsThatAreGoneIsUsedAgain) {
  const auto a = grid_matrix<double>({16, 16, 16});
  const std::vector<double> ones(static_cast<std::size_t>(a.rows), 1);
  Engine engine({"emulated:1,memory=4MiB"});
  const Matrix matrix(engine, a.view());
  Vector x = matrix.vector(ones.data());
  for (int i = 0; i < 500; ++i) x = matrix * x / 13;
  EXPECT_LT(double(norm(x)), 64);
  // 500 vectors of 32 KiB would be 16 MiB: some would have gone to the host.
  EXPECT_EQ(engine.counters().devices[0].evictions, 0u);
}

}  // namespace
}  // namespace quadriga::sparse::testing
