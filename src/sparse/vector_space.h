// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/vector_space.h: the vectors and scalars of a matrix: their memory, and tasks on them.
//
// Invariants
//   1. A buffer or cell is written by one operation only, the one that made its content, or by one
//      that found nobody else with it. So what an expression refers to doesn't change.
//   2. Memory that nobody has any more is used again: tasks on it are ordered by submission, so
//      that its next content is written after all readers of the last one.
//   3. One thread at a time submits. Memory is given back by any thread: `mutex_` guards what is
//      free.
//   4. All tasks belong to one group, which ends with the space. After a failure, or where someone
//      cancels, no later operation succeeds.
#pragma once

#include <quadriga/sparse.h>
#include <quadriga/sparse_vectors.h>

#include <complex>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "sparse/content.h"
#include "sparse/kernels/expression_codelets.h"
#include "sparse/part_data.h"

namespace quadriga::sparse {

/// A vector's memory, by part.
class VectorBuffer {
 public:
  VectorBuffer(std::shared_ptr<VectorSpace> space, std::vector<Data> parts) noexcept
      : space_(std::move(space)), parts_(std::move(parts)) {}
  ~VectorBuffer();
  VectorBuffer(const VectorBuffer&) = delete;
  VectorBuffer& operator=(const VectorBuffer&) = delete;
  const std::vector<Data>& parts() const noexcept { return parts_; }

 private:
  std::shared_ptr<VectorSpace> space_;
  std::vector<Data> parts_;
};

/// A scalar's memory at home, and what tasks know it as.
struct ScalarCell {
  std::unique_ptr<ScalarValue> home;
  Data data;
};

struct ScalarContent {
  ScalarContent(std::shared_ptr<VectorSpace> its_space, ScalarCell its_cell, bool complex) noexcept
      : space(std::move(its_space)), cell(std::move(its_cell)), is_complex(complex) {}
  ~ScalarContent();
  ScalarContent(const ScalarContent&) = delete;
  ScalarContent& operator=(const ScalarContent&) = delete;

  std::shared_ptr<VectorSpace> space;
  ScalarCell cell;
  bool is_complex;
};

/// factor * scalar * buffer; a null scalar is 1.
struct VectorTerm {
  std::complex<double> factor = 1;
  std::shared_ptr<const ScalarContent> scalar;
  std::shared_ptr<const VectorBuffer> buffer;
};

using VectorTerms = std::vector<VectorTerm>;

struct VectorContent {
  std::shared_ptr<VectorSpace> space;
  mutable VectorTerms terms;  ///< Their sum; computed once it is needed: then one, with factor 1.
};

class VectorSpace : public std::enable_shared_from_this<VectorSpace> {
 public:
  explicit VectorSpace(std::shared_ptr<const SolverContent> solver);
  ~VectorSpace();
  VectorSpace(const VectorSpace&) = delete;
  VectorSpace& operator=(const VectorSpace&) = delete;

  std::int64_t rows() const noexcept { return solver_->rows(); }
  DType dtype() const noexcept { return solver_->dtype(); }
  bool is_complex() const noexcept;

  Vector from_host(const void* elements);
  void to_host(const Vector& x, void* out);
  Vector zeros();
  Vector product(const Vector& x);
  Vector product_by_elements(const Vector& x, const Vector& y);
  Scalar dot(const Vector& x, const Vector& y);
  void wait(const ScalarContent& scalar, double timeout);

  /// What a vector may get for a factor. Errors: invalid_argument if it is complex and this isn't.
  void check(const Scalar& factor) const;
  /// x + factor*y, to be computed when it is needed.
  static Vector sum(const Vector& x, double factor, const Vector& y);
  static Vector scaled(const Scalar& factor, const Vector& x);
  /// x += factor*y, at once.
  static void add(Vector& x, double factor, const Vector& y);
  static void scale(Vector& x, const Scalar& factor);
  /// Of `operation` from square_root on, the second is none.
  static Scalar compute(ScalarOperation operation, const Scalar& x, const Scalar& y);
  static const VectorContent& content(const Vector& x) noexcept { return *x.content_; }
  /// The space of both. Errors: invalid_argument if there are two.
  static std::shared_ptr<VectorSpace> common(const Vector& x, const Vector& y);

  void give_back(std::vector<Data> parts) noexcept;
  void give_back(ScalarCell cell) noexcept;

 private:
  using BufferRef = std::shared_ptr<const VectorBuffer>;

  BufferRef new_buffer();
  ScalarCell new_cell();
  Scalar scalar_of(ScalarCell cell, bool is_complex);
  Vector vector_of(BufferRef buffer);
  BufferRef settled(const Vector& x);
  BufferRef computed(const VectorTerms& terms, const VectorBuffer* leaving);
  void combine(const VectorTerms& terms, const VectorBuffer* target, const std::vector<Data>& out);
  void submit(const Codelet& codelet, std::size_t part, std::span<const Operand> operands,
              std::span<const std::byte> params);
  void copy(const std::vector<Data>& from, const std::vector<Data>& to);
  template <class Copy>
  void with_host(Copy work);
  void scalar_task(const Codelet& codelet, std::span<const Operand> operands,
                   std::span<const std::byte> params);

  const std::shared_ptr<const SolverContent> solver_;
  const ExpressionCodelets codelets_;
  std::mutex mutex_;
  std::vector<std::vector<Data>> free_buffers_;
  std::vector<ScalarCell> free_cells_;
  std::vector<Data> sums_;  ///< Of dot products, by part.
  PartData data_;           ///< Of products.
};

}  // namespace quadriga::sparse
