// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_pack.cpp: MPI_Pack and MPI_Unpack by the library's kernels. MPIs on hosts of one
// kind pack as we do: element after element.
#include "mpi/device_buffers.h"
#include "mpi/incoming.h"

namespace quadriga::mpi {
namespace {

// Whether it is ours, and right: what MPI refuses is refused by MPI.
bool is_taken(Function function, const void* elements, const void* packed, int count,
              MPI_Datatype datatype, int size, int position) {
  if (!taken.sends || count <= 0 || datatype == MPI_DATATYPE_NULL || position < 0) return false;
  const bool device = on_device(packed) || is_on_device(elements, count, datatype);
  if (!device && !(world->switches.host && world->switches.takes(function))) return false;
  return bytes_of(datatype) * count <= std::int64_t{size} - position;
}

}  // namespace
}  // namespace quadriga::mpi

using namespace quadriga::mpi;

extern "C" {

int MPI_Pack(const void* from, int count, MPI_Datatype datatype, void* into, int size,
             int* position, MPI_Comm comm) {
  return guarded(comm, [&]() -> int {
    if (!is_taken(Function::pack, from, into, count, datatype, size, *position))
      return PMPI_Pack(from, count, datatype, into, size, position, comm);
    const auto place = Destination{const_cast<void*>(from), count, datatype_of(datatype)}.place();
    const std::int64_t bytes = place.layout.bytes();
    move(place, bytes_at(static_cast<std::byte*>(into) + *position, bytes));
    *position += static_cast<int>(bytes);
    quadriga::mpi::count(world->counters.packed);
    return MPI_SUCCESS;
  });
}

int MPI_Unpack(const void* from, int size, int* position, void* into, int count,
               MPI_Datatype datatype, MPI_Comm comm) {
  return guarded(comm, [&]() -> int {
    if (!is_taken(Function::unpack, into, from, count, datatype, size, *position))
      return PMPI_Unpack(from, size, position, into, count, datatype, comm);
    const auto place = Destination{into, count, datatype_of(datatype)}.place();
    const std::int64_t bytes = place.layout.bytes();
    move(bytes_at(static_cast<const std::byte*>(from) + *position, bytes), place);
    *position += static_cast<int>(bytes);
    quadriga::mpi::count(world->counters.packed);
    return MPI_SUCCESS;
  });
}

}  // extern "C"
