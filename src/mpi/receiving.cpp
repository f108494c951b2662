// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/receiving.cpp: receives, and sends with a receive beside them.
#include "mpi/receiving.h"

#include "mpi/aside.h"
#include "mpi/ending.h"

namespace quadriga::mpi {
namespace {

RecordPtr record_for(const ReceiveCall& call) {
  RecordPtr record = new_record();
  record->comm = call.comm;
  record->source = call.source;
  record->tag = call.tag;
  record->in = Incoming(call.buffer, call.count, call.datatype);
  if (call.datatype != MPI_DATATYPE_NULL) record->in.keep_type();
  return record;
}

}  // namespace

int receive(const ReceiveCall& call, MPI_Status* status) noexcept {
  return guarded(call.comm, [&] {
    look_after();
    MPI_Status own{};
    MPI_Status& seen = *wanted(status, own);
    Incoming in(call.buffer, call.count, call.datatype);
    if (auto found = early_for(call.comm, call.source, call.tag)) return found->receive(in, seen);
    const int code =
        PMPI_Recv(in.buffer(), in.count(), in.datatype(), call.source, call.tag, call.comm, &seen);
    if (code != MPI_SUCCESS) return code;
    const int end = in.finish(seen);
    return end == MPI_SUCCESS ? end : raise(call.comm, end);
  });
}

int ireceive(const ReceiveCall& call, MPI_Request* request) noexcept {
  // Nothing comes from nobody, and the handle may be one of many alike.
  if (call.source == MPI_PROC_NULL)
    return PMPI_Irecv(call.buffer, call.count, call.datatype, call.source, call.tag, call.comm,
                      request);
  return guarded(call.comm, [&] {
    RecordPtr record = record_for(call);
    const Incoming& in = record->in;
    int code = MPI_SUCCESS;
    if (auto found = early_for(call.comm, call.source, call.tag)) {
      record->code = found->receive(record->in, record->result);
      record->ready = true;
      code = idle_request(call.comm, request);
    } else {
      code = PMPI_Irecv(in.buffer(), in.count(), in.datatype(), call.source, call.tag, call.comm,
                        request);
    }
    if (code == MPI_SUCCESS) keep_record(*request, std::move(record));
    return code;
  });
}

int receive_init(const ReceiveCall& call, MPI_Request* request) noexcept {
  return guarded(call.comm, [&] {
    RecordPtr record = record_for(call);
    record->persistent = true;
    record->active = false;
    const Incoming& in = record->in;
    const int code = PMPI_Recv_init(in.buffer(), in.count(), in.datatype(), call.source, call.tag,
                                    call.comm, request);
    if (code == MPI_SUCCESS) keep_record(*request, std::move(record));
    return code;
  });
}

int sendrecv(Function function, const SendCall& send, const ReceiveCall& call,
             MPI_Status* status) noexcept {
  return guarded(call.comm, [&] {
    look_after();
    const bool ours = taken.sends && outgoing_of(function, send).way != SendWay::native;
    const bool device = is_on_device(call.buffer, call.count, call.datatype);
    MPI_Status own{};
    MPI_Status& seen = *wanted(status, own);
    if (!ours && !device && early_messages.load(std::memory_order_acquire) == 0) {
      Incoming in(call.buffer, call.count, call.datatype);
      const int code = PMPI_Sendrecv(send.buffer, send.count, send.datatype, send.destination,
                                     send.tag, in.buffer(), in.count(), in.datatype(), call.source,
                                     call.tag, call.comm, &seen);
      if (code != MPI_SUCCESS) return code;
      const int end = in.finish(seen);
      return end == MPI_SUCCESS ? end : raise(call.comm, end);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    const int begun = isend(function, SendMode::standard, send, &request);
    if (begun != MPI_SUCCESS) return begun;
    const int received = receive(call, &seen);
    const int sent = MPI_Wait(&request, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
  });
}

int sendrecv_replace(const SendCall& call, int source, int tag, MPI_Status* status) noexcept {
  return guarded(call.comm, [&] {
    auto* const buffer = const_cast<void*>(call.buffer);
    const ReceiveCall into{buffer, call.count, call.datatype, source, tag, call.comm};
    if (call.count <= 0 || call.datatype == MPI_DATATYPE_NULL || call.destination < 0)
      return sendrecv(Function::sendrecv_replace, call, into, status);
    // The old elements leave as a copy.
    Outgoing copy;
    copy.place = Destination{buffer, call.count, datatype_of(call.datatype)}.place();
    const auto packed = copy.packed();
    return sendrecv(Function::sendrecv_replace,
                    {packed.get(), static_cast<int>(copy.bytes()), MPI_BYTE, call.destination,
                     call.tag, call.comm},
                    into, status);
  });
}

}  // namespace quadriga::mpi
