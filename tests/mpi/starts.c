// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/starts.c: counts the collective calls that MPI_Init and MPI_Finalize take beyond MPI's
// own: its functions stand before those of MPI. The first rank prints how many of each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

enum { allgather, allreduce, barrier, bcast, create, reduce, kinds };
static int calls[kinds];
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int PMPI_Allgather(const void* from, int count, MPI_Datatype type, void* into, int received,
                   MPI_Datatype as, MPI_Comm comm) {
  ++calls[allgather];
  return NEXT(PMPI_Allgather)(from, count, type, into, received, as, comm);
}
int PMPI_Allreduce(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  ++calls[allreduce];
  return NEXT(PMPI_Allreduce)(from, into, count, type, op, comm);
}
int PMPI_Barrier(MPI_Comm comm) {
  ++calls[barrier];
  return NEXT(PMPI_Barrier)(comm);
}
int PMPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  ++calls[bcast];
  return NEXT(PMPI_Bcast)(data, count, type, root, comm);
}
int PMPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  ++calls[create];
  return NEXT(PMPI_Comm_create_group)(comm, group, tag, made);
}
int PMPI_Reduce(const void* from, void* into, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm) {
  ++calls[reduce];
  return NEXT(PMPI_Reduce)(from, into, count, type, op, root, comm);
}

int main(int argc, char** argv) {
  const char* const names[kinds] = {"Allgather", "Allreduce",         "Barrier",
                                    "Bcast",     "Comm_create_group", "Reduce"};
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Finalize();
  for (int i = 0; i < kinds && rank == 0; ++i)
    if (calls[i] != 0) printf("%s %d\n", names[i], calls[i]);
  return 0;
}
