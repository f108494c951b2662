// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/edges.c: what lies at the edges of MPI: bounds below zero, no elements, absolute
// addresses, types that are freed early, messages that are too long, and what each call answers to
// wrong arguments. Writes what came, which must be the same with and without preloading, on memory
// of the host and of devices. Two ranks.
//
// usage: edges FILE; each rank writes FILE.RANK: launchers mix up what ranks print at once
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));

enum { LENGTH = 1 << 15 };
static int rank, other, handled;
static double *from, *into;
static double host[LENGTH];

static double* place(void) {
  const size_t bytes = LENGTH * sizeof(double);
  return quadriga_emulated_malloc != NULL ? quadriga_emulated_malloc(bytes) : malloc(bytes);
}
static void copy(double* to, const double* of) {
  if (quadriga_emulated_copy != NULL)
    quadriga_emulated_copy(to, of, sizeof host);
  else
    memcpy(to, of, sizeof host);
}
static void begin(void) {
  for (int i = 0; i < LENGTH; ++i) host[i] = i + 1000000 * rank;
  copy(from, host);
  for (int i = 0; i < LENGTH; ++i) host[i] = -1 - i % 5;
  copy(into, host);
}
static void show(const char* what, int code, const MPI_Status* status, MPI_Datatype type) {
  int class = -1, count = -2, elements = -2;
  MPI_Error_class(code, &class);
  if (status != NULL && class == MPI_SUCCESS) {
    MPI_Get_count(status, type, &count);
    MPI_Get_elements(status, type, &elements);
  }
  double sum = 0, weighted = 0;
  copy(host, into);
  // What a message that was too long has left is nobody's affair.
  for (int i = 0; i < LENGTH && class == MPI_SUCCESS; ++i) {
    sum += host[i];
    weighted += host[i] * (i % 97);
  }
  printf("%d %s: %s, count %d, elements %d, sums %.0f %.0f\n", rank, what,
         class == MPI_SUCCESS ? "well" : class == MPI_ERR_TRUNCATE ? "truncated" : "failed",
         count == MPI_UNDEFINED ? -1 : count, elements, sum, weighted);
}

// One message each way, by a type for each side.
static void exchange(const char* what, int count, MPI_Datatype sent, int room,
                     MPI_Datatype received, int shift) {
  MPI_Request request;
  MPI_Status status;
  begin();
  MPI_Irecv(into + shift, room, received, other, 1, MPI_COMM_WORLD, &request);
  MPI_Send(from + shift, count, sent, other, 1, MPI_COMM_WORLD);
  const int code = MPI_Wait(&request, &status);
  show(what, code, &status, received);
  begin();
  if (rank == 0) MPI_Ssend(from + shift, count, sent, other, 2, MPI_COMM_WORLD);
  if (rank == 1) {
    const int late = MPI_Recv(into + shift, room, received, 0, 2, MPI_COMM_WORLD, &status);
    show(what, late, &status, received);
  }
}

static void bounds_below_zero(void) {
  MPI_Datatype vector, shifted, fields, back, of[2] = {MPI_DOUBLE, MPI_INT};
  int lengths[2] = {2, 3};
  MPI_Aint places[2] = {-40, 16};
  MPI_Type_vector(3, 2, 5, MPI_DOUBLE, &vector);
  MPI_Type_create_resized(vector, -24, 160, &shifted);
  MPI_Type_create_struct(2, lengths, places, of, &fields);
  MPI_Type_create_hvector(4, 1, -80, fields, &back);
  MPI_Datatype* all[3] = {&shifted, &fields, &back};
  for (int i = 0; i < 3; ++i) MPI_Type_commit(all[i]);
  const int counts[3] = {1, 7, 300};
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) {
      exchange("bounds below zero", counts[i], *all[k], counts[i], *all[k], 12000);
      exchange("bounds below zero, room for more", counts[i], *all[k], counts[i] + 5, *all[k],
               12000);
    }
  for (int i = 0; i < 3; ++i) MPI_Type_free(all[i]);
  MPI_Type_free(&vector);
}

static void no_elements(void) {
  MPI_Datatype none, vector;
  MPI_Type_contiguous(0, MPI_DOUBLE, &none);
  MPI_Type_vector(0, 3, 5, MPI_DOUBLE, &vector);
  MPI_Type_commit(&none);
  MPI_Type_commit(&vector);
  exchange("no elements", 0, MPI_DOUBLE, 0, MPI_DOUBLE, 0);
  exchange("no elements, room", 0, MPI_DOUBLE, 20000, MPI_DOUBLE, 0);
  exchange("elements of nothing", 5, none, 5, none, 0);
  exchange("blocks of nothing", 5, vector, 20000, MPI_DOUBLE, 0);
  MPI_Status status;
  MPI_Sendrecv(NULL, 0, MPI_DOUBLE, other, 3, NULL, 0, MPI_DOUBLE, other, 3, MPI_COMM_WORLD,
               &status);
  show("nowhere", MPI_SUCCESS, &status, MPI_DOUBLE);
  int code = MPI_Recv(into, 10, MPI_DOUBLE, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &status);
  show("from nobody", code, &status, MPI_DOUBLE);
  printf("%d source %d, tag %d\n", rank, status.MPI_SOURCE == MPI_PROC_NULL,
         status.MPI_TAG == MPI_ANY_TAG);
  code = MPI_Send(from, 20000, MPI_DOUBLE, MPI_PROC_NULL, 4, MPI_COMM_WORLD);
  show("to nobody", code, NULL, MPI_DOUBLE);
  MPI_Type_free(&none);
  MPI_Type_free(&vector);
}

static void parts_of_elements(void) {
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&pair);
  exchange("half an element", 5, MPI_DOUBLE, 4, pair, 0);
  exchange("half a large element", 15001, MPI_DOUBLE, 8000, pair, 0);
  MPI_Type_free(&pair);
}

static void addresses(void) {
  const int sizes[2] = {3, 9000};
  for (int i = 0; i < 2; ++i) {
    int lengths[2] = {sizes[i], sizes[i] + 1};
    MPI_Aint out[2], in[2];
    MPI_Datatype sent, received;
    MPI_Get_address(from + 11000, &out[0]);
    MPI_Get_address(from + 5, &out[1]);
    MPI_Get_address(into + 20, &in[0]);
    MPI_Get_address(into + 12000, &in[1]);
    MPI_Type_create_hindexed(2, lengths, out, MPI_DOUBLE, &sent);
    MPI_Type_create_hindexed(2, lengths, in, MPI_DOUBLE, &received);
    MPI_Type_commit(&sent);
    MPI_Type_commit(&received);
    begin();
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(MPI_BOTTOM, 1, received, other, 5, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(MPI_BOTTOM, 1, sent, other, 5, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&sent);
    MPI_Waitall(2, requests, statuses);
    show("absolute addresses", MPI_SUCCESS, &statuses[0], received);
    MPI_Type_free(&received);
  }
}

// In flight on both sides; others of other shapes take their handles.
static void freed_in_flight(void) {
  for (int persistent = 0; persistent < 2; ++persistent) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Datatype type, next[4];
    begin();
    MPI_Type_vector(1500, 3, 7, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    if (persistent) {
      MPI_Recv_init(into, 1, type, other, 6, MPI_COMM_WORLD, &requests[0]);
      MPI_Send_init(from, 1, type, other, 6, MPI_COMM_WORLD, &requests[1]);
    } else {
      MPI_Irecv(into, 1, type, other, 6, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(from, 1, type, other, 6, MPI_COMM_WORLD, &requests[1]);
    }
    MPI_Type_free(&type);
    for (int i = 0; i < 4; ++i) {
      MPI_Type_vector(10 + i, 2, 3, MPI_INT, &next[i]);
      MPI_Type_commit(&next[i]);
    }
    for (int round = 0; round < 1 + 2 * persistent; ++round) {
      if (persistent) MPI_Startall(2, requests);
      MPI_Waitall(2, requests, statuses);
      show("freed in flight", MPI_SUCCESS, &statuses[0], MPI_DOUBLE);
    }
    for (int i = 0; i < 2 && persistent; ++i) MPI_Request_free(&requests[i]);
    for (int i = 0; i < 4; ++i) MPI_Type_free(&next[i]);
  }
}

static void too_long(void) {
  const int sizes[3] = {7, 300, 20000};
  for (int i = 0; i < 3; ++i) {
    MPI_Request request, sends[4];
    MPI_Status status;
    int flag = 0;
    begin();
    for (int k = 0; k < 4; ++k)
      MPI_Isend(from, sizes[i], MPI_DOUBLE, other, 7 + k, MPI_COMM_WORLD, &sends[k]);
    int code = MPI_Recv(into, sizes[i] - 1, MPI_DOUBLE, other, 7, MPI_COMM_WORLD, &status);
    show("too long, blocking", code, &status, MPI_DOUBLE);
    MPI_Irecv(into, sizes[i] / 2, MPI_DOUBLE, other, 8, MPI_COMM_WORLD, &request);
    code = MPI_Wait(&request, &status);
    show("too long, waited for", code, &status, MPI_DOUBLE);
    code = MPI_Irecv(into, sizes[i] - 2, MPI_DOUBLE, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &request);
    while (!flag && code == MPI_SUCCESS) code = MPI_Test(&request, &flag, &status);
    show("too long, tested", code, &status, MPI_DOUBLE);
    begin();
    code = MPI_Recv(into, sizes[i], MPI_DOUBLE, other, 10, MPI_COMM_WORLD, &status);
    show("the next one", code, &status, MPI_DOUBLE);
    MPI_Waitall(4, sends, MPI_STATUSES_IGNORE);
  }
}

#define REFUSED(...)                                                         \
  do {                                                                       \
    int class = 0;                                                           \
    MPI_Error_class(__VA_ARGS__, &class);                                    \
    printf("%d refused %s: %s\n", rank, #__VA_ARGS__,                        \
           class == MPI_ERR_COUNT  ? "count"                                 \
           : class == MPI_ERR_RANK ? "rank"                                  \
           : class == MPI_ERR_TAG  ? "tag"                                   \
           : class == MPI_ERR_TYPE ? "type"                                  \
           : class == MPI_SUCCESS  ? "not at all"                            \
                                   : "otherwise");                           \
  } while (0)

static void wrong_arguments(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Comm w = MPI_COMM_WORLD;
  REFUSED(MPI_Send(from, -1, MPI_DOUBLE, other, 1, w));
  REFUSED(MPI_Send(from, 20000, MPI_DOUBLE, 17, 1, w));
  REFUSED(MPI_Send(from, 20000, MPI_DOUBLE, other, -5, w));
  REFUSED(MPI_Send(from, 20000, MPI_DATATYPE_NULL, other, 1, w));
  REFUSED(MPI_Isend(from, 20000, MPI_DOUBLE, 17, 1, w, &request));
  REFUSED(MPI_Issend(from, -2, MPI_DOUBLE, other, 1, w, &request));
  REFUSED(MPI_Recv(into, -1, MPI_DOUBLE, other, 1, w, MPI_STATUS_IGNORE));
  REFUSED(MPI_Recv(into, 20000, MPI_DOUBLE, 17, 1, w, MPI_STATUS_IGNORE));
  REFUSED(MPI_Irecv(into, 20000, MPI_DOUBLE, other, -7, w, &request));
  REFUSED(MPI_Irecv(into, 20000, MPI_DATATYPE_NULL, other, 1, w, &request));
  REFUSED(MPI_Send_init(from, 20000, MPI_DOUBLE, 17, 1, w, &request));
  REFUSED(MPI_Recv_init(into, -3, MPI_DOUBLE, other, 1, w, &request));
  REFUSED(MPI_Bcast(from, -1, MPI_DOUBLE, 0, w));
  REFUSED(MPI_Sendrecv(from, 20000, MPI_DOUBLE, 17, 1, into, 20000, MPI_DOUBLE, 17, 1, w,
                       MPI_STATUS_IGNORE));
  MPI_Datatype open;  // Never committed.
  MPI_Type_vector(9000, 1, 2, MPI_DOUBLE, &open);
  REFUSED(MPI_Send(from, 1, open, other, 1, w));
  REFUSED(MPI_Isend(from, 1, open, other, 1, w, &request));
  REFUSED(MPI_Ssend(from, 1, open, other, 1, w));
  REFUSED(MPI_Send_init(from, 1, open, other, 1, w, &request));
  REFUSED(MPI_Recv(into, 1, open, other, 1, w, MPI_STATUS_IGNORE));
  REFUSED(MPI_Irecv(into, 1, open, other, 1, w, &request));
  REFUSED(MPI_Bcast(from, 1, open, 0, w));
  MPI_Type_commit(&open);
  exchange("committed late", 1, open, 1, open, 0);
  MPI_Type_free(&open);
  printf("%d handled %d\n", rank, handled);
}

static void handler(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  ++handled;
}

int main(int argc, char** argv) {
  MPI_Errhandler own;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  char name[1000];
  snprintf(name, sizeof name, "%s.%d", argv[1], rank);
  if (freopen(name, "w", stdout) == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
  from = place();
  into = place();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  bounds_below_zero();
  no_elements();
  parts_of_elements();
  addresses();
  freed_in_flight();
  too_long();
  wrong_arguments();
  // Once for each error, by the program's own handler.
  MPI_Comm_create_errhandler(handler, &own);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
  too_long();
  wrong_arguments();
  MPI_Errhandler_free(&own);
  MPI_Finalize();
  return 0;
}
