// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/freed_communicator.c: a message that was probed and never received goes with its
// communicator; the next communicator, whose handle may be the same, doesn't see it. Two ranks,
// preloaded: MPIs themselves may keep such a message.
#include <mpi.h>
#include <stdio.h>

enum { n = 5000, rounds = 5 };

int main(int argc, char** argv) {
  static double from[n];
  int rank = 0, found = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int flag = 0;
    if (rank == 1) MPI_Iprobe(0, 1, comm, &flag, MPI_STATUS_IGNORE);
    found += flag;
    MPI_Barrier(comm);
    if (rank == 0) MPI_Send(from, n, MPI_DOUBLE, 1, 1, comm);
    if (rank == 1) MPI_Probe(0, 1, comm, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
  if (found != 0) fprintf(stderr, "%d messages of communicators that are gone\n", found);
  MPI_Finalize();
  return found != 0;
}
