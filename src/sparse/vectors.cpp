// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/vectors.cpp: the public matrix, vectors and scalars: operators go to their space.
#include <quadriga/error.h>
#include <quadriga/sparse_vectors.h>

#include "engine/let_go.h"
#include "sparse/vector_space.h"

namespace quadriga::sparse {

namespace {

/// A matrix of the caller's methods has no built-in iterations.
SolverOptions without_recordings(SolverOptions options) {
  options.records_ahead = false;
  return options;
}

}  // namespace

std::complex<double> Scalar::complex_value() const {
  if (!content_) return constant_;
  wait();
  return {content_->cell.home->real, content_->cell.home->imag};
}

double Scalar::value() const {
  require(!is_complex(), "a complex scalar; expected a real one, as real(scalar) or abs(scalar)");
  return complex_value().real();
}

void Scalar::wait(double timeout) const {
  if (content_) content_->space->wait(*content_, timeout);
}

bool Scalar::is_complex() const noexcept {
  return content_ ? content_->is_complex : constant_.imag() != 0;
}

Scalar operator+(const Scalar& x, const Scalar& y) {
  return VectorSpace::compute(ScalarOperation::add, x, y);
}
Scalar operator-(const Scalar& x, const Scalar& y) {
  return VectorSpace::compute(ScalarOperation::subtract, x, y);
}
Scalar operator*(const Scalar& x, const Scalar& y) {
  return VectorSpace::compute(ScalarOperation::multiply, x, y);
}
Scalar operator/(const Scalar& x, const Scalar& y) {
  return VectorSpace::compute(ScalarOperation::divide, x, y);
}
Scalar operator-(const Scalar& x) {
  return VectorSpace::compute(ScalarOperation::multiply, -1.0, x);
}
Scalar operator<(const Scalar& x, const Scalar& y) {
  return VectorSpace::compute(ScalarOperation::less, x, y);
}
Scalar operator<=(const Scalar& x, const Scalar& y) {
  return VectorSpace::compute(ScalarOperation::less_equal, x, y);
}
Scalar operator>(const Scalar& x, const Scalar& y) { return y < x; }
Scalar operator>=(const Scalar& x, const Scalar& y) { return y <= x; }
Scalar sqrt(const Scalar& x) { return VectorSpace::compute(ScalarOperation::square_root, x, {}); }
Scalar abs(const Scalar& x) { return VectorSpace::compute(ScalarOperation::magnitude, x, {}); }
Scalar real(const Scalar& x) { return VectorSpace::compute(ScalarOperation::real_part, x, {}); }

std::int64_t Vector::rows() const noexcept { return content_->space->rows(); }
DType Vector::dtype() const noexcept { return content_->space->dtype(); }
void Vector::copy_to(void* out) const { content_->space->to_host(*this, out); }

Vector& Vector::operator+=(const Vector& other) {
  VectorSpace::add(*this, 1, other);
  return *this;
}
Vector& Vector::operator-=(const Vector& other) {
  VectorSpace::add(*this, -1, other);
  return *this;
}
Vector& Vector::operator*=(const Scalar& factor) {
  VectorSpace::scale(*this, factor);
  return *this;
}
Vector& Vector::operator/=(const Scalar& divisor) { return *this *= 1 / divisor; }

Vector operator+(const Vector& x, const Vector& y) { return VectorSpace::sum(x, 1, y); }
Vector operator-(const Vector& x, const Vector& y) { return VectorSpace::sum(x, -1, y); }
Vector operator-(const Vector& x) { return VectorSpace::scaled(-1.0, x); }
Vector operator*(const Scalar& factor, const Vector& x) { return VectorSpace::scaled(factor, x); }
Vector operator*(const Vector& x, const Scalar& factor) { return VectorSpace::scaled(factor, x); }
Vector operator/(const Vector& x, const Scalar& divisor) { return 1 / divisor * x; }
Vector operator*(const Vector& x, const Vector& y) {
  return VectorSpace::common(x, y)->product_by_elements(x, y);
}
Scalar dot(const Vector& x, const Vector& y) { return VectorSpace::common(x, y)->dot(x, y); }
Scalar norm(const Vector& x) { return sqrt(real(dot(x, x))); }

Matrix::Matrix(const Solver& solver)
    : space_(new VectorSpace(solver.content_), LetGo(solver.content_->engine())) {}
Matrix::Matrix(Engine& engine, const CsrView& a) : Matrix(engine, a, SolverOptions{}) {}
Matrix::Matrix(Engine& engine, const CsrView& a, const SolverOptions& options)
    : Matrix(Solver(engine, a, without_recordings(options))) {}
Matrix::Matrix(Engine& engine, const RowSource& a) : Matrix(engine, a, SolverOptions{}) {}
Matrix::Matrix(Engine& engine, const RowSource& a, const SolverOptions& options)
    : Matrix(Solver(engine, a, without_recordings(options))) {}

std::int64_t Matrix::rows() const noexcept { return space_->rows(); }
DType Matrix::dtype() const noexcept { return space_->dtype(); }
Vector Matrix::vector(const void* elements) const { return space_->from_host(elements); }
Vector Matrix::zeros() const { return space_->zeros(); }

Vector operator*(const Matrix& a, const Vector& x) { return a.space_->product(x); }

}  // namespace quadriga::sparse
