// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_refused.cpp: calls that don't know memory of devices say so, by their name. An MPI
// that knows no devices would touch it.
#include <cstdio>

#include "mpi/device_buffers.h"
#include "mpi/incoming.h"

namespace quadriga::mpi {
namespace {

// Whether a call was refused; standard error says so.
bool is_refused(const char* name, const void* first, const void* second) noexcept {
  if (!on_device(first) && !on_device(second)) return false;
  std::fprintf(stderr, "quadriga mpi-preload: %s doesn't take memory of a device\n", name);
  return true;
}

}  // namespace
}  // namespace quadriga::mpi

using namespace quadriga::mpi;

extern "C" {

int MPI_Bsend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
  if (is_refused("MPI_Bsend", from, nullptr)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Bsend(from, count, type, to, tag, comm);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  if (is_refused("MPI_Bcast", buffer, nullptr)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Reduce(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  if (is_refused("MPI_Reduce", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Reduce(from, into, count, type, op, root, comm);
}

int MPI_Allreduce(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  if (is_refused("MPI_Allreduce", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Allreduce(from, into, count, type, op, comm);
}

int MPI_Gather(const void* from, int count, MPI_Datatype type, void* into, int into_count,
               MPI_Datatype into_type, int root, MPI_Comm comm) {
  if (is_refused("MPI_Gather", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Gather(from, count, type, into, into_count, into_type, root, comm);
}

int MPI_Allgather(const void* from, int count, MPI_Datatype type, void* into, int into_count,
                  MPI_Datatype into_type, MPI_Comm comm) {
  if (is_refused("MPI_Allgather", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Allgather(from, count, type, into, into_count, into_type, comm);
}

int MPI_Scatter(const void* from, int count, MPI_Datatype type, void* into, int into_count,
                MPI_Datatype into_type, int root, MPI_Comm comm) {
  if (is_refused("MPI_Scatter", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Scatter(from, count, type, into, into_count, into_type, root, comm);
}

int MPI_Alltoall(const void* from, int count, MPI_Datatype type, void* into, int into_count,
                 MPI_Datatype into_type, MPI_Comm comm) {
  if (is_refused("MPI_Alltoall", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Alltoall(from, count, type, into, into_count, into_type, comm);
}

}  // extern "C"
