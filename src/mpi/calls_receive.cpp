// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_receive.cpp: MPI's receives.
#include "mpi/aside.h"
#include "mpi/counts.h"
#include "mpi/ending.h"
#include "mpi/receiving.h"

using namespace quadriga::mpi;

extern "C" {

int FORM(MPI_Recv)(void* buffer, Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Status* status) {
  if (!taken.receives) return FORM(PMPI_Recv)(buffer, count, datatype, source, tag, comm, status);
  return receive(Function::recv, {buffer, count, datatype, source, tag, comm}, status);
}

int FORM(MPI_Irecv)(void* buffer, Count count, MPI_Datatype datatype, int source, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives) return FORM(PMPI_Irecv)(buffer, count, datatype, source, tag, comm, request);
  return ireceive(Function::irecv, {buffer, count, datatype, source, tag, comm}, request);
}

int FORM(MPI_Recv_init)(void* buffer, Count count, MPI_Datatype datatype, int source, int tag,
                        MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives)
    return FORM(PMPI_Recv_init)(buffer, count, datatype, source, tag, comm, request);
  return receive_init({buffer, count, datatype, source, tag, comm}, request);
}

int FORM(MPI_Mrecv)(void* buffer, Count count, MPI_Datatype datatype, MPI_Message* message,
                    MPI_Status* status) {
  if (!taken.receives) return FORM(PMPI_Mrecv)(buffer, count, datatype, message, status);
  return guarded(MPI_COMM_WORLD, [&] {
    MPI_Status own{};
    MPI_Status& seen = *wanted(status, own);
    check_switch(Function::mrecv, buffer, count, datatype);
    Incoming in(buffer, count, datatype);
    if (is_own_message(*message)) {
      EarlyMessage found = take_opened(*message);
      *message = MPI_MESSAGE_NULL;
      return found.receive(in, seen);
    }
    const int code = WIDEST(PMPI_Mrecv)(in.buffer(), in.count(), in.datatype(), message, &seen);
    return code != MPI_SUCCESS ? code : raise(MPI_COMM_WORLD, in.finish(seen));
  });
}

int FORM(MPI_Imrecv)(void* buffer, Count count, MPI_Datatype datatype, MPI_Message* message,
                     MPI_Request* request) {
  if (!taken.receives || *message == MPI_MESSAGE_NO_PROC)
    return FORM(PMPI_Imrecv)(buffer, count, datatype, message, request);
  return guarded(MPI_COMM_WORLD, [&] {
    check_switch(Function::imrecv, buffer, count, datatype);
    RecordPtr record = new_record();
    record->comm = MPI_COMM_WORLD;
    record->in = Incoming(buffer, count, datatype);
    record->in.outlive_type();
    int code = MPI_SUCCESS;
    if (is_own_message(*message)) {
      EarlyMessage found = take_opened(*message);
      *message = MPI_MESSAGE_NULL;
      record->code = found.receive(record->in, record->result);
      record->ready = true;
      code = idle_request(found.comm, request);
    } else {
      const Incoming& in = record->in;
      code = WIDEST(PMPI_Imrecv)(in.buffer(), in.count(), in.datatype(), message, request);
    }
    if (code == MPI_SUCCESS) keep_record(*request, std::move(record));
    return code;
  });
}

}  // extern "C"
