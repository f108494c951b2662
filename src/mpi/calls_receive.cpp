// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_receive.cpp: MPI's receives, probes and starts of persistent requests.
#include <sched.h>

#include "mpi/aside.h"
#include "mpi/ending.h"
#include "mpi/receiving.h"

namespace quadriga::mpi {
namespace {

// A message that was matched for the program: under a handle of ours if it had to be opened.
MPI_Message handed_out(EarlyMessage&& found, MPI_Status& seen) {
  copy_status(found.status, seen);
  return found.opened ? keep_opened(std::move(found)) : found.message;
}

// A probe: body(MPI_Status&) has one also where the program wants none.
template <class Body>
int looking(MPI_Comm comm, MPI_Status* status, Body body) {
  return guarded(comm, [&] {
    look_after();
    MPI_Status own{};
    return body(*wanted(status, own));
  });
}

}  // namespace
}  // namespace quadriga::mpi

using namespace quadriga::mpi;

extern "C" {

int MPI_Recv(void* buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
             MPI_Status* status) {
  if (!taken.receives) return PMPI_Recv(buffer, count, datatype, source, tag, comm, status);
  return receive({buffer, count, datatype, source, tag, comm}, status);
}

int MPI_Irecv(void* buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (!taken.receives) return PMPI_Irecv(buffer, count, datatype, source, tag, comm, request);
  return ireceive({buffer, count, datatype, source, tag, comm}, request);
}

int MPI_Recv_init(void* buffer, int count, MPI_Datatype datatype, int source, int tag,
                  MPI_Comm comm, MPI_Request* request) {
  if (!taken.receives) return PMPI_Recv_init(buffer, count, datatype, source, tag, comm, request);
  return receive_init({buffer, count, datatype, source, tag, comm}, request);
}

int MPI_Start(MPI_Request* request) {
  RequestRecord* const record = record_of(*request);
  return record == nullptr ? PMPI_Start(request) : start(*record, request);
}

int MPI_Startall(int count, MPI_Request* requests) {
  if (!taken.receives) return PMPI_Startall(count, requests);
  for (int i = 0; i < count; ++i) {
    const int code = MPI_Start(&requests[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  if (!taken.receives) return PMPI_Iprobe(source, tag, comm, flag, status);
  return looking(comm, status, [&](MPI_Status& seen) -> int {
    *flag = 1;
    if (find_early(comm, source, tag, seen)) return MPI_SUCCESS;
    const int code = PMPI_Iprobe(source, tag, comm, flag, &seen);
    if (code == MPI_SUCCESS && *flag != 0 && !look_at(comm, seen)) *flag = 0;
    return code;
  });
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (!taken.receives) return PMPI_Probe(source, tag, comm, status);
  return looking(comm, status, [&](MPI_Status& seen) -> int {
    for (;;) {
      if (find_early(comm, source, tag, seen)) return MPI_SUCCESS;
      const int code = PMPI_Probe(source, tag, comm, &seen);
      if (code != MPI_SUCCESS || look_at(comm, seen)) return code;
    }
  });
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                MPI_Status* status) {
  if (!taken.receives) return PMPI_Improbe(source, tag, comm, flag, message, status);
  return looking(comm, status, [&](MPI_Status& seen) -> int {
    if (auto found = early_for(comm, source, tag)) {
      *flag = 1;
      *message = handed_out(std::move(*found), seen);
      return MPI_SUCCESS;
    }
    const int code = PMPI_Improbe(source, tag, comm, flag, message, &seen);
    if (code == MPI_SUCCESS && *flag != 0 && bytes_in(seen) == envelope_bytes)
      *message = handed_out(opened(comm, *message, seen), seen);
    return code;
  });
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  if (!taken.receives) return PMPI_Mprobe(source, tag, comm, message, status);
  return looking(comm, status, [&](MPI_Status& seen) -> int {
    if (auto found = early_for(comm, source, tag)) {
      *message = handed_out(std::move(*found), seen);
      return MPI_SUCCESS;
    }
    const int code = PMPI_Mprobe(source, tag, comm, message, &seen);
    if (code == MPI_SUCCESS && bytes_in(seen) == envelope_bytes)
      *message = handed_out(opened(comm, *message, seen), seen);
    return code;
  });
}

int MPI_Mrecv(void* buffer, int count, MPI_Datatype datatype, MPI_Message* message,
              MPI_Status* status) {
  if (!taken.receives) return PMPI_Mrecv(buffer, count, datatype, message, status);
  return guarded(MPI_COMM_WORLD, [&] {
    MPI_Status own{};
    MPI_Status& seen = *wanted(status, own);
    Incoming in(buffer, count, datatype);
    if (is_own_message(*message)) {
      EarlyMessage found = take_opened(*message);
      *message = MPI_MESSAGE_NULL;
      return found.receive(in, seen);
    }
    const int code = PMPI_Mrecv(in.buffer(), in.count(), in.datatype(), message, &seen);
    return code != MPI_SUCCESS ? code : raise(MPI_COMM_WORLD, in.finish(seen));
  });
}

int MPI_Imrecv(void* buffer, int count, MPI_Datatype datatype, MPI_Message* message,
               MPI_Request* request) {
  if (!taken.receives || *message == MPI_MESSAGE_NO_PROC)
    return PMPI_Imrecv(buffer, count, datatype, message, request);
  return guarded(MPI_COMM_WORLD, [&] {
    RecordPtr record = new_record();
    record->comm = MPI_COMM_WORLD;
    record->in = Incoming(buffer, count, datatype);
    if (datatype != MPI_DATATYPE_NULL) record->in.keep_type();
    int code = MPI_SUCCESS;
    if (is_own_message(*message)) {
      EarlyMessage found = take_opened(*message);
      *message = MPI_MESSAGE_NULL;
      record->code = found.receive(record->in, record->result);
      record->ready = true;
      code = idle_request(found.comm, request);
    } else {
      const Incoming& in = record->in;
      code = PMPI_Imrecv(in.buffer(), in.count(), in.datatype(), message, request);
    }
    if (code == MPI_SUCCESS) keep_record(*request, std::move(record));
    return code;
  });
}

}  // extern "C"
