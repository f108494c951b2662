// SPDX-License-Identifier: BSD-3-Clause
// examples/sparse_methods.cpp: two methods as a textbook has them, on two emulated devices.
// Build: c++ -std=c++20 sparse_methods.cpp $(pkg-config --cflags --libs quadriga)
#include <quadriga/sparse.h>
#include <quadriga/sparse_vectors.h>

#include <cmath>
#include <cstdio>
#include <vector>
using namespace quadriga;
using sparse::Matrix, sparse::Scalar, sparse::Vector;

/// Preconditioned conjugate gradients (Hestenes and Stiefel, 1952), with a diagonal M.
Vector conjugate_gradients(const Matrix& a, const Vector& b, const Vector& m, double rtol) {
  Vector x = a.zeros(), r = b, z = m * r, p = z;
  Scalar rho = dot(r, z);
  const Scalar tolerance = rtol * norm(b);
  while (norm(r) > tolerance) {
    const Vector q = a * p;
    const Scalar alpha = rho / dot(p, q);
    x += alpha * p;
    r -= alpha * q;
    z = m * r;
    const Scalar last = rho;
    rho = dot(r, z);
    p = z + rho / last * p;
  }
  return x;
}

/// Conjugate residuals (Saad, Iterative Methods for Sparse Linear Systems, algorithm 6.20).
Vector conjugate_residuals(const Matrix& a, const Vector& b, double rtol) {
  Vector x = a.zeros(), r = b, p = r, ar = a * r, ap = ar;
  Scalar rho = dot(r, ar);
  const Scalar tolerance = rtol * norm(b);
  while (norm(r) > tolerance) {
    const Scalar alpha = rho / dot(ap, ap);
    x += alpha * p;
    r -= alpha * ap;
    ar = a * r;
    const Scalar last = rho;
    rho = dot(r, ar);
    p = r + rho / last * p;
    ap = ar + rho / last * ap;
  }
  return x;
}

int main() {
  // A box of points, and its six neighbours of each.
  const sparse::BoxGrid grid{30, 30, 30, 7};
  const std::int64_t rows = rows_of(grid), elements = elements_of(grid);
  std::vector<std::int64_t> offsets(std::size_t(rows) + 1), columns(std::size_t(elements), 0);
  std::vector<double> values(columns.size());
  laplacian(grid, 0, rows, offsets.data(), columns.data(), values.data(), DType::float64);
  const sparse::CsrView csr{rows,           rows,          elements, offsets.data(),
                            columns.data(), values.data(), 8,        DType::float64};
  const std::vector<double> ones(std::size_t(rows), 1), sixth(std::size_t(rows), 1 / 6.0);

  Engine engine({.devices = "emulated:2,memory=64MiB"});
  const Matrix a(engine, csr);
  const Vector b = a.vector(ones.data());
  const Vector x = conjugate_gradients(a, b, a.vector(sixth.data()), 1e-10);
  const Vector y = conjugate_residuals(a, b, 1e-10);
  const double residual = double(norm(b - a * x) / norm(b));
  const double difference = double(norm(x - y) / norm(x));
  std::printf("|b - A x| = %.1e |b|; the two solutions differ by %.1e\n", residual, difference);
  return residual < 2e-10 && difference < 1e-7 ? 0 : 1;
}
