// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/pairs.c: MPI_Isendrecv and MPI_Isendrecv_replace around a ring, ended by each call that
// ends requests; on emulated memory of devices where there is any. MPICH's own (4.0.2, 5.0.2) end
// without a status or in a fault, and Open MPI 5 frees no such request.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));

enum { LENGTH = 4000, ROUNDS = 9 };
static int rank, size;
static double* reserve(void) {
  const size_t bytes = LENGTH * sizeof(double);
  return quadriga_emulated_malloc != NULL ? quadriga_emulated_malloc(bytes) : malloc(bytes);
}
static void copy(void* to, const void* from) {
  const size_t bytes = LENGTH * sizeof(double);
  if (quadriga_emulated_copy != NULL)
    quadriga_emulated_copy(to, from, bytes);
  else
    memcpy(to, from, bytes);
}

// Ends two requests by one of MPI's ways.
static void end(int way, MPI_Request* requests, MPI_Status* statuses) {
  int flag = 0, index = -1, count = 0, indices[2];
  MPI_Status some[2];
  switch (way) {
    case 0:
      MPI_Waitall(2, requests, statuses);
      return;
    case 1:
      MPI_Wait(&requests[0], &statuses[0]);
      MPI_Wait(&requests[1], &statuses[1]);
      return;
    case 2:
      for (int i = 0; i < 2; ++i)
        for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, &statuses[i]);
      return;
    case 3:
      while (!flag) MPI_Testall(2, requests, &flag, statuses);
      return;
    case 4:
      for (int i = 0; i < 2; ++i) {
        MPI_Waitany(2, requests, &index, &some[0]);
        statuses[index] = some[0];
      }
      return;
    case 5:
      for (int ended = 0; ended < 2; ended += count) {
        MPI_Waitsome(2, requests, &count, indices, some);
        for (int i = 0; i < count; ++i) statuses[indices[i]] = some[i];
      }
      return;
    case 6:
      for (int i = 0; i < 2; ++i) {
        for (flag = 0; !flag;) MPI_Request_get_status(requests[i], &flag, &statuses[i]);
        MPI_Wait(&requests[i], &some[0]);
      }
      return;
    case 7:
      for (int ended = 0; ended < 2;) {
        MPI_Testany(2, requests, &index, &flag, &some[0]);
        if (!flag || index == MPI_UNDEFINED) continue;
        statuses[index] = some[0];
        ++ended;
      }
      return;
    default:
      MPI_Waitall(2, requests, statuses);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int to = (rank + 1) % size, from = (rank + size - 1) % size;
  double host[LENGTH], *sent = reserve(), *got = reserve(), *both = reserve();
  MPI_Datatype spread;
  MPI_Type_vector(LENGTH / 8, 3, 8, MPI_DOUBLE, &spread);
  MPI_Type_commit(&spread);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < LENGTH; ++i) host[i] = i + 10000 * rank + round;
    copy(sent, host);
    copy(both, host);
    memset(host, 0, sizeof host);
    copy(got, host);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int count = 0, other = 0;
    MPI_Isendrecv(sent, 1, spread, to, 2 * round, got, LENGTH, MPI_DOUBLE, from, MPI_ANY_TAG,
                  MPI_COMM_WORLD, &requests[0]);
    end(9, (MPI_Request[]){requests[0], MPI_REQUEST_NULL}, statuses);
    CHECK(statuses[0].MPI_SOURCE == from && statuses[0].MPI_TAG == 2 * round);
    MPI_Isendrecv(sent, 1, spread, to, 1, got, LENGTH, MPI_DOUBLE, from, 1, MPI_COMM_WORLD,
                  &requests[0]);
    MPI_Isendrecv_replace(both, LENGTH, MPI_DOUBLE, to, 3, from, 3, MPI_COMM_WORLD, &requests[1]);
    end(round, requests, statuses);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    MPI_Get_count(&statuses[0], MPI_DOUBLE, &count);
    MPI_Get_count(&statuses[1], MPI_DOUBLE, &other);
    CHECK(count == LENGTH / 8 * 3 && other == LENGTH);
    CHECK(statuses[0].MPI_SOURCE == from && statuses[1].MPI_SOURCE == from);
    copy(host, got);
    for (int i = 0; i < count; ++i) CHECK(host[i] == i / 3 * 8 + i % 3 + 10000 * from + round);
    CHECK(host[count] == 0);
    copy(host, both);
    for (int i = 0; i < LENGTH; ++i) CHECK(host[i] == i + 10000 * from + round);
  }
  // Nobody waits for these; the last barrier's ranks have come all the same.
  MPI_Request freed = MPI_REQUEST_NULL;
  if (quadriga_emulated_malloc != NULL) {
    MPI_Isendrecv(sent, 1, spread, to, 5, got, LENGTH, MPI_DOUBLE, from, 5, MPI_COMM_WORLD, &freed);
    MPI_Request_free(&freed);
  }
  CHECK(freed == MPI_REQUEST_NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Type_free(&spread);
  MPI_Finalize();
  return 0;
}
