// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_large.cpp: all functions with counts once more, with large ones (MPI_Send_c and so
// on), where the MPI has them (docs/decisions/0248-large-counts.md).
#include "mpi/native.h"

#ifdef QUADRIGA_WIDE_COUNTS
#define QUADRIGA_LARGE_FORM
#include "mpi/calls_exchange.cpp"
#include "mpi/calls_neighbor.cpp"
#include "mpi/calls_nonblocking.cpp"
#include "mpi/calls_one_sided.cpp"
#include "mpi/calls_pack.cpp"
#include "mpi/calls_persistent.cpp"
#include "mpi/calls_receive.cpp"
#include "mpi/calls_reduce.cpp"
#include "mpi/calls_refused.cpp"
#include "mpi/calls_send.cpp"
#endif
