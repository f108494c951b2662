// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/collectives.c: every collective on buffers that some ranks have on devices and others
// on the host, with datatypes that have gaps; prints sums of all results.
#include "summed.h"

#ifndef COUNT  // See large_form.h.
#define COUNT int
#define PLACE int
#endif

// Combines as a sum, of vectors with gaps too.
static void add(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((double*)inout)[i] += ((double*)in)[i];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  state = (unsigned)atoi(argv[1]) * 2654435761u;
  MPI_Comm all = MPI_COMM_WORLD;
  MPI_Datatype gaps, one = MPI_DOUBLE;
  MPI_Type_vector(5, 2, 3, one, &gaps);
  MPI_Type_commit(&gaps);
  MPI_Op sum;
  MPI_Op_create(add, 1, &sum);
  COUNT counts[16];
  PLACE places[16], offsets[16];
  MPI_Aint far[16];
  MPI_Datatype types[16];
  for (int i = 0; i < 16; ++i) {
    counts[i] = 3 + i % 4;
    places[i] = i * 9 + 2;
    offsets[i] = (PLACE)sizeof(double) * (i * 400 + 1);
    far[i] = offsets[i];
    types[i] = gaps;
  }
  COUNT twos[16];
  PLACE pairs[16];
  for (int i = 0; i < 16; ++i) {
    twos[i] = 2;
    pairs[i] = 40 * i;
  }
  for (int root = 0; root < size; root += 2) {
    CALL_IN_PLACE(MPI_Bcast, into, 7, gaps, root, all);
    CALL(MPI_Reduce, from, into, 300, one, MPI_SUM, root, all);
    CALL_IN_PLACE(MPI_Reduce, rank == root ? MPI_IN_PLACE : from, into, 50, one, MPI_MAX, root, all);
    CALL(MPI_Gather, from, 3, gaps, into, 3, gaps, root, all);
    CALL_IN_PLACE(MPI_Gather, rank == root ? MPI_IN_PLACE : from, 40, one, into, 40, one, root, all);
    CALL(MPI_Gatherv, from, counts[rank], one, into, counts, places, one, root, all);
    CALL(MPI_Scatter, from, 30, one, into, 3, gaps, root, all);
    CALL(MPI_Scatterv, from, counts, places, one, into, counts[rank], one, root, all);
    CALL(MPI_Scatter, from, 20, one, rank == root ? MPI_IN_PLACE : into, 20, one, root, all);
  }
  CALL(MPI_Allreduce, from, into, 1000, one, sum, all);
  CALL_IN_PLACE(MPI_Allreduce, MPI_IN_PLACE, into, 100, one, MPI_MIN, all);
  CALL(MPI_Scan, from, into, 100, one, MPI_SUM, all);
  CALL(MPI_Exscan, from, into, 100, one, MPI_SUM, all);
  CALL(MPI_Reduce_scatter, from, into, counts, one, MPI_SUM, all);
  CALL(MPI_Reduce_scatter_block, from, into, 11, one, MPI_SUM, all);
  CALL(MPI_Allgather, from, 4, gaps, into, 40, one, all);
  CALL_IN_PLACE(MPI_Allgather, MPI_IN_PLACE, 0, one, into, 40, one, all);
  CALL(MPI_Allgatherv, from, counts[rank], one, into, counts, places, one, all);
  CALL(MPI_Alltoall, from, 2, gaps, into, 20, one, all);
  CALL_IN_PLACE(MPI_Alltoall, MPI_IN_PLACE, 0, one, into, 5, one, all);
  CALL(MPI_Alltoallv, from, twos, pairs, one, into, twos, pairs, one, all);
  CALL(MPI_Alltoallw, from, twos, offsets, types, into, twos, offsets, types, all);
  // A ring, and a line, whose ends lack a neighbour: what would come from it stays as it was.
  for (int wraps = 1; wraps >= 0; --wraps) {
    MPI_Comm line;
    MPI_Cart_create(all, 1, &size, &wraps, 0, &line);
    CALL(MPI_Neighbor_allgather, from, 3, gaps, into, 3, gaps, line);
    CALL(MPI_Neighbor_allgatherv, from, 2, one, into, twos, pairs, one, line);
    CALL(MPI_Neighbor_alltoall, from, 2, gaps, into, 20, one, line);
    CALL(MPI_Neighbor_alltoallv, from, twos, pairs, one, into, twos, pairs, one, line);
    CALL(MPI_Neighbor_alltoallw, from, twos, far, types, into, twos, far, types, line);
    MPI_Comm_free(&line);
  }
  MPI_Finalize();
  return 0;
}
