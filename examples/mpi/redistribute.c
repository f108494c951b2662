// SPDX-License-Identifier: BSD-3-Clause
// examples/mpi/redistribute.c: a matrix in ScaLAPACK's block-cyclic layout goes from one grid of
// processes to another with other blocks, from device memory to device memory, by an MPI that knows
// no devices: datatypes say where the elements lie, MPI_Isend moves them.
//
// Build: mpicc -O2 redistribute.c -o redistribute
// Run:   mpiexec -n 6 quadriga mpi-preload --emulated ./redistribute 1003; without the library on
//        host memory. The order of the matrix may be given.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// On a GPU: cudaMalloc and cudaMemcpy. The preload library has them emulated.
extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));
static double* allocate(long elements) {
  const size_t bytes = sizeof(double) * (elements > 0 ? elements : 1);
  return quadriga_emulated_malloc ? quadriga_emulated_malloc(bytes) : malloc(bytes);
}
static void copy(double* to, const double* from, long elements) {
  if (quadriga_emulated_copy)
    quadriga_emulated_copy(to, from, sizeof(double) * elements);
  else
    memcpy(to, from, sizeof(double) * elements);
}

static int n, rank, size;

// Square blocks, dealt to `rows` times `cols` processes, which are numbered along the rows.
struct grid {
  int rows, cols, block;
};

// How many of n indices the process at a place of a dimension has.
static int share(int block, int processes, int place) {
  int count = 0;
  for (int g = place * block; g < n; g += processes * block) count += n - g < block ? n - g : block;
  return count;
}

// The places in one's own order of the indices that another, on another grid, has as well: runs of
// them. Returns how many runs.
static int common(int block, int processes, int place, int its_block, int its_processes,
                  int its_place, int* lengths, int* starts) {
  int runs = 0;
  const int mine = share(block, processes, place);
  for (int l = 0; l < mine; ++l) {
    const int g = (l / block * processes + place) * block + l % block;
    if (g / its_block % its_processes != its_place) continue;
    if (runs > 0 && starts[runs - 1] + lengths[runs - 1] == l) {
      ++lengths[runs - 1];
    } else {
      starts[runs] = l;
      lengths[runs++] = 1;
    }
  }
  return runs;
}

// What of this rank's part on one grid is a peer's on the other; both sides in the same order.
static MPI_Datatype part(struct grid mine, struct grid its, int peer) {
  int lengths[n + 1], starts[n + 1];
  MPI_Datatype rows, column, type;
  const int row = rank / mine.cols, col = rank % mine.cols;
  const long ld = share(mine.block, mine.rows, row);
  int runs =
      common(mine.block, mine.rows, row, its.block, its.rows, peer / its.cols, lengths, starts);
  MPI_Type_indexed(runs, lengths, starts, MPI_DOUBLE, &rows);
  MPI_Type_create_resized(rows, 0, ld * (long)sizeof(double), &column);
  runs = common(mine.block, mine.cols, col, its.block, its.cols, peer % its.cols, lengths, starts);
  MPI_Type_indexed(runs, lengths, starts, column, &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&rows);
  MPI_Type_free(&column);
  return type;
}

static void redistribute(const double* from, struct grid old, double* to, struct grid new) {
  MPI_Request requests[2 * size];
  MPI_Datatype types[2 * size];
  for (int peer = 0; peer < size; ++peer) {
    types[peer] = part(new, old, peer);
    MPI_Irecv(to, 1, types[peer], peer, 1, MPI_COMM_WORLD, &requests[peer]);
  }
  for (int peer = 0; peer < size; ++peer) {
    types[size + peer] = part(old, new, peer);
    MPI_Isend(from, 1, types[size + peer], peer, 1, MPI_COMM_WORLD, &requests[size + peer]);
  }
  MPI_Waitall(2 * size, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 2 * size; ++i) MPI_Type_free(&types[i]);
}

// Between the whole matrix, column by column on rank 0, and the parts on a grid.
static void whole(double* all, double* mine, long count, struct grid grid, int gathers) {
  MPI_Request own, requests[size];
  const int sizes[2] = {n, n}, places[2] = {grid.rows, grid.cols};
  const int blocks[2] = {grid.block, grid.block};
  const int cyclic[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
  if (gathers)
    MPI_Isend(mine, count, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &own);
  else
    MPI_Irecv(mine, count, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, &own);
  for (int peer = 0; rank == 0 && peer < size; ++peer) {
    MPI_Datatype type;
    MPI_Type_create_darray(size, peer, 2, sizes, cyclic, blocks, places, MPI_ORDER_FORTRAN,
                           MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    if (gathers)
      MPI_Irecv(all, 1, type, peer, 2, MPI_COMM_WORLD, &requests[peer]);
    else
      MPI_Isend(all, 1, type, peer, 2, MPI_COMM_WORLD, &requests[peer]);
    MPI_Type_free(&type);
  }
  if (rank == 0) MPI_Waitall(size, requests, MPI_STATUSES_IGNORE);
  MPI_Wait(&own, MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  n = argc > 1 ? atoi(argv[1]) : 1003;
  int rows = 1;
  for (int d = 1; d * d <= size; ++d) rows = size % d == 0 ? d : rows;
  const struct grid old = {rows, size / rows, 64}, new = {size / rows, rows, 24};
  const long had = (long)share(old.block, old.rows, rank / old.cols) *
                   share(old.block, old.cols, rank % old.cols);
  const long has = (long)share(new.block, new.rows, rank / new.cols) *
                   share(new.block, new.cols, rank % new.cols);
  double *const before = allocate(had), *const after = allocate(has);
  const long all = rank == 0 ? (long)n * n : 0;
  double *const on_device = allocate(all), *const again = allocate(all);
  double* const matrix = malloc(sizeof(double) * (all + 1));
  for (long i = 0; i < all; ++i) matrix[i] = (double)i;
  copy(on_device, matrix, all);

  whole(on_device, before, had, old, 0);
  redistribute(before, old, after, new);
  whole(again, after, has, new, 1);
  copy(matrix, again, all);
  long wrong = 0;
  for (long i = 0; i < all; ++i) wrong += matrix[i] != (double)i;
  if (rank == 0)
    printf("order %d from %d x %d by %d to %d x %d by %d: %ld elements wrong\n", n, old.rows,
           old.cols, old.block, new.rows, new.cols, new.block, wrong);
  MPI_Finalize();
  return wrong > 0;
}
