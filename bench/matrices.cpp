// SPDX-License-Identifier: BSD-3-Clause
// bench/matrices.cpp: random matrices and backward errors by a random vector.
#include "matrices.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "base/random.h"

namespace quadriga::bench {
namespace {

constexpr std::size_t page_bytes = 4096;

std::size_t bytes_of(std::int64_t order) {
  return static_cast<std::size_t>(order * order) * sizeof(double);
}

std::vector<double> random_vector(std::int64_t order) {
  Random random(17);
  std::vector<double> x(order);
  for (double& each : x) each = random.uniform() - 0.5;
  return x;
}

double norm(const std::vector<double>& x) {
  return cblas_dnrm2(static_cast<int>(x.size()), x.data(), 1);
}

// y = alpha*A*x + y
void add_product(double alpha, const Matrix& a, const std::vector<double>& x,
                 std::vector<double>& y) {
  const int n = static_cast<int>(a.order());
  cblas_dgemv(CblasColMajor, CblasNoTrans, n, n, alpha, a.data(), n, x.data(), 1, 1, y.data(), 1);
}

}  // namespace

void Matrix::Free::operator()(double* memory) const noexcept { std::free(memory); }

Matrix::Matrix(std::int64_t order)
    : order_(order),
      elements_(static_cast<double*>(std::aligned_alloc(
          page_bytes, (bytes_of(order) + page_bytes - 1) / page_bytes * page_bytes))) {
  if (!elements_) throw std::bad_alloc();
}

void Matrix::fill(const kernels::RandomMatrix& random) {
  const int n = static_cast<int>(order_);
  kernels::fill_random<double>(random, {data(), n, n, n});
}

void Matrix::copy_from(const Matrix& other) { std::memcpy(data(), other.data(), bytes_of(order_)); }

double Matrix::frobenius_norm() const {
  double sum = 0;
  for (std::int64_t j = 0; j < order_; ++j) {
    const double column = cblas_dnrm2(static_cast<int>(order_), data() + j * order_, 1);
    sum += column * column;
  }
  return std::sqrt(sum);
}

double product_error(const Matrix& a, const Matrix& b, const Matrix& before, const Matrix& c) {
  const std::vector<double> x = random_vector(c.order());
  std::vector<double> inner(x.size());
  std::vector<double> rest(x.size());
  add_product(1, b, x, inner);
  add_product(1, c, x, rest);
  add_product(-1, before, x, rest);
  add_product(-1, a, inner, rest);
  const double scale = a.frobenius_norm() * b.frobenius_norm() + before.frobenius_norm();
  return norm(rest) / (scale * norm(x));
}

double factor_error(const Matrix& a, const Matrix& factor) {
  const int n = static_cast<int>(a.order());
  const std::vector<double> x = random_vector(n);
  std::vector<double> rest = x;
  for (const CBLAS_TRANSPOSE transpose : {CblasTrans, CblasNoTrans}) {
    cblas_dtrmv(CblasColMajor, CblasLower, transpose, CblasNonUnit, n, factor.data(), n,
                rest.data(), 1);
  }
  add_product(-1, a, x, rest);
  return norm(rest) / (a.frobenius_norm() * norm(x));
}

}  // namespace quadriga::bench
