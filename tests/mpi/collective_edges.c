// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/collective_edges.c: collectives at the edges of MPI, on memory of devices and of the
// host: no elements, bounds below zero, absolute addresses, operations of the program's own that
// don't commute, all that may be in place, and wrong arguments. Prints sums of all results.
//
// usage: collective_edges SEED
#include "summed.h"

static MPI_Comm all = MPI_COMM_WORLD;
static const MPI_Datatype one = MPI_DOUBLE;
enum { MIDDLE = LENGTH / 2, MOST = 16 };

static void no_elements(void) {
  int none[MOST] = {0}, some[MOST], places[MOST];
  MPI_Datatype empty, types[MOST];
  MPI_Type_vector(0, 3, 5, one, &empty);
  MPI_Type_commit(&empty);
  for (int i = 0; i < MOST; ++i) {
    some[i] = i % 2 == 0 ? 0 : 7;  // Some ranks have none.
    places[i] = 10 * i;
    types[i] = i % 2 == 0 ? empty : one;
  }
  CALL_IN_PLACE(MPI_Bcast, into, 0, one, 0, all);
  CALL_IN_PLACE(MPI_Bcast, into, 5, empty, size - 1, all);
  CALL(MPI_Reduce, from, into, 0, one, MPI_SUM, 0, all);
  CALL(MPI_Allreduce, from, into, 0, one, MPI_SUM, all);
  CALL(MPI_Gatherv, from, some[rank], one, into, some, places, one, 0, all);
  CALL(MPI_Scatterv, from, some, places, one, into, some[rank], one, 0, all);
  CALL(MPI_Allgatherv, from, some[rank], one, into, some, places, one, all);
  CALL(MPI_Alltoallv, from, none, places, one, into, none, places, one, all);
  int sent[MOST], received[MOST], at[MOST];
  for (int i = 0; i < MOST; ++i) {
    sent[i] = (i + rank) % 2 == 0 ? 0 : 7;
    received[i] = sent[i];
    at[i] = 80 * i;
  }
  CALL(MPI_Alltoallv, from, sent, places, one, into, received, places, one, all);
  for (int i = 0; i < MOST; ++i) types[i] = (i + rank) % 2 == 0 ? empty : one;
  CALL(MPI_Alltoallw, from, sent, at, types, into, received, at, types, all);
  CALL(MPI_Reduce_scatter, from, into, some, one, MPI_SUM, all);
  MPI_Type_free(&empty);
}

static void bounds_below_zero(void) {
  MPI_Datatype vector, shifted, back, types[MOST];
  MPI_Type_vector(3, 2, 5, one, &vector);
  MPI_Type_create_resized(vector, -24, 160, &shifted);
  MPI_Type_create_hvector(4, 1, -40, one, &back);
  MPI_Type_commit(&shifted);
  MPI_Type_commit(&back);
  int counts[MOST], places[MOST], at[MOST];
  for (int i = 0; i < MOST; ++i) {
    counts[i] = 2 + i % 3;
    places[i] = 6 * i;
    at[i] = 1280 * i;
  }
  const MPI_Datatype both[2] = {shifted, back};
  for (int k = 0; k < 2; ++k) {
    const MPI_Datatype type = both[k];
    for (int i = 0; i < MOST; ++i) types[i] = type;
    CALL_IN_PLACE(MPI_Bcast, into + MIDDLE, 9, type, size - 1, all);
    CALL(MPI_Gather, from + MIDDLE, 3, type, into + MIDDLE, 3, type, 0, all);
    CALL(MPI_Scatter, from + MIDDLE, 3, type, into + MIDDLE, 3, type, 0, all);
    CALL(MPI_Allgather, from + MIDDLE, 2, type, into + MIDDLE, 2, type, all);
    CALL(MPI_Allgatherv, from + MIDDLE, counts[rank], type, into + MIDDLE, counts, places, type,
         all);
    CALL(MPI_Alltoall, from + MIDDLE, 2, type, into + MIDDLE, 2, type, all);
    for (int i = 0; i < MOST; ++i) counts[i] = 2;
    CALL(MPI_Alltoallw, from + MIDDLE, counts, at, types, into + MIDDLE, counts, at, types, all);
  }
  MPI_Type_free(&vector);
  MPI_Type_free(&shifted);
  MPI_Type_free(&back);
}

// Two blocks of a buffer by their addresses.
static MPI_Datatype absolute(const double* buffer, int length) {
  int lengths[2] = {length, length + 3};
  MPI_Aint places[2];
  MPI_Datatype made;
  MPI_Get_address(buffer + MIDDLE, &places[0]);
  MPI_Get_address(buffer + 5, &places[1]);
  MPI_Type_create_hindexed(2, lengths, places, one, &made);
  MPI_Type_commit(&made);
  return made;
}

static void addresses(void) {
  const int lengths[2] = {4, 1000};
  for (int i = 0; i < 2; ++i) {
    begin();
    copy(host, from);
    copy(into, host);
    MPI_Datatype type = absolute(into, lengths[i]);
    MPI_Bcast(MPI_BOTTOM, 1, type, 0, all);
    end("MPI_Bcast at addresses");
    MPI_Type_free(&type);
    begin();
    type = absolute(from, lengths[i]);
    MPI_Gather(MPI_BOTTOM, 1, type, into, 2 * lengths[i] + 3, one, size - 1, all);
    end("MPI_Gather at addresses");
    MPI_Type_free(&type);
  }
}

// (a, b) after (c, d) is (a c, b c + d) modulo 101: the order counts, and all is exact.
static void compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  const double* first = in;
  double* second = inout;
  (void)type;
  for (int i = 0; i < 2 * *length; i += 2) {
    const long c = (long)second[i], d = (long)second[i + 1];
    second[i] = (double)((long)first[i] * c % 101);
    second[i + 1] = (double)(((long)first[i + 1] * c + d) % 101);
  }
}

static void own_operations(void) {
  MPI_Op operation;
  MPI_Datatype pair;
  int counts[MOST];
  for (int i = 0; i < MOST; ++i) counts[i] = 1 + i % 3;
  MPI_Type_contiguous(2, one, &pair);
  MPI_Type_commit(&pair);
  MPI_Op_create(compose, 0, &operation);
  CALL(MPI_Reduce, from, into, 300, pair, operation, size - 1, all);
  CALL(MPI_Allreduce, from, into, 300, pair, operation, all);
  CALL(MPI_Scan, from, into, 40, pair, operation, all);
  CALL(MPI_Exscan, from, into, 40, pair, operation, all);
  CALL(MPI_Reduce_scatter, from, into, counts, pair, operation, all);
  CALL(MPI_Reduce_scatter_block, from, into, 6, pair, operation, all);
  MPI_Op_free(&operation);
  MPI_Type_free(&pair);
}

static void in_place(void) {
  int counts[MOST], places[MOST], bytes[MOST], twos[MOST];
  MPI_Datatype types[MOST];
  for (int i = 0; i < MOST; ++i) {
    counts[i] = 3 + i % 4;
    places[i] = 9 * i + 2;
    bytes[i] = 8 * places[i];
    twos[i] = 2;
    types[i] = one;
  }
  const int root = size - 1, is_root = rank == root;
  CALL_IN_PLACE(MPI_Gatherv, is_root ? MPI_IN_PLACE : from, counts[rank], one, into, counts, places, one,
         root, all);
  CALL_IN_PLACE(MPI_Scatterv, from, counts, places, one, is_root ? MPI_IN_PLACE : into, counts[rank], one,
         root, all);
  CALL_IN_PLACE(MPI_Allgatherv, MPI_IN_PLACE, 0, one, into, counts, places, one, all);
  CALL_IN_PLACE(MPI_Alltoallv, MPI_IN_PLACE, NULL, NULL, one, into, twos, places, one, all);
  CALL_IN_PLACE(MPI_Alltoallw, MPI_IN_PLACE, NULL, NULL, NULL, into, twos, bytes, types, all);
  CALL_IN_PLACE(MPI_Scan, MPI_IN_PLACE, into, 50, one, MPI_SUM, all);
  CALL_IN_PLACE(MPI_Exscan, MPI_IN_PLACE, into, 50, one, MPI_SUM, all);
  CALL_IN_PLACE(MPI_Reduce_scatter, MPI_IN_PLACE, into, counts, one, MPI_SUM, all);
  CALL_IN_PLACE(MPI_Reduce_scatter_block, MPI_IN_PLACE, into, 11, one, MPI_SUM, all);
}

// The same on all ranks, so that none waits for another; what MPICH takes for right isn't here.
static void wrong_arguments(void) {
#define REFUSED(name, ...)                                        \
  do {                                                            \
    int class = MPI_SUCCESS;                                      \
    begin();                                                      \
    MPI_Error_class(name(__VA_ARGS__), &class);                   \
    printf("%d %s %s\n", rank, #name,                             \
           class == MPI_ERR_COUNT  ? "count"                      \
           : class == MPI_ERR_ROOT ? "root"                       \
           : class == MPI_ERR_TYPE ? "type"                       \
           : class == MPI_ERR_OP   ? "operation"                  \
           : class == MPI_SUCCESS  ? "not at all"                 \
                                   : "otherwise");                \
  } while (0)
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  REFUSED(MPI_Bcast, from, -1, one, 0, all);
  REFUSED(MPI_Bcast, from, 3000, one, size, all);
  REFUSED(MPI_Bcast, from, 3000, MPI_DATATYPE_NULL, 0, all);
  REFUSED(MPI_Reduce, from, into, 3000, one, MPI_OP_NULL, 0, all);
  REFUSED(MPI_Reduce, from, into, 3000, one, MPI_SUM, -7, all);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  state = (unsigned)atoi(argv[1]) * 2654435761u;
  no_elements();
  bounds_below_zero();
  addresses();
  own_operations();
  in_place();
  wrong_arguments();
  MPI_Finalize();
  return 0;
}
