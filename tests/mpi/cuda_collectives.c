// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/cuda_collectives.c: MPI_Bcast and MPI_Allreduce of memory from cudaMalloc, each rank's
// on a GPU of its own, checked; prints the least time of several calls of each.
//
// usage: cuda_collectives [BYTES]  (256 MiB)
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { CALLS = 8 };
static int rank, size;
static float *from, *into, *host;
static size_t count;

static void fill(float* device, float value) {
  for (size_t i = 0; i < count; ++i) host[i] = value + (float)(i % 1024);
  CHECK(cudaMemcpy(device, host, count * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess);
}
static void check(const float* device, float value, float factor) {
  CHECK(cudaMemcpy(host, device, count * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess);
  for (size_t i = 0; i < count; ++i) CHECK(host[i] == value + factor * (float)(i % 1024));
}

static void timed(const char* name, int reduces) {
  double least = 1e9;
  for (int i = 0; i < CALLS; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (reduces)
      MPI_Allreduce(from, into, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    else
      MPI_Bcast(from, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    const double took = MPI_Wtime() - begin;
    if (took < least) least = took;
  }
  const double bytes = (double)count * sizeof(float);
  if (rank == 0)
    printf("%s: %.0f bytes on %d ranks in %.1f us, %.1f GB/s\n", name, bytes, size, least * 1e6,
           bytes / least / 1e9);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0);
  CHECK(cudaSetDevice(rank % devices) == cudaSuccess);
  const size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)256 << 20;
  count = bytes / sizeof(float);
  host = malloc(bytes);
  CHECK(cudaMalloc((void**)&from, bytes) == cudaSuccess);
  CHECK(cudaMalloc((void**)&into, bytes) == cudaSuccess);
  fill(from, (float)rank);
  MPI_Bcast(from, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
  check(from, 0, 1);
  fill(from, (float)rank);
  MPI_Allreduce(from, into, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  check(into, (float)(size * (size - 1) / 2), (float)size);
  timed("MPI_Bcast", 0);
  timed("MPI_Allreduce", 1);
  MPI_Finalize();
  return 0;
}
