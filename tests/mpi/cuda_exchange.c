// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/cuda_exchange.c: messages and collectives of memory from cudaMalloc, checked; prints
// the rate one way between two ranks beside that of a copy on the device, and that to receives that
// were posted before, as `quadriga-bench device-messages` measures it.
#include <cuda_runtime_api.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int rank, size;
static void* device(size_t bytes) {
  void* made = NULL;
  CHECK(cudaMalloc(&made, bytes) == cudaSuccess);
  return made;
}
static void copy(void* to, const void* of, size_t bytes) {
  CHECK(cudaMemcpy(to, of, bytes, cudaMemcpyDefault) == cudaSuccess);
}

// Sizes from one element on, odd ones too; into devices, and into the host.
static void sizes(void) {
  enum { MOST = 3000017 };
  double* const host = malloc(MOST * sizeof(double));
  double *const from = device(MOST * sizeof(double)), *const into = device(MOST * sizeof(double));
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < MOST; ++i) host[i] = i + rank;
  copy(from, host, MOST * sizeof(double));
  for (int count = 1; count <= MOST; count = count * 3 + 1) {
    MPI_Status status;
    int got = 0;
    MPI_Sendrecv(from, count, MPI_DOUBLE, next, 0, into, MOST, MPI_DOUBLE, before, 0,
                 MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_DOUBLE, &got);
    CHECK(got == count);
    copy(host, into, (size_t)count * sizeof(double));
    for (int i = 0; i < count; ++i) CHECK(host[i] == i + before);
    MPI_Request requests[2];
    MPI_Irecv(host, MOST, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from, count, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i) CHECK(host[i] == i + before);
  }
  // Columns, from a device to a device, and a sum.
  MPI_Datatype columns;
  MPI_Type_vector(1000, 4, 2000, MPI_DOUBLE, &columns);
  MPI_Type_commit(&columns);
  MPI_Sendrecv(from + 8, 1, columns, next, 2, into, 4000, MPI_DOUBLE, before, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  copy(host, into, 4000 * sizeof(double));
  for (int i = 0; i < 4000; ++i) CHECK(host[i] == i / 4 * 2000 + i % 4 + 8 + before);
  MPI_Allreduce(from, into, 100000, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  copy(host, into, 100000 * sizeof(double));
  for (int i = 0; i < 100000; ++i) CHECK(host[i] == (double)i * size + size * (size - 1) / 2);
  if (rank == 0) printf("sizes: right\n");
  CHECK(cudaFree(from) == cudaSuccess && cudaFree(into) == cudaSuccess);
  free(host);
}

static void rate(size_t bytes, MPI_Datatype type, int count, const char* what) {
  char* const data = device(2 * bytes);
  double best = 1e9, beside = 1e9;
  for (int i = 0; i < 12; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (rank == 0) {
      MPI_Send(data, count, type, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(NULL, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const double took = MPI_Wtime() - begin;
      if (took < best) best = took;
      const double copies = MPI_Wtime();
      cudaMemcpy(data + bytes, data, bytes, cudaMemcpyDeviceToDevice);
      cudaDeviceSynchronize();
      if (MPI_Wtime() - copies < beside) beside = MPI_Wtime() - copies;
    } else if (rank == 1) {
      MPI_Recv(data, count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(NULL, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) {
    int payload = 0;
    MPI_Type_size(type, &payload);
    const double all = (double)payload * count;
    printf("%s: %.0f bytes in %.1f us, %.1f GB/s; a copy of %zu bytes beside it %.1f GB/s\n", what,
           all, best * 1e6, all / best / 1e9, bytes, (double)bytes / beside / 1e9);
  }
  cudaFree(data);
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

// The sender's time of a message whose receive was posted before: the median.
static void posted(size_t bytes) {
  enum { ROUNDS = 21 };
  char* const data = device(bytes);
  double seconds[ROUNDS];
  for (int i = -1; i < ROUNDS; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 1) MPI_Irecv(data, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (rank == 0) MPI_Send(data, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (i >= 0) seconds[i] = MPI_Wtime() - begin;
  }
  qsort(seconds, ROUNDS, sizeof *seconds, compare);
  const double median = seconds[ROUNDS / 2];
  if (rank == 0)
    printf("posted: %zu bytes in %.1f us (%.1f to %.1f), %.1f GB/s\n", bytes, median * 1e6,
           seconds[0] * 1e6, seconds[ROUNDS - 1] * 1e6, (double)bytes / median / 1e9);
  cudaFree(data);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0);
  CHECK(cudaSetDevice(rank % devices) == cudaSuccess);
  sizes();
  MPI_Datatype halves;
  MPI_Type_vector(4096, 4096, 8192, MPI_DOUBLE, &halves);
  MPI_Type_commit(&halves);
  for (size_t bytes = 16; bytes <= (size_t)256 << 20; bytes *= 16)
    rate(bytes, MPI_BYTE, (int)bytes, "contiguous");
  rate((size_t)256 << 20, MPI_BYTE, 256 << 20, "contiguous");
  rate((size_t)256 << 20, halves, 1, "halves of columns");
  for (int shift = 24; shift <= 30; shift += 2) posted((size_t)1 << shift);
  MPI_Finalize();
  return 0;
}
