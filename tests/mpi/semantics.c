// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/semantics.c: what MPI promises where messages go Quadriga's way. Two ranks or more;
// those beyond the second only take part in what all do.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static int rank;
enum { n = 100000 };
static double a[n], b[n], c[n];

static void fill(void) {
  for (int i = 0; i < n; ++i) a[i] = i + 0.25, b[i] = -1;
}

// Receives that are posted are served while the receiver is in calls of MPI's alone.
static void barriers_between(int synchronous) {
  MPI_Request request;
  fill();
  if (rank == 1) MPI_Irecv(b, n, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &request);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && synchronous) MPI_Ssend(a, n, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
  if (rank == 0 && !synchronous) MPI_Send(a, n, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
  for (int i = 0; i < n && rank == 0; ++i) a[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 1) return;
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < n; ++i) CHECK(b[i] == i + 0.25);
}

static void truncated(void) {
  MPI_Status status;
  fill();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0)
    for (int i = 0; i < 3; ++i) CHECK(MPI_Send(a, n, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD) == 0);
  if (rank == 1) {
    int class = 0;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Error_class(MPI_Recv(b, n / 2, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &status), &class);
    CHECK(class == MPI_ERR_TRUNCATE);
    MPI_Irecv(b, n - 1, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(c, n, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Error_class(MPI_Waitall(2, requests, statuses), &class);
    CHECK(class == MPI_ERR_IN_STATUS);
    MPI_Error_class(statuses[0].MPI_ERROR, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
    if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) MPI_Wait(&requests[1], &statuses[1]);
    CHECK(c[n - 1] == n - 1 + 0.25);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void freed_while_under_way(void) {
  MPI_Datatype type;
  MPI_Request request, other;
  fill();
  MPI_Type_vector(1000, 3, 7, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  if (rank == 0) MPI_Isend(a, 1, type, 1, 3, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Irecv(b, 1, type, 0, 3, MPI_COMM_WORLD, &request);
  MPI_Type_free(&type);
  MPI_Type_contiguous(5, MPI_CHAR, &type);
  MPI_Type_commit(&type);
  if (rank < 2) MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Type_free(&type);
  for (int i = 0; i < 7000 - 4 && rank == 1; ++i) CHECK(b[i] == (i % 7 < 3 ? i + 0.25 : -1));
  // A request that is freed goes on.
  fill();
  if (rank == 0) {
    MPI_Isend(a, n, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, &other);
    MPI_Request_free(&other);
    MPI_Recv(b, 1, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 1) {
    MPI_Recv(b, n, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(b[n - 1] == n - 1 + 0.25);
    MPI_Send(b, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD);
  }
}

static void addresses(void) {
  int lengths[2] = {n / 2, n / 2};
  MPI_Aint places[2];
  MPI_Datatype type;
  MPI_Status status;
  int count = 0;
  fill();
  MPI_Get_address((rank == 0 ? a : b) + n / 2, &places[0]);
  MPI_Get_address(rank == 0 ? a : b, &places[1]);
  MPI_Type_create_hindexed(2, lengths, places, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  if (rank == 0) MPI_Send(MPI_BOTTOM, 1, type, 1, 6, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Probe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, type, &count);
    CHECK(count == 1 && status.MPI_SOURCE == 0);
    MPI_Recv(MPI_BOTTOM, 1, type, 0, 6, MPI_COMM_WORLD, &status);
    for (int i = 0; i < n; ++i) CHECK(b[i] == i + 0.25);
  }
  MPI_Type_free(&type);
  if (rank == 0) MPI_Send(a, 0, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Recv(b, 0, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(count == 0);
  }
}

static void cancelled(void) {
  MPI_Request request;
  MPI_Status status;
  int flag = 0;
  fill();
  if (rank == 1) {
    MPI_Irecv(b, n, MPI_DOUBLE, 0, 8, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    CHECK(b[0] == -1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// What a probe has taken early doesn't pass what came before it.
static void order_after_probes(void) {
  MPI_Request requests[3];
  MPI_Status status;
  int count = 0, flag = 0;
  fill();
  if (rank == 0) {
    MPI_Isend(a, 10, MPI_DOUBLE, 1, 10, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(a, n, MPI_DOUBLE, 1, 11, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(a, n / 2, MPI_DOUBLE, 1, 12, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  }
  if (rank == 1) {
    const int tags[3] = {10, 11, 12}, counts[3] = {10, n, n / 2};
    MPI_Probe(0, 12, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &count);
    CHECK(count == n / 2);
    for (int i = 0; i < 3; ++i) {
      MPI_Irecv(b, n, MPI_DOUBLE, i == 1 ? MPI_ANY_SOURCE : 0, MPI_ANY_TAG, MPI_COMM_WORLD,
                &requests[0]);
      while (!flag) MPI_Request_get_status(requests[0], &flag, &status);
      flag = 0;
      MPI_Wait(&requests[0], &status);
      MPI_Get_count(&status, MPI_DOUBLE, &count);
      CHECK(status.MPI_TAG == tags[i] && count == counts[i] && b[count - 1] == count - 1 + 0.25);
    }
  }
}

static void packed(void) {
  MPI_Datatype type;
  double to[600], back[n];
  int position = 0, bytes = 0;
  fill();
  memset(back, 0, sizeof back);
  MPI_Type_vector(100, 2, 9, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Pack_size(3, type, MPI_COMM_WORLD, &bytes);
  MPI_Pack(a, 3, type, to, sizeof to, &position, MPI_COMM_WORLD);
  CHECK(position == 4800 && bytes >= 4800);
  position = 0;
  MPI_Unpack(to, 4800, &position, back, 3, type, MPI_COMM_WORLD);
  CHECK(position == 4800 && back[9] == 9.25 && back[8] == 0);
  if (rank == 0) MPI_Send(to, 4800, MPI_PACKED, 1, 13, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(b, 3, type, 0, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) CHECK(b[9] == 9.25 && b[8] == -1);
  MPI_Type_free(&type);
}

static void replaced(void) {
  MPI_Status status;
  fill();
  a[0] = rank;
  if (rank < 2) {
    MPI_Sendrecv_replace(a, n, MPI_DOUBLE, 1 - rank, 14, 1 - rank, 14, MPI_COMM_WORLD, &status);
    CHECK(a[0] == 1 - rank && a[n - 1] == n - 1 + 0.25 && status.MPI_SOURCE == 1 - rank);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  barriers_between(0);
  barriers_between(1);
  truncated();
  freed_while_under_way();
  addresses();
  cancelled();
  order_after_probes();
  packed();
  replaced();
  MPI_Finalize();
  return 0;
}
