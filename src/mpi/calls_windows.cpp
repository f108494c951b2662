// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_windows.cpp: one-sided communication refuses memory of devices.
#include "mpi/refused.h"

using namespace quadriga::mpi;

extern "C" {

int MPI_Win_create(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win* window) {
  if (is_refused("MPI_Win_create", base)) return raise(comm, MPI_ERR_BUFFER);
  return PMPI_Win_create(base, bytes, unit, info, comm, window);
}

int MPI_Win_attach(MPI_Win window, void* base, MPI_Aint bytes) {
  if (is_refused("MPI_Win_attach", base)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Win_attach(window, base, bytes);
}

int MPI_Put(const void* from, int count, MPI_Datatype type, int rank, MPI_Aint place, int far_count,
            MPI_Datatype far_type, MPI_Win window) {
  if (is_refused("MPI_Put", from)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Put(from, count, type, rank, place, far_count, far_type, window);
}

int MPI_Get(void* into, int count, MPI_Datatype type, int rank, MPI_Aint place, int far_count,
            MPI_Datatype far_type, MPI_Win window) {
  if (is_refused("MPI_Get", into)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Get(into, count, type, rank, place, far_count, far_type, window);
}

int MPI_Accumulate(const void* from, int count, MPI_Datatype type, int rank, MPI_Aint place,
                   int far_count, MPI_Datatype far_type, MPI_Op op, MPI_Win window) {
  if (is_refused("MPI_Accumulate", from)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Accumulate(from, count, type, rank, place, far_count, far_type, op, window);
}

int MPI_Get_accumulate(const void* from, int count, MPI_Datatype type, void* into, int into_count,
                       MPI_Datatype into_type, int rank, MPI_Aint place, int far_count,
                       MPI_Datatype far_type, MPI_Op op, MPI_Win window) {
  if (is_refused("MPI_Get_accumulate", from, into)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Get_accumulate(from, count, type, into, into_count, into_type, rank, place, far_count,
                             far_type, op, window);
}

int MPI_Fetch_and_op(const void* from, void* into, MPI_Datatype type, int rank, MPI_Aint place,
                     MPI_Op op, MPI_Win window) {
  if (is_refused("MPI_Fetch_and_op", from, into)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Fetch_and_op(from, into, type, rank, place, op, window);
}

int MPI_Compare_and_swap(const void* from, const void* compared, void* into, MPI_Datatype type,
                         int rank, MPI_Aint place, MPI_Win window) {
  if (is_refused("MPI_Compare_and_swap", from, into) ||
      is_refused("MPI_Compare_and_swap", compared))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Compare_and_swap(from, compared, into, type, rank, place, window);
}

int MPI_Rput(const void* from, int count, MPI_Datatype type, int rank, MPI_Aint place,
             int far_count, MPI_Datatype far_type, MPI_Win window, MPI_Request* request) {
  if (is_refused("MPI_Rput", from)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Rput(from, count, type, rank, place, far_count, far_type, window, request);
}

int MPI_Rget(void* into, int count, MPI_Datatype type, int rank, MPI_Aint place, int far_count,
             MPI_Datatype far_type, MPI_Win window, MPI_Request* request) {
  if (is_refused("MPI_Rget", into)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Rget(into, count, type, rank, place, far_count, far_type, window, request);
}

int MPI_Raccumulate(const void* from, int count, MPI_Datatype type, int rank, MPI_Aint place,
                    int far_count, MPI_Datatype far_type, MPI_Op op, MPI_Win window,
                    MPI_Request* request) {
  if (is_refused("MPI_Raccumulate", from)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Raccumulate(from, count, type, rank, place, far_count, far_type, op, window, request);
}

int MPI_Rget_accumulate(const void* from, int count, MPI_Datatype type, void* into, int into_count,
                        MPI_Datatype into_type, int rank, MPI_Aint place, int far_count,
                        MPI_Datatype far_type, MPI_Op op, MPI_Win window, MPI_Request* request) {
  if (is_refused("MPI_Rget_accumulate", from, into)) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Rget_accumulate(from, count, type, into, into_count, into_type, rank, place,
                              far_count, far_type, op, window, request);
}

}  // extern "C"
