// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/decode.cpp: layouts by what datatypes were made of.
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "mpi/contents.h"
#include "mpi/datatypes.h"

namespace quadriga::mpi {
namespace {

using message::ElementType;
using message::Layout;
using message::StorageOrder;

Layout bytes_layout(std::int64_t bytes) { return Layout::contiguous(bytes, ElementType::bytes); }

// A value and an index, where the language puts them.
template <class Value>
Layout pair_layout() {
  struct Pair {
    Value value;
    int index;
  };
  const std::array<std::int64_t, 2> lengths{1, 1};
  const std::array<std::int64_t, 2> places{offsetof(Pair, value), offsetof(Pair, index)};
  const std::array<Layout, 2> fields{bytes_layout(sizeof(Value)), bytes_layout(sizeof(int))};
  return Layout::structure(lengths, places, fields);
}

Layout named_layout(MPI_Datatype datatype) {
  if (datatype == MPI_SHORT_INT) return pair_layout<short>();
  if (datatype == MPI_DOUBLE_INT) return pair_layout<double>();
  if (datatype == MPI_LONG_INT) return pair_layout<long>();
  if (datatype == MPI_LONG_DOUBLE_INT) return pair_layout<long double>();
  return bytes_layout(bytes_of(datatype));
}

Layout type_of(const Contents& made, std::size_t index = 0) { return decode(made.types()[index]); }

StorageOrder order_of(std::int64_t order) {
  return order == MPI_ORDER_C ? StorageOrder::c : StorageOrder::fortran;
}

Layout subarray_layout(const Contents& made) {
  const auto dimensions = static_cast<std::size_t>(made.integer(0));
  return Layout::subarray(made.integers(1, dimensions), made.integers(1 + dimensions, dimensions),
                          made.integers(1 + 2 * dimensions, dimensions),
                          order_of(made.integer(1 + 3 * dimensions)), type_of(made));
}

// Elements that a process gets before it is the next one's turn.
std::int64_t block_of(std::int64_t distribution, std::int64_t argument, std::int64_t length,
                      std::int64_t processes) {
  if (distribution == MPI_DISTRIBUTE_NONE) return std::max<std::int64_t>(1, length);
  if (argument != MPI_DISTRIBUTE_DFLT_DARG) return argument;
  if (distribution == MPI_DISTRIBUTE_CYCLIC) return 1;
  return std::max<std::int64_t>(1, (length + processes - 1) / processes);
}

Layout darray_layout(const Contents& made) {
  std::int64_t rank = made.integer(1);
  const auto n = static_cast<std::size_t>(made.integer(2));
  message::BlockCyclic part;
  part.shape = made.integers(3, n);
  part.processes = made.integers(3 + 3 * n, n);
  part.order = order_of(made.integer(3 + 4 * n));
  part.coordinates.resize(n);
  part.block.resize(n);
  for (std::size_t i = n; i-- > 0;) {  // Ranks fill the grid row by row, whatever the order is.
    part.coordinates[i] = rank % part.processes[i];
    rank /= part.processes[i];
    part.block[i] = block_of(made.integer(3 + n + i), made.integer(3 + 2 * n + i), part.shape[i],
                             part.processes[i]);
  }
  return Layout::block_cyclic(part, type_of(made));
}

Layout structure_layout(const Contents& made) {
  const auto n = static_cast<std::size_t>(made.integer(0));
  std::vector<Layout> fields;
  for (std::size_t i = 0; i < n; ++i) fields.push_back(type_of(made, i));
  return Layout::structure(made.integers(1, n), made.addresses(n), fields);
}

Layout indexed_layout(const Contents& made) {
  const auto n = static_cast<std::size_t>(made.integer(0));
  const Layout of = type_of(made);
  switch (made.combiner()) {
    case MPI_COMBINER_INDEXED:
      return Layout::indexed(made.integers(1, n), made.integers(1 + n, n), of);
    case MPI_COMBINER_HINDEXED:
      return Layout::indexed_bytes(made.integers(1, n), made.addresses(n), of);
    case MPI_COMBINER_INDEXED_BLOCK:
      return Layout::indexed(std::vector(n, made.integer(1)), made.integers(2, n), of);
    default:
      return Layout::indexed_bytes(std::vector(n, made.integer(1)), made.addresses(n), of);
  }
}

Layout made_layout(const Contents& made) {
  switch (made.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return type_of(made);
    case MPI_COMBINER_CONTIGUOUS:
      return Layout::contiguous(made.integer(0), type_of(made));
    case MPI_COMBINER_VECTOR:
      return Layout::vector(made.integer(0), made.integer(1), made.integer(2), type_of(made));
    case MPI_COMBINER_HVECTOR:
      return Layout::vector_bytes(made.integer(0), made.integer(1), made.address(0), type_of(made));
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
      return indexed_layout(made);
    case MPI_COMBINER_STRUCT:
      return structure_layout(made);
    case MPI_COMBINER_SUBARRAY:
      return subarray_layout(made);
    case MPI_COMBINER_DARRAY:
      return darray_layout(made);
    default:
      fail(Errc::invalid_argument,
           fmt::format("a datatype of combiner {} isn't known", made.combiner()));
  }
}

}  // namespace

bool is_named(MPI_Datatype datatype) { return Contents(datatype).is_named(); }

std::int64_t leaf_bytes(MPI_Datatype datatype) {
  const Contents made(datatype);
  if (made.is_named()) {
    const bool is_pair = datatype == MPI_SHORT_INT || datatype == MPI_DOUBLE_INT ||
                         datatype == MPI_LONG_INT || datatype == MPI_LONG_DOUBLE_INT;
    return is_pair ? 0 : bytes_of(datatype);
  }
  std::int64_t all = -1;
  for (std::size_t i = 0; i < made.types().size(); ++i) {
    const std::int64_t each = leaf_bytes(made.types()[i]);
    if (all >= 0 && each != all) return 0;
    all = each;
  }
  return std::max<std::int64_t>(all, 0);
}

Layout decode(MPI_Datatype datatype) {
  const Contents made(datatype);
  const Layout layout = made.is_named() ? named_layout(datatype) : made_layout(made);
  MPI_Count lower = 0, extent = 0;
  PMPI_Type_get_extent_x(datatype, &lower, &extent);
  return Layout::resized(layout, static_cast<std::int64_t>(lower),
                         static_cast<std::int64_t>(extent));
}

}  // namespace quadriga::mpi
