// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_init.cpp: MPI_Init, MPI_Finalize, and what is freed: datatypes, communicators.
#include "mpi/aside.h"
#include "mpi/datatypes.h"
#include "mpi/requests.h"
#include "mpi/world.h"

using namespace quadriga::mpi;

extern "C" {

int MPI_Init(int* argc, char*** argv) {
  before_init();
  const int code = PMPI_Init(argc, argv);
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  if (code == MPI_SUCCESS) after_init(level);
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  before_init();
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) after_init(*provided);
  return code;
}

int MPI_Finalize(void) {
  while (adopted.load() != 0) look_after_adopted();
  before_finalize();
  return PMPI_Finalize();
}

int MPI_Comm_free(MPI_Comm* comm) {
  if (taken.receives)
    guarded(MPI_COMM_WORLD, [&] {
      forget_early(*comm);
      return MPI_SUCCESS;
    });
  return PMPI_Comm_free(comm);
}

int MPI_Type_free(MPI_Datatype* datatype) {
  if (taken.receives) forget(*datatype);
  return PMPI_Type_free(datatype);
}

}  // extern "C"
