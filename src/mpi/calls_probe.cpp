// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/calls_probe.cpp: MPI's probes, and starts of persistent requests.
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

int MPI_Start(MPI_Request* request) {
  if (!taken.receives) return PMPI_Start(request);
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
  if (!taken.opens) return PMPI_Iprobe(source, tag, comm, flag, status);
  return looking(comm, status, [&](MPI_Status& seen) -> int {
    *flag = 1;
    if (find_early(comm, source, tag, seen)) return MPI_SUCCESS;
    const int code = PMPI_Iprobe(source, tag, comm, flag, &seen);
    if (code == MPI_SUCCESS && *flag != 0 && !look_at(comm, seen)) *flag = 0;
    return code;
  });
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (!taken.opens) return PMPI_Probe(source, tag, comm, status);
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
  if (!taken.opens) return PMPI_Improbe(source, tag, comm, flag, message, status);
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
  if (!taken.opens) return PMPI_Mprobe(source, tag, comm, message, status);
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

}  // extern "C"
