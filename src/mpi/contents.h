// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/contents.h: what a datatype was made of, as MPI_Type_get_contents tells it.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/native.h"

namespace quadriga::mpi {

/// The arguments of a datatype's maker. Those of makers with large counts (MPI_Type_vector_c) are
/// put where MPI tells those of the form with counts of an int.
class Contents {
 public:
  explicit Contents(MPI_Datatype datatype);
  /// Frees the handles that MPI gives with them.
  ~Contents();
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  /// Whether it is MPI's own; then there are no arguments.
  bool is_named() const noexcept;
  int combiner() const noexcept { return combiner_; }
  std::int64_t integer(std::size_t index) const { return integers_[index]; }
  std::int64_t address(std::size_t index) const { return addresses_[index]; }
  const std::vector<MPI_Datatype>& types() const noexcept { return types_; }
  std::vector<std::int64_t> integers(std::size_t from, std::size_t count) const {
    const auto first = integers_.begin() + static_cast<std::ptrdiff_t>(from);
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }
  std::vector<std::int64_t> addresses(std::size_t count) const {
    return {addresses_.begin(), addresses_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  void insert(const std::vector<std::int64_t>& counts);
  int combiner_ = MPI_COMBINER_NAMED;
  std::vector<std::int64_t> integers_;
  std::vector<std::int64_t> addresses_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace quadriga::mpi
