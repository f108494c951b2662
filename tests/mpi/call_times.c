// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/call_times.c: nanoseconds of calls on the host, to be run with and without preloading.
#include <mpi.h>
#include <stdio.h>

enum { rounds = 200000 };

int main(int argc, char** argv) {
  double a[8] = {0}, b[8];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // With oneself: what is measured is the calls, not another process.
  double times[2] = {1e9, 1e9};
  for (int again = 0; again < 7; ++again) {
    MPI_Request requests[2];
    double begin = MPI_Wtime();
    for (int i = 0; i < rounds; ++i) {
      MPI_Irecv(b, 4, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(a, 4, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    double took = (MPI_Wtime() - begin) / rounds;
    if (took < times[0]) times[0] = took;
    begin = MPI_Wtime();
    for (int i = 0; i < rounds; ++i) {
      MPI_Isend(a, 4, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Recv(b, 4, MPI_DOUBLE, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    took = (MPI_Wtime() - begin) / rounds;
    if (took < times[1]) times[1] = took;
  }
  if (rank == 0)
    printf("%.0f ns irecv isend waitall, %.0f ns isend recv wait\n", times[0] * 1e9, times[1] * 1e9);
  MPI_Finalize();
  return 0;
}
