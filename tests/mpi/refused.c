// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/refused.c: calls that the library doesn't take over, on memory of a device: each has to
// refuse it. Rank 0 prints their names. Without the library only the calls on the host are made.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));

enum { LENGTH = 16 };
static int rank, size;
#define CHECK(what)                                                     \
  do {                                                                  \
    if (!(what)) {                                                      \
      fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #what); \
      MPI_Abort(MPI_COMM_WORLD, 3);                                     \
    }                                                                   \
  } while (0)
#define REFUSED(name, ...)                             \
  do {                                                 \
    int class = MPI_SUCCESS;                           \
    MPI_Error_class(name(__VA_ARGS__), &class);        \
    if (class != MPI_ERR_BUFFER)                       \
      fprintf(stderr, #name " gave %d\n", class);      \
    CHECK(class == MPI_ERR_BUFFER);                    \
    if (rank == 0) puts(#name);                        \
  } while (0)

static const MPI_Datatype one = MPI_DOUBLE;
static MPI_Comm all = MPI_COMM_WORLD;
static MPI_Request request;
static double host[LENGTH];
static double* device;
static int counts[2] = {2, 2}, places[2] = {0, 2};

static void messages(void) {
  MPI_Aint position = 0;
  REFUSED(MPI_Bsend, device, 2, one, 0, 0, all);
  REFUSED(MPI_Ibsend, device, 2, one, 0, 0, all, &request);
  REFUSED(MPI_Bsend_init, device, 2, one, 0, 0, all, &request);
  REFUSED(MPI_Reduce_local, host, device, 2, one, MPI_SUM);
  REFUSED(MPI_Pack_external, "external32", device, 2, one, host, sizeof host, &position);
  REFUSED(MPI_Unpack_external, "external32", host, sizeof host, &position, device, 2, one);
}

static void collectives(void) {
  REFUSED(MPI_Ibcast, device, 2, one, 0, all, &request);
  REFUSED(MPI_Ireduce, device, host, 2, one, MPI_SUM, 0, all, &request);
  REFUSED(MPI_Iallreduce, host, device, 2, one, MPI_SUM, all, &request);
  REFUSED(MPI_Iscan, device, host, 2, one, MPI_SUM, all, &request);
  REFUSED(MPI_Iexscan, host, device, 2, one, MPI_SUM, all, &request);
  REFUSED(MPI_Ireduce_scatter, device, host, counts, one, MPI_SUM, all, &request);
  REFUSED(MPI_Ireduce_scatter_block, host, device, 2, one, MPI_SUM, all, &request);
  REFUSED(MPI_Igather, device, 2, one, host, 2, one, 0, all, &request);
  REFUSED(MPI_Igatherv, host, 2, one, device, counts, places, one, 0, all, &request);
  REFUSED(MPI_Iscatter, device, 2, one, host, 2, one, 0, all, &request);
  REFUSED(MPI_Iscatterv, host, counts, places, one, device, 2, one, 0, all, &request);
  REFUSED(MPI_Iallgather, device, 2, one, host, 2, one, all, &request);
  REFUSED(MPI_Iallgatherv, host, 2, one, device, counts, places, one, all, &request);
  REFUSED(MPI_Ialltoall, device, 2, one, host, 2, one, all, &request);
  REFUSED(MPI_Ialltoallv, host, counts, places, one, device, counts, places, one, all, &request);
}

static void neighbors(void) {
  const MPI_Datatype types[2] = {one, one};
  const MPI_Aint far[2] = {0, 16};
  const int wraps = 1;
  MPI_Comm ring;
  MPI_Cart_create(all, 1, &size, &wraps, 0, &ring);
  MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
  REFUSED(MPI_Ialltoallw, device, counts, places, types, host, counts, places, types, all,
          &request);
  REFUSED(MPI_Ineighbor_allgather, device, 2, one, host, 2, one, ring, &request);
  REFUSED(MPI_Ineighbor_allgatherv, host, 2, one, device, counts, places, one, ring, &request);
  REFUSED(MPI_Ineighbor_alltoall, device, 2, one, host, 2, one, ring, &request);
  REFUSED(MPI_Ineighbor_alltoallv, host, counts, places, one, device, counts, places, one, ring,
          &request);
  REFUSED(MPI_Ineighbor_alltoallw, device, counts, far, types, host, counts, far, types, ring,
          &request);
  MPI_Comm_free(&ring);
}

static void windows(void) {
  MPI_Win window, other;
  double compared = 0;
  MPI_Win_create(host, sizeof host, sizeof(double), MPI_INFO_NULL, all, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_lock_all(0, window);
  REFUSED(MPI_Win_create, device, 16, 1, MPI_INFO_NULL, all, &other);
  REFUSED(MPI_Win_attach, window, device, 16);
  REFUSED(MPI_Put, device, 2, one, 0, 0, 2, one, window);
  REFUSED(MPI_Get, device, 2, one, 0, 0, 2, one, window);
  REFUSED(MPI_Accumulate, device, 2, one, 0, 0, 2, one, MPI_SUM, window);
  REFUSED(MPI_Get_accumulate, &compared, 1, one, device, 1, one, 0, 0, 1, one, MPI_SUM, window);
  REFUSED(MPI_Fetch_and_op, device, &compared, one, 0, 0, MPI_SUM, window);
  REFUSED(MPI_Compare_and_swap, &compared, device, &compared, one, 0, 0, window);
  REFUSED(MPI_Rput, device, 2, one, 0, 0, 2, one, window, &request);
  REFUSED(MPI_Rget, device, 2, one, 0, 0, 2, one, window, &request);
  REFUSED(MPI_Raccumulate, device, 2, one, 0, 0, 2, one, MPI_SUM, window, &request);
  REFUSED(MPI_Rget_accumulate, &compared, 1, one, device, 1, one, 0, 0, 1, one, MPI_SUM, window,
          &request);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

// What isn't refused is MPI's own.
static void on_the_host(void) {
  double sums[2] = {0, 0}, mine[2] = {rank + 1, 1};
  MPI_Iallreduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, all, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sums[0] == size * (size + 1) / 2 && sums[1] == size);
  double gathered[2 * LENGTH] = {0};
  MPI_Iallgatherv(mine, 2, MPI_DOUBLE, gathered, counts, places, MPI_DOUBLE, all, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(gathered[0] == 1 && gathered[2] == 2);
  MPI_Reduce_local(mine, sums, 2, MPI_DOUBLE, MPI_MAX);
  CHECK(sums[1] == size);
  MPI_Win window;
  MPI_Win_create(host, sizeof host, sizeof(double), MPI_INFO_NULL, all, &window);
  MPI_Win_fence(0, window);
  MPI_Put(mine, 2, MPI_DOUBLE, (rank + 1) % size, 3, 2, MPI_DOUBLE, window);
  MPI_Win_fence(0, window);
  CHECK(host[3] == (rank + size - 1) % size + 1 && host[4] == 1);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(all, &rank);
  MPI_Comm_size(all, &size);
  CHECK(size == 2);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  if (quadriga_emulated_malloc != NULL) {
    device = quadriga_emulated_malloc(LENGTH * sizeof(double));
    messages();
    collectives();
    neighbors();
    windows();
  }
  on_the_host();
  MPI_Finalize();
  return 0;
}
