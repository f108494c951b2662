// SPDX-License-Identifier: BSD-3-Clause
// tests/mpi/check.h: what ends a program of these tests, on all its ranks.
#pragma once

#include <mpi.h>
#include <stdio.h>

/* Of a program that keeps its rank in `rank`. */
#define CHECK(what)                                                                 \
  do {                                                                              \
    if (!(what)) {                                                                  \
      fprintf(stderr, "rank %d, %s:%d: not %s\n", rank, __FILE__, __LINE__, #what); \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                 \
    }                                                                               \
  } while (0)
