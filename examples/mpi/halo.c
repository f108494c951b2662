// SPDX-License-Identifier: BSD-3-Clause
// examples/mpi/halo.c: heat on a grid whose columns several ranks share. Borders are exchanged from
// device memory by MPI_Type_vector and MPI_Isend, by an MPI that knows no devices.
//
// Build: mpicc -O2 halo.c -o halo
// Run:   mpiexec -n 4 quadriga mpi-preload --emulated ./halo; without the library on host memory.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 512, cols = 258, steps = 20 };  // A rank's part, with a border left and right.

// On a GPU: cudaMalloc, cudaMemcpy and a kernel. The preload library has them emulated.
extern void* quadriga_emulated_malloc(size_t) __attribute__((weak));
extern void quadriga_emulated_copy(void*, const void*, size_t) __attribute__((weak));
static void* allocate(size_t bytes) {
  return quadriga_emulated_malloc ? quadriga_emulated_malloc(bytes) : malloc(bytes);
}
static void copy(void* to, const void* from, size_t bytes) {
  if (quadriga_emulated_copy)
    quadriga_emulated_copy(to, from, bytes);
  else
    for (size_t i = 0; i < bytes; ++i) ((char*)to)[i] = ((const char*)from)[i];
}

static double grid[rows * cols], next[rows * cols];

static void step(double* on_device) {
  copy(grid, on_device, sizeof grid);
  for (int i = 1; i < rows - 1; ++i)
    for (int j = 1; j < cols - 1; ++j) {
      const double* const at = grid + i * cols + j;
      next[i * cols + j] = 0.25 * (at[-1] + at[1] + at[-cols] + at[cols]);
    }
  copy(on_device, next, sizeof next);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  double* const u = allocate(sizeof grid);
  for (int i = 0; i < rows * cols; ++i) grid[i] = i % 97 + rank;
  copy(u, grid, sizeof grid);

  MPI_Datatype column;
  MPI_Type_vector(rows, 1, cols, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  for (int s = 0; s < steps; ++s) {
    MPI_Request requests[4];
    MPI_Irecv(u, 1, column, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(u + cols - 1, 1, column, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(u + cols - 2, 1, column, right, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(u + 1, 1, column, left, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    step(u);
  }
  double sum = 0, total = 0;
  copy(grid, u, sizeof grid);
  for (int i = 0; i < rows * cols; ++i) sum += grid[i];
  MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("sum after %d steps: %.6f\n", steps, total);
  MPI_Type_free(&column);
  MPI_Finalize();
  return 0;
}
