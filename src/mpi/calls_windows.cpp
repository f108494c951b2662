// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_windows.cpp: one-sided communication without counts refuses memory of devices.
#include "mpi/refused.h"

using namespace quadriga::mpi;

extern "C" {

int MPI_Win_attach(MPI_Win window, void* base, MPI_Aint bytes) {
  if (is_refused(__func__, on_device(base))) return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Win_attach(window, base, bytes);
}

int MPI_Fetch_and_op(const void* from, void* into, MPI_Datatype type, int rank, MPI_Aint place,
                     MPI_Op op, MPI_Win window) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Fetch_and_op(from, into, type, rank, place, op, window);
}

int MPI_Compare_and_swap(const void* from, const void* compared, void* into, MPI_Datatype type,
                         int rank, MPI_Aint place, MPI_Win window) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, type) ||
                               touches_device(compared, type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return PMPI_Compare_and_swap(from, compared, into, type, rank, place, window);
}

}  // extern "C"
