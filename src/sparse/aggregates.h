// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/aggregates.h: nodes that become one node of the next level, and how vectors that
// smoothers can't reduce are carried there. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/node_matrix.h"

namespace quadriga::sparse {

struct Aggregates {
  std::vector<std::int32_t> of;  ///< Of each node; -1: none.
  std::int64_t count = 0;
};

/// Nodes with neighbours of which none is taken yet form aggregates with all of these; then those
/// that are left join one beside them, and what remains forms more. Nodes that depend on no other
/// are in none. Aggregates are numbered by their first nodes.
/// Source: Vanek, Mandel and Brezina, Computing 56, 1996, algorithm 5.1.
Aggregates aggregate(const NodeGraph& graph);

/// Vectors of so many rows, row by row.
struct NearNull {
  std::vector<double> values;
  int vectors = 0;
};

/// What prolongs aggregates, before it is smoothed: its columns are orthonormal, and it maps the
/// coarse vectors to the given ones. Where vectors are dependent on an aggregate, columns are zero.
template <class T>
struct Tentative {
  NodeMatrix<T> matrix;
  NearNull coarse;
  std::vector<bool> is_zero;  ///< By column.
};

template <class T>
Tentative<T> tentative_of(const Aggregates& aggregates, const NearNull& fine, int unknowns);

}  // namespace quadriga::sparse
