// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/receiving.h: receives of all kinds, each of which knows envelopes.
#pragma once

#include "mpi/sending.h"

namespace quadriga::mpi {

/// A receive as the program wrote it.
struct ReceiveCall {
  void* buffer = nullptr;
  WideCount count = 0;
  MPI_Datatype datatype = MPI_DATATYPE_NULL;
  int source = MPI_PROC_NULL;
  int tag = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};

// The whole of each call; only where some rank may send envelopes.
int receive(Function function, const ReceiveCall& call, MPI_Status* status) noexcept;
int ireceive(Function function, const ReceiveCall& call, MPI_Request* request) noexcept;
int receive_init(const ReceiveCall& call, MPI_Request* request) noexcept;
int sendrecv(Function function, const SendCall& send, const ReceiveCall& receive,
             MPI_Status* status) noexcept;
int sendrecv_replace(const SendCall& call, int source, int tag, MPI_Status* status) noexcept;
// One request for both; its status is the receive's.
int isendrecv(const SendCall& send, const ReceiveCall& receive, MPI_Request* request) noexcept;
int isendrecv_replace(const SendCall& call, int source, int tag, MPI_Request* request) noexcept;

}  // namespace quadriga::mpi
