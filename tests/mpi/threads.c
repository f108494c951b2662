// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/threads.c: the same messages at any level of MPI_Init_thread: by one thread, by several
// that take turns, by several at once. Prints sums, which are the same at all levels.
//
// usage: threads LEVEL, one of single, funneled, serialized, multiple
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { threads = 4, rounds = 12, most = 40000 };
static int rank, size, level;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static double sums[threads];

static void take_turn(void) {
  if (level == MPI_THREAD_SERIALIZED) pthread_mutex_lock(&turn);
}
static void end_turn(void) {
  if (level == MPI_THREAD_SERIALIZED) pthread_mutex_unlock(&turn);
}

static void exchange(int thread, int round, double* from, double* into) {
  const int sizes[4] = {1, 500, 3000, most / 2};
  const int count = sizes[(round + thread) % 4], tag = thread * 100 + round;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Request requests[2];
  MPI_Datatype type;
  int flag = 0;
  for (int i = 0; i < 2 * count; ++i) from[i] = rank + i % 7, into[i] = -1;
  take_turn();
  MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Irecv(into, 1, type, round % 2 ? left : MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(from, 1, type, right, tag, MPI_COMM_WORLD, &requests[1]);
  MPI_Type_free(&type);
  end_turn();
  while (!flag) {
    take_turn();
    MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    end_turn();
  }
  for (int i = 0; i < 2 * count; ++i) sums[thread] += into[i];
}

static void* work(void* number) {
  const int thread = (int)(size_t)number;
  double* const from = malloc(most * sizeof(double));
  double* const into = malloc(most * sizeof(double));
  for (int round = 0; round < rounds; ++round) exchange(thread, round, from, into);
  free(from);
  free(into);
  return NULL;
}

int main(int argc, char** argv) {
  const char* const names[4] = {"single", "funneled", "serialized", "multiple"};
  const int levels[4] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                         MPI_THREAD_MULTIPLE};
  pthread_t all[threads];
  int asked = 0;
  while (asked < 3 && strcmp(argv[1], names[asked]) != 0) ++asked;
  MPI_Init_thread(&argc, &argv, levels[asked], &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (level > levels[asked]) level = levels[asked];  // As the program promised.
  const int alone = level < MPI_THREAD_SERIALIZED;
  for (size_t i = 0; i < threads; ++i) {
    if (alone)
      work((void*)i);
    else
      pthread_create(&all[i], NULL, work, (void*)i);
  }
  for (int i = 0; i < threads && !alone; ++i) pthread_join(all[i], NULL);
  for (int i = 0; i < threads; ++i) printf("%d %d %.0f\n", rank, i, sums[i]);
  MPI_Finalize();
  return 0;
}
