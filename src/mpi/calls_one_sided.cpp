// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_one_sided.cpp: one-sided communication with counts refuses memory of devices.
#include "mpi/counts.h"
#include "mpi/refused.h"

using namespace quadriga::mpi;

extern "C" {

int FORM(MPI_Win_create)(void* base, MPI_Aint bytes, Distance unit, MPI_Info info, MPI_Comm comm,
                         MPI_Win* window) {
  if (is_refused(__func__, on_device(base))) return raise(comm, MPI_ERR_BUFFER);
  return FORM(PMPI_Win_create)(base, bytes, unit, info, comm, window);
}

int FORM(MPI_Put)(const void* from, Count count, MPI_Datatype type, int rank, MPI_Aint place,
                  Count far_count, MPI_Datatype far_type, MPI_Win window) {
  if (is_refused(__func__, touches_device(from, type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return FORM(PMPI_Put)(from, count, type, rank, place, far_count, far_type, window);
}

int FORM(MPI_Get)(void* into, Count count, MPI_Datatype type, int rank, MPI_Aint place,
                  Count far_count, MPI_Datatype far_type, MPI_Win window) {
  if (is_refused(__func__, touches_device(into, type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return FORM(PMPI_Get)(into, count, type, rank, place, far_count, far_type, window);
}

int FORM(MPI_Accumulate)(const void* from, Count count, MPI_Datatype type, int rank, MPI_Aint place,
                         Count far_count, MPI_Datatype far_type, MPI_Op op, MPI_Win window) {
  if (is_refused(__func__, touches_device(from, type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return FORM(PMPI_Accumulate)(from, count, type, rank, place, far_count, far_type, op, window);
}

int FORM(MPI_Get_accumulate)(const void* from, Count count, MPI_Datatype type, void* into,
                             Count into_count, MPI_Datatype into_type, int rank, MPI_Aint place,
                             Count far_count, MPI_Datatype far_type, MPI_Op op, MPI_Win window) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, into_type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return FORM(PMPI_Get_accumulate)(from, count, type, into, into_count, into_type, rank, place,
                                   far_count, far_type, op, window);
}

int FORM(MPI_Rput)(const void* from, Count count, MPI_Datatype type, int rank, MPI_Aint place,
                   Count far_count, MPI_Datatype far_type, MPI_Win window, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return FORM(PMPI_Rput)(from, count, type, rank, place, far_count, far_type, window, request);
}

int FORM(MPI_Rget)(void* into, Count count, MPI_Datatype type, int rank, MPI_Aint place,
                   Count far_count, MPI_Datatype far_type, MPI_Win window, MPI_Request* request) {
  if (is_refused(__func__, touches_device(into, type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return FORM(PMPI_Rget)(into, count, type, rank, place, far_count, far_type, window, request);
}

int FORM(MPI_Raccumulate)(const void* from, Count count, MPI_Datatype type, int rank,
                          MPI_Aint place, Count far_count, MPI_Datatype far_type, MPI_Op op,
                          MPI_Win window, MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return FORM(PMPI_Raccumulate)(from, count, type, rank, place, far_count, far_type, op, window,
                                request);
}

int FORM(MPI_Rget_accumulate)(const void* from, Count count, MPI_Datatype type, void* into,
                              Count into_count, MPI_Datatype into_type, int rank, MPI_Aint place,
                              Count far_count, MPI_Datatype far_type, MPI_Op op, MPI_Win window,
                              MPI_Request* request) {
  if (is_refused(__func__, touches_device(from, type) || touches_device(into, into_type)))
    return raise_of_window(window, MPI_ERR_BUFFER);
  return FORM(PMPI_Rget_accumulate)(from, count, type, into, into_count, into_type, rank, place,
                                    far_count, far_type, op, window, request);
}

}  // extern "C"
