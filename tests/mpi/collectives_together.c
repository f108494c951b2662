// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/collectives_together.c: large MPI_Bcast and MPI_Allreduce on memory of devices that all
// ranks have, or all but one; prints sums of what came. The first rank says which are to be ours.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));

enum { LENGTH = 270000 };  // of ints a little more than 1 MiB
static int rank, size, calls, expected;
static double* host;

static void copy(void* to, const void* of) {
  if (quadriga_emulated_copy != NULL)
    quadriga_emulated_copy(to, of, LENGTH * sizeof(double));
  else
    memcpy(to, of, LENGTH * sizeof(double));
}
static double* place(int device) {
  const size_t bytes = LENGTH * sizeof(double);
  double* const made =
      device && quadriga_emulated_malloc != NULL ? quadriga_emulated_malloc(bytes) : malloc(bytes);
  for (int i = 0; i < LENGTH; ++i) host[i] = (i * 7 + rank * 13 + calls) % 101;
  copy(made, host);
  return made;
}
static void show(const char* what, const void* result) {
  copy(host, result);
  unsigned long long sum = 0;
  for (size_t i = 0; i < LENGTH * sizeof(double); ++i)
    sum = sum * 31 + ((const unsigned char*)host)[i];
  printf("%d %d %s %llx\n", rank, calls++, what, sum);
}

static void on(MPI_Comm comm, int devices, int ours) {
  MPI_Datatype gaps;
  MPI_Type_vector(LENGTH / 4, 3, 4, MPI_DOUBLE, &gaps);
  MPI_Type_commit(&gaps);
  double *from = place(devices), *into = place(devices);
  MPI_Bcast(from, LENGTH, MPI_DOUBLE, size - 1, comm);
  show("bcast", from);
  if (rank == 0)
    MPI_Bcast(into, 1, gaps, 0, comm);
  else
    MPI_Bcast(into, LENGTH / 4 * 3, MPI_DOUBLE, 0, comm);
  show("bcast of gaps", into);
  from = place(devices);
  MPI_Allreduce(from, into, LENGTH, MPI_DOUBLE, MPI_SUM, comm);
  show("sum", into);
  MPI_Allreduce(MPI_IN_PLACE, from, LENGTH, MPI_INT, MPI_MAX, comm);
  show("most, in place", from);
  expected += 4 * ours;
  // Too small to be asked for, and an operation that is MPI's.
  MPI_Allreduce(MPI_IN_PLACE, from, 100, MPI_DOUBLE, MPI_MIN, comm);
  MPI_Allreduce(MPI_IN_PLACE, from, LENGTH, MPI_INT, MPI_BXOR, comm);
  show("by MPI", from);
  MPI_Type_free(&gaps);
}

int main(int argc, char** argv) {
  MPI_Comm same, turned, part;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  host = malloc(LENGTH * sizeof(double));
  MPI_Comm_dup(MPI_COMM_WORLD, &same);
  on(MPI_COMM_WORLD, 1, 1);
  on(same, 1, 1);
  on(MPI_COMM_WORLD, 1, 1);
  on(same, rank != 1, 0);
  MPI_Comm_free(&same);
  MPI_Comm_dup(MPI_COMM_WORLD, &same);
  on(same, 1, 1);
  MPI_Comm_free(&same);
  // Other ranks, or in another order: by the host.
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &part);
  double* const data = place(1);
  MPI_Bcast(data, LENGTH, MPI_DOUBLE, 0, turned);
  MPI_Bcast(data, LENGTH, MPI_DOUBLE, 0, part);
  show("others", data);
  MPI_Comm_free(&turned);
  MPI_Comm_free(&part);
  if (rank == 0) printf("ours %d\n", expected);
  MPI_Finalize();
  return 0;
}
