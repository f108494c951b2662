// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/refused.c: calls that the library doesn't take over, on memory of a device: each has to
// refuse it. Rank 0 prints their names. Without the library only the calls on the host are made.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

#ifndef COUNT  // See large_form.h.
#define COUNT int
#define PLACE int
#endif
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT_COLLECTIVES
#endif

extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));

enum { LENGTH = 16 };
static int rank, size;
#define REFUSED(name, ...)                                                   \
  do {                                                                       \
    int class = MPI_SUCCESS;                                                 \
    MPI_Error_class(name(__VA_ARGS__), &class);                              \
    if (class != MPI_ERR_BUFFER) fprintf(stderr, #name " gave %d\n", class); \
    CHECK(class == MPI_ERR_BUFFER);                                          \
    if (rank == 0) puts(#name);                                              \
  } while (0)

static const MPI_Datatype one = MPI_DOUBLE;
static MPI_Comm all = MPI_COMM_WORLD;
static MPI_Request request;
static double host[LENGTH];
static double* device;
static COUNT counts[2] = {2, 2};
static PLACE places[2] = {0, 2};

static void messages(void) {
  MPI_Aint position = 0;
  REFUSED(MPI_Bsend, device, 2, one, 0, 0, all);
  REFUSED(MPI_Ibsend, device, 2, one, 0, 0, all, &request);
  REFUSED(MPI_Bsend_init, device, 2, one, 0, 0, all, &request);
  REFUSED(MPI_Buffer_attach, device, 64);
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  REFUSED(MPI_Comm_attach_buffer, all, device, 64);
#endif
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

#ifdef HAS_PERSISTENT_COLLECTIVES
static const MPI_Info info = MPI_INFO_NULL;

static void persistent(void) {
  REFUSED(MPI_Psend_init, device, 1, 2, one, 0, 0, all, info, &request);
  REFUSED(MPI_Precv_init, device, 1, 2, one, 0, 0, all, info, &request);
  REFUSED(MPI_Bcast_init, device, 2, one, 0, all, info, &request);
  REFUSED(MPI_Reduce_init, device, host, 2, one, MPI_SUM, 0, all, info, &request);
  REFUSED(MPI_Allreduce_init, host, device, 2, one, MPI_SUM, all, info, &request);
  REFUSED(MPI_Scan_init, device, host, 2, one, MPI_SUM, all, info, &request);
  REFUSED(MPI_Exscan_init, host, device, 2, one, MPI_SUM, all, info, &request);
  REFUSED(MPI_Reduce_scatter_init, device, host, counts, one, MPI_SUM, all, info, &request);
  REFUSED(MPI_Reduce_scatter_block_init, host, device, 2, one, MPI_SUM, all, info, &request);
  REFUSED(MPI_Gather_init, device, 2, one, host, 2, one, 0, all, info, &request);
  REFUSED(MPI_Gatherv_init, host, 2, one, device, counts, places, one, 0, all, info, &request);
  REFUSED(MPI_Scatter_init, device, 2, one, host, 2, one, 0, all, info, &request);
  REFUSED(MPI_Scatterv_init, host, counts, places, one, device, 2, one, 0, all, info, &request);
  REFUSED(MPI_Allgather_init, device, 2, one, host, 2, one, all, info, &request);
  REFUSED(MPI_Allgatherv_init, host, 2, one, device, counts, places, one, all, info, &request);
  REFUSED(MPI_Alltoall_init, device, 2, one, host, 2, one, all, info, &request);
  REFUSED(MPI_Alltoallv_init, host, counts, places, one, device, counts, places, one, all, info,
          &request);
}

static void persistent_neighbors(void) {
  const MPI_Datatype types[2] = {one, one};
  const MPI_Aint far[2] = {0, 16};
  const int wraps = 1;
  MPI_Comm ring;
  MPI_Cart_create(all, 1, &size, &wraps, 0, &ring);
  MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
  REFUSED(MPI_Alltoallw_init, device, counts, places, types, host, counts, places, types, all, info,
          &request);
  REFUSED(MPI_Neighbor_allgather_init, device, 2, one, host, 2, one, ring, info, &request);
  REFUSED(MPI_Neighbor_allgatherv_init, host, 2, one, device, counts, places, one, ring, info,
          &request);
  REFUSED(MPI_Neighbor_alltoall_init, device, 2, one, host, 2, one, ring, info, &request);
  REFUSED(MPI_Neighbor_alltoallv_init, host, counts, places, one, device, counts, places, one, ring,
          info, &request);
  REFUSED(MPI_Neighbor_alltoallw_init, device, counts, far, types, host, counts, far, types, ring,
          info, &request);
  MPI_Comm_free(&ring);
}
#endif

// Where the data lies only the type tells: MPI_BOTTOM and absolute addresses.
static void absolute(void) {
  MPI_Datatype far, types[2];
  MPI_Aint place, none[2] = {0, 0};
  COUNT ones[2] = {1, 1}, length = 2;
  PLACE at[2] = {0, 0};
  MPI_Aint packed = 0;
  MPI_Get_address(device, &place);
  MPI_Type_create_hindexed(1, &length, &place, one, &far);
  MPI_Type_commit(&far);
  types[0] = types[1] = far;
  const int wraps = 1;
  MPI_Comm ring;
  MPI_Cart_create(all, 1, &size, &wraps, 0, &ring);
  MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
  REFUSED(MPI_Bsend, MPI_BOTTOM, 1, far, 0, 0, all);
  REFUSED(MPI_Pack_external, "external32", MPI_BOTTOM, 1, far, host, sizeof host, &packed);
  REFUSED(MPI_Ibcast, MPI_BOTTOM, 1, far, 0, all, &request);
  REFUSED(MPI_Iallgather, host, 2, one, MPI_BOTTOM, 1, far, all, &request);
  REFUSED(MPI_Ialltoallw, host, counts, at, types, MPI_BOTTOM, ones, at, types, all, &request);
  REFUSED(MPI_Ineighbor_alltoallw, MPI_BOTTOM, ones, none, types, host, ones, none, types, ring,
          &request);
  MPI_Comm_free(&ring);
  MPI_Type_free(&far);
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
#ifdef HAS_PERSISTENT_COLLECTIVES
  MPI_Allreduce_init(mine, sums, 2, MPI_DOUBLE, MPI_MAX, all, info, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
  CHECK(sums[0] == size && sums[1] == 1);
  sums[1] = size;
#endif
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
#ifdef HAS_PERSISTENT_COLLECTIVES
    persistent();
    persistent_neighbors();
#endif
    absolute();
    windows();
  }
  on_the_host();
  MPI_Finalize();
  return 0;
}
