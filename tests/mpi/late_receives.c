// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/late_receives.c: messages whose receives begin late, sent in each standard way; and
// with "posted" those whose receives were posted, while their ranks are in a call of MPI's alone.
//
// usage: late_receives BYTES SECONDS [posted]     on two ranks
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int rank, count;
static char* data;

static void send_blocking(void) { MPI_Send(data, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD); }

static void send_and_wait(void) {
  MPI_Request request;
  MPI_Isend(data, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
}

static void send_and_test(void) {
  MPI_Request request;
  MPI_Isend(data, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  for (int ended = 0; !ended;) MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
}

static void send_and_wait_for_all(void) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Isend(data, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK(requests[1] == MPI_REQUEST_NULL);
}

static void send_persistent(void) {
  MPI_Request request;
  int index = -1;
  MPI_Send_init(data, count, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
  CHECK(index == 0 && request != MPI_REQUEST_NULL);
  MPI_Request_free(&request);
}

static void (*const ways[])(void) = {send_blocking, send_and_wait, send_and_test,
                                     send_and_wait_for_all, send_persistent};
enum { WAYS = sizeof ways / sizeof *ways };

static char letter(int way) { return (char)('a' + way); }

static void check(int way) {
  CHECK(data[0] == letter(way) && data[count / 2] == letter(way) &&
        data[count - 1] == letter(way));
}

static void late(int way, double seconds) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    memset(data, letter(way), (size_t)count);
    ways[way]();
    return;
  }
  for (const double begin = MPI_Wtime(); MPI_Wtime() < begin + seconds;) continue;
  MPI_Recv(data, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(way);
}

// The sender has its memory back before the receiver looks at what came.
static void posted(int way) {
  MPI_Request request;
  if (rank == 1) MPI_Irecv(data, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    memset(data, letter(way), (size_t)count);
    ways[way]();
    memset(data, 0, (size_t)count);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) return;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check(way);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  CHECK(argc > 2);
  count = atoi(argv[1]);
  data = malloc((size_t)count);
  for (int way = 0; way < WAYS; ++way) argc > 3 ? posted(way) : late(way, atof(argv[2]));
  free(data);
  MPI_Finalize();
  return 0;
}
