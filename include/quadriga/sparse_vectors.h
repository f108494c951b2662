// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/sparse_vectors.h: a distributed matrix, its vectors, and scalars that stay on
// the devices, to write methods as textbooks do.
//
// Every operation is a task on each part, submitted at once and in order; what copies to or from
// the host waits, and nothing else. Parts and sums are those of sparse.h: results are bitwise
// identical for any number of devices of a kind. A matrix, its vectors and its scalars are used by
// one thread at a time.
#pragma once

#include <quadriga/sparse_matrix.h>
#include <quadriga/types.h>

#include <complex>
#include <cstdint>
#include <memory>

namespace quadriga {
class Engine;
}  // namespace quadriga

namespace quadriga::sparse {

class Solver;
struct SolverOptions;
struct ScalarContent;
struct VectorContent;
class VectorSpace;

/// A number on a device, which the host doesn't know until it reads it; or a constant. Real but for
/// dot() of complex vectors, in double precision. A comparison is 1 or 0.
class Scalar {
 public:
  Scalar(double constant = 0) : constant_(constant) {}
  Scalar(std::complex<double> constant) : constant_(constant) {}

  /// Waits until it is known, and reads it.
  /// Errors: the first failure of the matrix's tasks; invalid_argument if it is complex, or if the
  ///         engine doesn't compute.
  double value() const;
  std::complex<double> complex_value() const;
  explicit operator double() const { return value(); }
  explicit operator bool() const { return complex_value() != 0.0; }
  /// Errors: also deadline, after `timeout` seconds; negative: no limit.
  void wait(double timeout = -1) const;
  bool is_complex() const noexcept;

 private:
  friend class VectorSpace;
  std::shared_ptr<const ScalarContent> content_;  ///< Null: a constant.
  std::complex<double> constant_;
};

/// Errors, for all of these: invalid_argument if scalars of two matrices meet.
Scalar operator+(const Scalar& x, const Scalar& y);
Scalar operator-(const Scalar& x, const Scalar& y);
Scalar operator*(const Scalar& x, const Scalar& y);
Scalar operator/(const Scalar& x, const Scalar& y);
Scalar operator-(const Scalar& x);
/// Errors: also invalid_argument if one is complex; so has sqrt().
Scalar operator<(const Scalar& x, const Scalar& y);
Scalar operator<=(const Scalar& x, const Scalar& y);
Scalar operator>(const Scalar& x, const Scalar& y);
Scalar operator>=(const Scalar& x, const Scalar& y);
Scalar sqrt(const Scalar& x);
Scalar abs(const Scalar& x);
Scalar real(const Scalar& x);

/// A vector in parts on the devices, or a sum of up to four scaled ones that is computed when it is
/// needed, in one pass. A value: a copy shares memory until one of the two changes.
class Vector {
 public:
  std::int64_t rows() const noexcept;
  DType dtype() const noexcept;
  /// Waits, and copies it to the host: rows() elements of its type.
  void copy_to(void* out) const;

  /// In one pass, in place unless something else has the same content.
  /// Errors: invalid_argument if the other is of another matrix, or a scalar is complex and the
  ///         vector real.
  Vector& operator+=(const Vector& other);
  Vector& operator-=(const Vector& other);
  Vector& operator*=(const Scalar& factor);
  Vector& operator/=(const Scalar& divisor);

 private:
  friend class VectorSpace;
  explicit Vector(std::shared_ptr<const VectorContent> content) : content_(std::move(content)) {}
  std::shared_ptr<const VectorContent> content_;
};

/// Errors, for all of these: as Vector's.
Vector operator+(const Vector& x, const Vector& y);
Vector operator-(const Vector& x, const Vector& y);
Vector operator-(const Vector& x);
Vector operator*(const Scalar& factor, const Vector& x);
Vector operator*(const Vector& x, const Scalar& factor);
/// The product with 1 / divisor.
Vector operator/(const Vector& x, const Scalar& divisor);
/// By elements, as with the diagonal of a preconditioner.
Vector operator*(const Vector& x, const Vector& y);
/// x^H*y.
Scalar dot(const Vector& x, const Vector& y);
/// The square root of x^H*x.
Scalar norm(const Vector& x);

/// A square matrix in parts on the devices, which need not be hermitian here. The engine must
/// outlive it, its vectors and its scalars. A handle, cheap to copy.
class Matrix {
 public:
  /// That of a solver, which it shares; M has no part in it.
  explicit Matrix(const Solver& solver);
  /// Errors: as Solver's.
  Matrix(Engine& engine, const CsrView& a);
  Matrix(Engine& engine, const CsrView& a, const SolverOptions& options);
  Matrix(Engine& engine, const RowSource& a);
  Matrix(Engine& engine, const RowSource& a, const SolverOptions& options);

  std::int64_t rows() const noexcept;
  DType dtype() const noexcept;
  /// A copy of rows() elements of the matrix's type.
  Vector vector(const void* elements) const;
  Vector zeros() const;

 private:
  friend Vector operator*(const Matrix& a, const Vector& x);
  std::shared_ptr<VectorSpace> space_;
};

/// Errors: invalid_argument if x is of another matrix.
Vector operator*(const Matrix& a, const Vector& x);

}  // namespace quadriga::sparse
