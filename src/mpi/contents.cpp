// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/contents.cpp: MPI_Type_get_envelope and MPI_Type_get_contents, in the form that knows all
// counts (MPI 4.1, section 5.1.13).
#include "mpi/contents.h"

namespace quadriga::mpi {
namespace {

// How many arguments of each kind there are.
struct Contained {
  int combiner = MPI_COMBINER_NAMED;
  WideCount integers = 0;
  WideCount addresses = 0;
  WideCount counts = 0;
  WideCount types = 0;

  explicit Contained(MPI_Datatype datatype) noexcept {
#ifdef QUADRIGA_WIDE_COUNTS
    PMPI_Type_get_envelope_c(datatype, &integers, &addresses, &counts, &types, &combiner);
#else
    PMPI_Type_get_envelope(datatype, &integers, &addresses, &types, &combiner);
#endif
  }
  bool is_named() const noexcept {
    return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
  }
};

// Room for what MPI writes; never empty, so that it has an address.
template <class Value>
std::vector<Value> room(WideCount count) {
  return std::vector<Value>(static_cast<std::size_t>(count) + 1);
}

template <class Value>
std::vector<std::int64_t> taken_of(const std::vector<Value>& values) {
  return {values.begin(), values.end() - 1};
}

}  // namespace

Contents::Contents(MPI_Datatype datatype) {
  const Contained made(datatype);
  combiner_ = made.combiner;
  if (made.is_named()) return;
  auto integers = room<int>(made.integers);
  auto addresses = room<MPI_Aint>(made.addresses);
  types_ = room<MPI_Datatype>(made.types);
#ifdef QUADRIGA_WIDE_COUNTS
  auto counts = room<MPI_Count>(made.counts);
  PMPI_Type_get_contents_c(datatype, made.integers, made.addresses, made.counts, made.types,
                           integers.data(), addresses.data(), counts.data(), types_.data());
#else
  PMPI_Type_get_contents(datatype, made.integers, made.addresses, made.types, integers.data(),
                         addresses.data(), types_.data());
#endif
  types_.pop_back();
  integers_ = taken_of(integers);
  addresses_ = taken_of(addresses);
#ifdef QUADRIGA_WIDE_COUNTS
  if (made.counts > 0) insert(taken_of(counts));
#endif
}

Contents::~Contents() {
  for (MPI_Datatype& each : types_)
    if (!Contained(each).is_named()) PMPI_Type_free(&each);
}

bool Contents::is_named() const noexcept {
  return types_.empty() && integers_.empty() && addresses_.empty();
}

// Counts stand in the order of the maker's arguments.
void Contents::insert(const std::vector<std::int64_t>& counts) {
  auto integers_before = integers_.end();  // Which integers come before the counts.
  auto integers_in = counts.end();         // Counts that are integers; places follow.
  switch (combiner_) {
    case MPI_COMBINER_RESIZED:
      integers_in = counts.begin();
      break;
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_HINDEXED_BLOCK:
      integers_in = counts.begin() + 2;
      break;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
      integers_in = counts.begin() + 1 + counts.front();
      break;
    case MPI_COMBINER_SUBARRAY:  // dimensions, | shape, part, first, | order
      integers_before = integers_.begin() + 1;
      break;
    case MPI_COMBINER_DARRAY:  // ranks, rank, dimensions, | shape, | how, grid, order
      integers_before = integers_.begin() + 3;
      break;
    default:
      break;
  }
  integers_.insert(integers_before, counts.begin(), integers_in);
  addresses_.assign(integers_in, counts.end());
}

}  // namespace quadriga::mpi
