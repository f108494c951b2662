// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/synchronous.c: a synchronous send ends once its receive has begun, whatever was probed
// before, and needs no more than that. Two ranks; each step runs for several sizes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { most = 100000, data = 1, word = 2 };
typedef enum { iprobe, probe, improbe, mprobe, probes } Probe;
static int rank;
static unsigned char from[most], into[most];
static const MPI_Comm w = MPI_COMM_WORLD;

static void fill(int bytes) {
  for (int i = 0; i < bytes; ++i) from[i] = (unsigned char)(i % 251 + 1), into[i] = 0;
}
static void check(int bytes) {
  for (int i = 0; i < bytes; ++i) CHECK(into[i] == i % 251 + 1);
}
// Words between the ranks are no data of ours: they say how far the other one is.
static void tell(int other) { MPI_Send(NULL, 0, MPI_BYTE, other, word, w); }
static void hear(int other) { MPI_Recv(NULL, 0, MPI_BYTE, other, word, w, MPI_STATUS_IGNORE); }

// A message that was probed, and matched by half of the kinds.
static MPI_Message probed(Probe how, int bytes) {
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  int flag = 0, count = 0;
  if (how == probe) MPI_Probe(0, data, w, &status);
  if (how == mprobe) MPI_Mprobe(0, data, w, &message, &status);
  while (how == iprobe && !flag) MPI_Iprobe(MPI_ANY_SOURCE, data, w, &flag, &status);
  while (how == improbe && !flag) MPI_Improbe(0, MPI_ANY_TAG, w, &flag, &message, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  CHECK(count == bytes && status.MPI_SOURCE == 0 && status.MPI_TAG == data);
  return message;
}
static void receive(MPI_Message message, int bytes) {
  if (message != MPI_MESSAGE_NULL)
    MPI_Mrecv(into, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
  else
    MPI_Recv(into, bytes, MPI_BYTE, 0, data, w, MPI_STATUS_IGNORE);
  check(bytes);
}

// Whether a request has ended, asked in each way by turns.
static int has_ended(MPI_Request* request, int turn) {
  int flag = 0, index = 0;
  if (turn % 5 == 0) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
  if (turn % 5 == 1) MPI_Testall(1, request, &flag, MPI_STATUSES_IGNORE);
  if (turn % 5 == 2) MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE);
  if (turn % 5 == 3) MPI_Testsome(1, request, &flag, &index, MPI_STATUSES_IGNORE);
  if (turn % 5 == 4) MPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
  return flag != 0;
}

static void is_open_while_probed(Probe how, int bytes, int persistent) {
  fill(bytes);
  MPI_Request request;
  if (rank == 0 && persistent) MPI_Ssend_init(from, bytes, MPI_BYTE, 1, data, w, &request);
  for (int round = 0; round < 1 + persistent; ++round) {
    if (rank == 0) {
      if (persistent) MPI_Start(&request);
      if (!persistent) MPI_Issend(from, bytes, MPI_BYTE, 1, data, w, &request);
      hear(1);
      for (int turn = 0; turn < 10; ++turn, usleep(200)) CHECK(!has_ended(&request, turn));
      tell(1);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      const MPI_Message message = probed(how, bytes);
      tell(0);
      hear(0);
      receive(message, bytes);
    }
  }
  if (rank == 0 && persistent) MPI_Request_free(&request);
}

static void is_blocked_while_probed(Probe how, int bytes) {
  fill(bytes);
  if (rank == 0) {
    MPI_Ssend(from, bytes, MPI_BYTE, 1, data, w);
    tell(1);
  } else {
    int flag = 0;
    const MPI_Message message = probed(how, bytes);
    for (int turn = 0; turn < 10; ++turn, usleep(200)) {
      MPI_Iprobe(0, word, w, &flag, MPI_STATUS_IGNORE);
      CHECK(!flag);
    }
    receive(message, bytes);
    hear(0);
  }
}

// A later message is received while an earlier one is only probed.
static void ends_beside_a_probed_one(int bytes) {
  MPI_Request requests[2];
  fill(bytes);
  if (rank == 0) {
    int index = -1;
    MPI_Issend(from, bytes, MPI_BYTE, 1, data, w, &requests[0]);
    hear(1);
    MPI_Issend(from, bytes, MPI_BYTE, 1, data + 2, w, &requests[1]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    CHECK(index == 1);
    MPI_Barrier(w);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  } else {
    MPI_Irecv(into, bytes, MPI_BYTE, 0, data + 2, w, &requests[0]);
    probed(probe, bytes);
    tell(0);
    MPI_Barrier(w);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check(bytes);
    receive(MPI_MESSAGE_NULL, bytes);
  }
}

// Ends though its receiver, which has posted the receive, is in calls of MPI alone.
static void ends_by_a_posted_receive(int bytes) {
  MPI_Request request;
  fill(bytes);
  if (rank == 1) MPI_Irecv(into, bytes, MPI_BYTE, 0, data, w, &request);
  if (rank == 0) MPI_Issend(from, bytes, MPI_BYTE, 1, data, w, &request);
  if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Ssend(from, 0, MPI_BYTE, 1, data, w);
  if (rank == 1) MPI_Recv(NULL, 0, MPI_BYTE, 0, data, w, MPI_STATUS_IGNORE);
  MPI_Barrier(w);
  if (rank == 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 1) check(bytes);
}

// Freed, or cancelled where the MPI can, before its receive begins.
static void is_let_go(int bytes) {
  MPI_Request request;
  fill(bytes);
  if (rank == 0) {
    MPI_Issend(from, bytes, MPI_BYTE, 1, data, w, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
    hear(1);
    MPI_Ssend_init(from, bytes, MPI_BYTE, 1, data, w, &request);
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL);
  } else {
    probed(iprobe, bytes);
    receive(MPI_MESSAGE_NULL, bytes);
    tell(0);
  }
}

int main(int argc, char** argv) {
  const int sizes[4] = {1, 64, 5000, most};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(w, &rank);
  for (int size = 0; size < 4; ++size) {
    for (Probe how = iprobe; how < probes; ++how) {
      is_open_while_probed(how, sizes[size], 0);
      is_open_while_probed(how, sizes[size], 1);
      is_blocked_while_probed(how, sizes[size]);
    }
    ends_beside_a_probed_one(sizes[size]);
    ends_by_a_posted_receive(sizes[size]);
    is_let_go(sizes[size]);
  }
  MPI_Finalize();
  return 0;
}
