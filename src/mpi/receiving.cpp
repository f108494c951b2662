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
  record->in.outlive_type();
  return record;
}

// Whether a receive is MPI's alone: it is switched off, so nobody sends envelopes to this rank.
bool is_left(Function function, const ReceiveCall& call) {
  check_switch(function, call.buffer, call.count, call.datatype);
  return !taken.opens && !world->switches.takes(function);
}

int native_ireceive(const ReceiveCall& call, MPI_Request* request) noexcept {
  return WIDEST(PMPI_Irecv)(call.buffer, call.count, call.datatype, call.source, call.tag,
                            call.comm, request);
}

// What sendrecv_replace() sends, for what comes takes its place.
struct Copied {
  std::unique_ptr<std::byte[]> bytes;
  SendCall call;
};
Copied copied(const SendCall& call) {
  if (call.count <= 0 || call.datatype == MPI_DATATYPE_NULL || call.destination < 0)
    return {nullptr, call};
  Outgoing copy;
  copy.place =
      Destination{const_cast<void*>(call.buffer), call.count, datatype_of(call.datatype)}.place();
  Copied made{copy.packed(), call};
  made.call.buffer = made.bytes.get();
  made.call.count = static_cast<WideCount>(copy.bytes());
  made.call.datatype = MPI_BYTE;
  return made;
}

ReceiveCall replacing(const SendCall& call, int source, int tag) noexcept {
  return {const_cast<void*>(call.buffer), call.count, call.datatype, source, tag, call.comm};
}

// MPI_Isendrecv, which keeps a copy of what it sends if there is one.
int begin_pair(Function function, const SendCall& send, const ReceiveCall& call,
               std::unique_ptr<std::byte[]> copy, MPI_Request* request) {
  RecordPtr record = new_record();
  record->comm = call.comm;
  record->packed = std::move(copy);
  // Refusals come before anything is posted: a receive that is withdrawn may have got its message.
  check_switch(function, call.buffer, call.count, call.datatype);
  if (taken.sends) static_cast<void>(outgoing_of(function, send));
  auto& [sent, received] = record->pair;
  int code = ireceive(function, call, &received);
  if (code != MPI_SUCCESS) return code;
  code = isend(function, SendMode::standard, send, &sent);
  if (code == MPI_SUCCESS) code = idle_request(call.comm, request);
  if (code != MPI_SUCCESS) {
    MPI_Cancel(&received);
    MPI_Request_free(&received);
    return code;
  }
  record->ready = true;
  keep_record(*request, std::move(record));
  return MPI_SUCCESS;
}

}  // namespace

int receive(Function function, const ReceiveCall& call, MPI_Status* status) noexcept {
  return guarded(call.comm, [&] {
    look_after();
    if (is_left(function, call))
      return WIDEST(PMPI_Recv)(call.buffer, call.count, call.datatype, call.source, call.tag,
                               call.comm, status);
    MPI_Status own{};
    MPI_Status& seen = *wanted(status, own);
    Incoming in(call.buffer, call.count, call.datatype);
    if (auto found = early_for(call.comm, call.source, call.tag)) return found->receive(in, seen);
    const int code = WIDEST(PMPI_Recv)(in.buffer(), in.count(), in.datatype(), call.source,
                                       call.tag, call.comm, &seen);
    if (code != MPI_SUCCESS) return code;
    const int end = in.finish(seen);
    return end == MPI_SUCCESS ? end : raise(call.comm, end);
  });
}

int ireceive(Function function, const ReceiveCall& call, MPI_Request* request) noexcept {
  // Nothing comes from nobody, and the handle may be one of many alike.
  if (call.source == MPI_PROC_NULL) return native_ireceive(call, request);
  return guarded(call.comm, [&] {
    if (is_left(function, call)) return native_ireceive(call, request);
    RecordPtr record = record_for(call);
    const Incoming& in = record->in;
    int code = MPI_SUCCESS;
    if (auto found = early_for(call.comm, call.source, call.tag)) {
      record->code = found->receive(record->in, record->result);
      record->ready = true;
      code = idle_request(call.comm, request);
    } else {
      code = WIDEST(PMPI_Irecv)(in.buffer(), in.count(), in.datatype(), call.source, call.tag,
                                call.comm, request);
    }
    if (code == MPI_SUCCESS) keep_record(*request, std::move(record));
    return code;
  });
}

int receive_init(const ReceiveCall& call, MPI_Request* request) noexcept {
  return guarded(call.comm, [&] {
    if (is_left(Function::recv_init, call))
      return WIDEST(PMPI_Recv_init)(call.buffer, call.count, call.datatype, call.source, call.tag,
                                    call.comm, request);
    RecordPtr record = record_for(call);
    record->persistent = true;
    record->active = false;
    const Incoming& in = record->in;
    const int code = WIDEST(PMPI_Recv_init)(in.buffer(), in.count(), in.datatype(), call.source,
                                            call.tag, call.comm, request);
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
      const int code = WIDEST(PMPI_Sendrecv)(
          send.buffer, send.count, send.datatype, send.destination, send.tag, in.buffer(),
          in.count(), in.datatype(), call.source, call.tag, call.comm, &seen);
      if (code != MPI_SUCCESS) return code;
      const int end = in.finish(seen);
      return end == MPI_SUCCESS ? end : raise(call.comm, end);
    }
    check_switch(function, call.buffer, call.count, call.datatype);  // Before anything is sent.
    MPI_Request request = MPI_REQUEST_NULL;
    const int begun = isend(function, SendMode::standard, send, &request);
    if (begun != MPI_SUCCESS) return begun;
    const int received = receive(function, call, &seen);
    const int sent = MPI_Wait(&request, MPI_STATUS_IGNORE);
    return received != MPI_SUCCESS ? received : sent;
  });
}

int sendrecv_replace(const SendCall& call, int source, int tag, MPI_Status* status) noexcept {
  return guarded(call.comm, [&] {
    const Copied copy = copied(call);
    return sendrecv(Function::sendrecv_replace, copy.call, replacing(call, source, tag), status);
  });
}

int isendrecv(const SendCall& send, const ReceiveCall& call, MPI_Request* request) noexcept {
  return guarded(call.comm,
                 [&] { return begin_pair(Function::isendrecv, send, call, nullptr, request); });
}

int isendrecv_replace(const SendCall& call, int source, int tag, MPI_Request* request) noexcept {
  return guarded(call.comm, [&] {
    Copied copy = copied(call);
    return begin_pair(Function::isendrecv_replace, copy.call, replacing(call, source, tag),
                      std::move(copy.bytes), request);
  });
}

}  // namespace quadriga::mpi
