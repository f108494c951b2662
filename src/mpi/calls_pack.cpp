// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_pack.cpp: MPI_Pack and MPI_Unpack by the library's kernels. MPIs on hosts of one
// kind pack as we do: element after element.
#include "mpi/counts.h"
#include "mpi/device_buffers.h"
#include "mpi/incoming.h"

namespace quadriga::mpi {
namespace {

// Whether it is ours, and right: what MPI refuses is refused by MPI.
bool is_taken(Function function, const void* elements, const void* packed, std::int64_t count,
              MPI_Datatype datatype, std::int64_t size, std::int64_t position) {
  if (!taken.sends || count <= 0 || datatype == MPI_DATATYPE_NULL || position < 0) return false;
  const bool device = on_device(packed) || is_on_device(elements, count, datatype);
  if (!device && !(world->switches.host && world->switches.takes(function))) return false;
  return bytes_of(datatype) * count <= size - position;
}

}  // namespace
}  // namespace quadriga::mpi

using namespace quadriga::mpi;

extern "C" {

int FORM(MPI_Pack)(const void* from, Count count, MPI_Datatype datatype, void* into, Count size,
                   Count* position, MPI_Comm comm) {
  if (!taken.sends) return FORM(PMPI_Pack)(from, count, datatype, into, size, position, comm);
  return guarded(comm, [&]() -> int {
    if (!is_taken(Function::pack, from, into, count, datatype, size, *position))
      return FORM(PMPI_Pack)(from, count, datatype, into, size, position, comm);
    const auto place = Destination{const_cast<void*>(from), count, datatype_of(datatype)}.place();
    const std::int64_t bytes = place.layout.bytes();
    move(place, bytes_at(static_cast<std::byte*>(into) + *position, bytes));
    *position += static_cast<Count>(bytes);
    quadriga::mpi::count(world->counters.packed);
    return MPI_SUCCESS;
  });
}

int FORM(MPI_Unpack)(const void* from, Count size, Count* position, void* into, Count count,
                     MPI_Datatype datatype, MPI_Comm comm) {
  if (!taken.sends) return FORM(PMPI_Unpack)(from, size, position, into, count, datatype, comm);
  return guarded(comm, [&]() -> int {
    if (!is_taken(Function::unpack, into, from, count, datatype, size, *position))
      return FORM(PMPI_Unpack)(from, size, position, into, count, datatype, comm);
    const auto place = Destination{into, count, datatype_of(datatype)}.place();
    const std::int64_t bytes = place.layout.bytes();
    move(bytes_at(static_cast<const std::byte*>(from) + *position, bytes), place);
    *position += static_cast<Count>(bytes);
    quadriga::mpi::count(world->counters.packed);
    return MPI_SUCCESS;
  });
}

}  // extern "C"
