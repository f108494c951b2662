// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/aggregates.cpp: three passes over the graph; a QR factorization for each aggregate.
#include "sparse/aggregates.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <span>

#include "sparse/kernels/number.h"

namespace quadriga::sparse {
namespace {

constexpr std::int32_t none = -1;

/// Of a column's norm: what is left of it when those before are subtracted is rounding.
constexpr double least_left = 1e-10;

class AggregateMaker {
 public:
  explicit AggregateMaker(const NodeGraph& graph) : graph_(graph) {
    found_.of.assign(static_cast<std::size_t>(graph.nodes()), none);
  }

  Aggregates make() {
    for (std::int32_t node = 0; node < size(); ++node)
      if (is_free_with_all(node)) take(node);
    join_neighbours();
    for (std::int32_t node = 0; node < size(); ++node)
      if (of(node) == none && !neighbours(node).empty()) take(node);
    number_by_first_nodes();
    return std::move(found_);
  }

 private:
  std::int32_t size() const noexcept { return static_cast<std::int32_t>(found_.of.size()); }
  std::int32_t& of(std::int32_t node) { return found_.of[static_cast<std::size_t>(node)]; }
  std::span<const std::int32_t> neighbours(std::int32_t node) const {
    const auto begin = graph_.offsets[static_cast<std::size_t>(node)];
    const auto end = graph_.offsets[static_cast<std::size_t>(node) + 1];
    return {graph_.columns.data() + begin, static_cast<std::size_t>(end - begin)};
  }
  bool is_free_with_all(std::int32_t node) {
    const auto all = neighbours(node);
    return of(node) == none && !all.empty() &&
           std::ranges::all_of(all, [&](std::int32_t each) { return of(each) == none; });
  }
  /// A node, and its neighbours as far as they are free.
  void take(std::int32_t node) {
    const auto number = static_cast<std::int32_t>(found_.count++);
    of(node) = number;
    for (const std::int32_t each : neighbours(node))
      if (of(each) == none) of(each) = number;
  }
  /// Only aggregates of the first pass are joined: those grown here would become long.
  void join_neighbours() {
    const std::vector<std::int32_t> before = found_.of;
    for (std::int32_t node = 0; node < size(); ++node) {
      if (of(node) != none) continue;
      for (const std::int32_t each : neighbours(node))
        if (before[static_cast<std::size_t>(each)] != none) {
          of(node) = before[static_cast<std::size_t>(each)];
          break;
        }
    }
  }
  void number_by_first_nodes() {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(found_.count), none);
    std::int32_t next = 0;
    for (std::int32_t& each : found_.of) {
      if (each == none) continue;
      std::int32_t& number = numbers[static_cast<std::size_t>(each)];
      if (number == none) number = next++;
      each = number;
    }
  }

  const NodeGraph& graph_;
  Aggregates found_;
};

/// The nodes of each aggregate, ascending.
struct Members {
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> nodes;
};

Members members_of(const Aggregates& aggregates) {
  Members members;
  members.offsets.assign(static_cast<std::size_t>(aggregates.count) + 1, 0);
  for (const std::int32_t each : aggregates.of)
    if (each != none) ++members.offsets[static_cast<std::size_t>(each) + 1];
  std::partial_sum(members.offsets.begin(), members.offsets.end(), members.offsets.begin());
  members.nodes.resize(static_cast<std::size_t>(members.offsets.back()));
  std::vector<std::int64_t> next(members.offsets.begin(), members.offsets.end() - 1);
  for (std::size_t node = 0; node < aggregates.of.size(); ++node)
    if (aggregates.of[node] != none)
      members
          .nodes[static_cast<std::size_t>(next[static_cast<std::size_t>(aggregates.of[node])]++)] =
          static_cast<std::int32_t>(node);
  return members;
}

/// An orthonormal basis of the columns of a matrix, row by row, in its place, and what maps it to
/// them; by modified Gram-Schmidt, twice. Dependent columns become zero.
class SmallQr {
 public:
  SmallQr(std::vector<double>& q, int columns) : q_(q), columns_(columns) {}

  void factor(double* r, std::vector<bool>::iterator is_zero) {
    std::fill_n(r, columns_ * columns_, 0.0);
    for (int c = 0; c < columns_; ++c) {
      const double before = std::sqrt(dot(c, c));
      for (int pass = 0; pass < 2; ++pass)
        for (int other = 0; other < c; ++other) {
          const double factor = dot(other, c);
          r[other * columns_ + c] += factor;
          for (std::size_t at = 0; at < q_.size(); at += columns_)
            q_[at + c] -= factor * q_[at + other];
        }
      const double left = std::sqrt(dot(c, c));
      const bool is_independent = left > least_left * before;
      is_zero[c] = !is_independent;
      r[c * columns_ + c] = is_independent ? left : 0;
      for (std::size_t at = 0; at < q_.size(); at += columns_)
        q_[at + c] = is_independent ? q_[at + c] / left : 0;
    }
  }

 private:
  double dot(int one, int other) const {
    double sum = 0;
    for (std::size_t at = 0; at < q_.size(); at += columns_) sum += q_[at + one] * q_[at + other];
    return sum;
  }
  std::vector<double>& q_;
  int columns_;
};

}  // namespace

Aggregates aggregate(const NodeGraph& graph) { return AggregateMaker(graph).make(); }

template <class T>
Tentative<T> tentative_of(const Aggregates& aggregates, const NearNull& fine, int unknowns) {
  const int vectors = fine.vectors;
  const auto nodes = static_cast<std::int64_t>(aggregates.of.size());
  Tentative<T> made;
  made.matrix = {nodes, aggregates.count, unknowns, vectors};
  for (const std::int32_t each : aggregates.of) {
    if (each != none) made.matrix.columns.push_back(each);
    made.matrix.offsets.push_back(static_cast<std::int64_t>(made.matrix.columns.size()));
  }
  const std::int64_t block = made.matrix.block_size();
  made.matrix.values.resize(made.matrix.columns.size() * static_cast<std::size_t>(block));
  made.coarse.vectors = vectors;
  made.coarse.values.resize(static_cast<std::size_t>(aggregates.count * vectors * vectors));
  made.is_zero.resize(static_cast<std::size_t>(aggregates.count * vectors));
  const Members members = members_of(aggregates);
  std::vector<double> q;
  for (std::int64_t at = 0; at < aggregates.count; ++at) {
    const std::span<const std::int32_t> all{
        members.nodes.data() + members.offsets[at],
        static_cast<std::size_t>(members.offsets[at + 1] - members.offsets[at])};
    q.clear();
    for (const std::int32_t node : all)
      q.insert(q.end(), fine.values.begin() + node * block,
               fine.values.begin() + (node + 1) * block);
    SmallQr(q, vectors)
        .factor(made.coarse.values.data() + at * vectors * vectors,
                made.is_zero.begin() + at * vectors);
    auto from = q.begin();
    for (const std::int32_t node : all) {
      T* const out = made.matrix.block(made.matrix.offsets[static_cast<std::size_t>(node)]);
      for (std::int64_t i = 0; i < block; ++i) out[i] = T(static_cast<Real<T>>(*from++));
    }
  }
  return made;
}

template Tentative<float> tentative_of(const Aggregates&, const NearNull&, int);
template Tentative<double> tentative_of(const Aggregates&, const NearNull&, int);
template Tentative<std::complex<float>> tentative_of(const Aggregates&, const NearNull&, int);
template Tentative<std::complex<double>> tentative_of(const Aggregates&, const NearNull&, int);

}  // namespace quadriga::sparse
