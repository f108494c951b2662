// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/node_matrix.h: sparse matrices of equal dense blocks, as levels of a preconditioner
// are made of them: products, transposes, and what they look like by rows.
//
// Everything is computed by chunks of rows whose size doesn't depend on the number of threads, and
// each row as a whole, so that results have the same bits everywhere.
#pragma once

#include <quadriga/engine.h>
#include <quadriga/sparse_matrix.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace quadriga::sparse {

/// Rows and columns of nodes; a block is row_size x col_size elements, row by row.
template <class T>
struct NodeMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  int row_size = 1;
  int col_size = 1;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns{};  ///< Ascending in each row.
  std::vector<T> values{};

  std::int64_t block_size() const noexcept { return std::int64_t{row_size} * col_size; }
  const T* block(std::int64_t at) const noexcept { return values.data() + at * block_size(); }
  T* block(std::int64_t at) noexcept { return values.data() + at * block_size(); }
};

/// Which nodes depend on which, without themselves.
struct NodeGraph {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
  std::int64_t nodes() const noexcept { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

/// A matrix by rows that owns its arrays.
class LevelCsr {
 public:
  LevelCsr() = default;
  template <class T>
  explicit LevelCsr(const NodeMatrix<T>& a);
  const CsrView& view() const noexcept { return view_; }

 private:
  template <class T, class Index>
  void fill(const NodeMatrix<T>& a);
  std::vector<std::byte> offsets_;
  std::vector<std::byte> columns_;
  std::vector<std::byte> values_;
  CsrView view_;
};

/// Calls `work(first, last)` for chunks of `count` rows, as tasks on the host's threads.
void for_chunks(Engine& engine, std::int64_t count,
                const std::function<void(std::int64_t first, std::int64_t last)>& work);

/// A square matrix by nodes of so many rows, a divisor of all; duplicates are added.
/// Errors: invalid_argument naming an element whose column is out of range; too_large if 32 bits
///         don't number the nodes.
template <class T>
NodeMatrix<T> by_nodes(Engine& engine, const CsrView& a, int size);

/// a*b.
template <class T>
NodeMatrix<T> multiply(Engine& engine, const NodeMatrix<T>& a, const NodeMatrix<T>& b);

/// The conjugate transpose.
template <class T>
NodeMatrix<T> adjoint(const NodeMatrix<T>& a);

/// The nodes j with |Aij|^2 > strength^2 |Aii| |Ajj| of each node i, by Frobenius norms.
template <class T>
NodeGraph connections(Engine& engine, const NodeMatrix<T>& a, double strength);

/// The inverses of the blocks of `size` rows on the diagonal, one after the other, row by row; size
/// divides row_size.
/// Errors: invalid_argument naming the first row of one that is singular or not finite.
template <class T>
std::vector<T> diagonal_inverses(Engine& engine, const NodeMatrix<T>& a, int size);

}  // namespace quadriga::sparse
