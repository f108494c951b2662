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

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  if (is_refused("MPI_Ibcast", buffer, nullptr)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Ibcast(buffer, count, type, root, comm, request);
}

int MPI_Iallreduce(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  if (is_refused("MPI_Iallreduce", from, into)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Iallreduce(from, into, count, type, op, comm, request);
}

}  // extern "C"
