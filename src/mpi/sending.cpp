// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/sending.cpp: sends of all modes, blocking, non-blocking and persistent.
#include "mpi/sending.h"

#include <quadriga/error.h>

#include "mpi/device_buffers.h"
#include "mpi/ending.h"
#include "mpi/requests.h"

namespace quadriga::mpi {
namespace {

SendCall with_bytes(const SendCall& call, const void* data, std::int64_t bytes) {
  return {data, static_cast<WideCount>(bytes), MPI_BYTE, call.destination, call.tag, call.comm};
}

bool is_synchronous(Function function) noexcept {
  return function == Function::ssend || function == Function::issend ||
         function == Function::ssend_init;
}

// Whether a send may not be MPI's alone.
bool may_be_ours(SendMode mode) noexcept {
  return taken.sends || (mode == SendMode::synchronous && taken.receives);
}

// Whether a send goes as the program wrote it, as most on the host's memory do: known at once.
bool is_plain(SendMode mode, const SendCall& call) {
  return mode != SendMode::synchronous && !world->switches.host &&
         !is_on_device(call.buffer, call.count, call.datatype);
}

// No MPI buffers messages of this size: a standard send of them ends with its receive. So does that
// of their envelope then, and nothing is copied aside while no receive has begun.
constexpr std::int64_t unbuffered_bytes = 1 << 20;

// How MPI sends an envelope, or what stands in place of the program's buffer.
SendMode mode_of(SendMode mode, const Outgoing& out) noexcept {
  const bool waits =
      mode == SendMode::standard && out.way == SendWay::envelope && out.bytes() >= unbuffered_bytes;
  return waits ? SendMode::synchronous : mode;
}

// Whether a request ends later than MPI's send of its envelope, which is another request then.
bool has_inner(SendMode mode, const Outgoing& out) noexcept {
  return out.way == SendWay::envelope && mode_of(mode, out) == SendMode::synchronous;
}

// What MPI sends in place of the program's buffer; null for the buffer itself.
SendCall prepared(RequestRecord& record, const SendCall& call) {
  if (record.out.way == SendWay::envelope) {
    record.envelope = record.offer->envelope();
    return with_bytes(call, &record.envelope, envelope_bytes);
  }
  record.packed = record.out.packed();
  count(world->counters.small);
  return with_bytes(call, record.packed.get(), record.out.bytes());
}

// MPIs hand out one and the same handle for all sends that have ended at once. Such a request gets
// a handle of its own, which MPI knows as one that never starts.
void make_unique_handle(RequestRecord& record, MPI_Request* request) {
  int flag = 0;
  PMPI_Request_get_status(*request, &flag, MPI_STATUS_IGNORE);
  if (flag == 0) return;
  PMPI_Wait(request, &record.result);
  idle_request(record.comm, request);
  record.ready = true;
}

}  // namespace

std::unique_ptr<std::byte[]> Outgoing::packed() const {
  if (bytes() > most_count) fail(Errc::too_large, "a message from a device has 2 GiB at most");
  const auto size = static_cast<std::size_t>(bytes());
  auto made = std::make_unique_for_overwrite<std::byte[]>(size + 1);
  move(*place, bytes_at(made.get(), bytes()));
  return made;
}

Outgoing outgoing_of(Function function, const SendCall& call) {
  Outgoing out;
  if (call.destination < 0 || call.count <= 0 || call.datatype == MPI_DATATYPE_NULL ||
      call.comm == MPI_COMM_NULL)
    return out;
  const bool device = is_on_device(call.buffer, call.count, call.datatype);
  const bool taken_over = world->switches.takes(function);
  if (device && !taken_over) fail_switched_off(function);
  const bool ours = device || (world->switches.host && taken_over);
  const bool synchronous = is_synchronous(function);
  if (!ours && !(synchronous && taken_over)) return out;
  const std::int64_t bytes = bytes_of(call.datatype) * call.count;
  // A probe opens what is as long as an envelope, which by MPI alone would end a synchronous send.
  const bool alike = synchronous && bytes == envelope_bytes;
  if (!ours && !alike) return out;
  out.peer = peer_of(call.comm, call.destination);
  bool large = out.peer >= 0 && world->opens[static_cast<std::size_t>(out.peer)] &&
               (alike || bytes > static_cast<std::int64_t>(world->switches.small));
  if (large && synchronous) {
    if (world->probed) out.slot = world->probed->take();
    large = static_cast<bool>(out.slot);
  }
  if (!large && !device) return out;
  out.place =
      Destination{const_cast<void*>(call.buffer), call.count, datatype_of(call.datatype)}.place();
  out.way = large ? SendWay::envelope : SendWay::packed;
  return out;
}

int native_send(SendMode mode, const SendCall& c) noexcept {
  if (mode == SendMode::synchronous)
    return WIDEST(PMPI_Ssend)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm);
  if (mode == SendMode::ready)
    return WIDEST(PMPI_Rsend)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm);
  return WIDEST(PMPI_Send)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm);
}

int native_isend(SendMode mode, const SendCall& c, MPI_Request* request) noexcept {
  if (mode == SendMode::synchronous)
    return WIDEST(PMPI_Issend)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm,
                               request);
  if (mode == SendMode::ready)
    return WIDEST(PMPI_Irsend)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm,
                               request);
  return WIDEST(PMPI_Isend)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm, request);
}

int native_send_init(SendMode mode, const SendCall& c, MPI_Request* request) noexcept {
  if (mode == SendMode::synchronous)
    return WIDEST(PMPI_Ssend_init)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm,
                                   request);
  if (mode == SendMode::ready)
    return WIDEST(PMPI_Rsend_init)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm,
                                   request);
  return WIDEST(PMPI_Send_init)(c.buffer, c.count, c.datatype, c.destination, c.tag, c.comm,
                                request);
}

int send(Function function, SendMode mode, const SendCall& call) noexcept {
  if (!may_be_ours(mode)) return native_send(mode, call);
  return guarded(call.comm, [&] {
    if (is_plain(mode, call)) return native_send(mode, call);
    const Outgoing out = outgoing_of(function, call);
    if (out.way == SendWay::native) return native_send(mode, call);
    if (out.way == SendWay::packed) {
      const auto packed = out.packed();
      count(world->counters.small);
      return native_send(mode, with_bytes(call, packed.get(), out.bytes()));
    }
    PayloadOffer offer(*out.place, out.peer, out.slot.index());
    const int code =
        native_send(mode_of(mode, out), with_bytes(call, &offer.envelope(), envelope_bytes));
    if (code != MPI_SUCCESS) {
      offer.withdraw();
      return code;
    }
    offer.begin_patience();
    offer.finish();
    return code;
  });
}

int isend(Function function, SendMode mode, const SendCall& call, MPI_Request* request) noexcept {
  if (!may_be_ours(mode)) return native_isend(mode, call, request);
  return guarded(call.comm, [&]() -> int {
    if (is_plain(mode, call)) return native_isend(mode, call, request);
    Outgoing out = outgoing_of(function, call);
    if (out.way == SendWay::native) return native_isend(mode, call, request);
    RecordPtr record = new_record();
    record->sends = true;
    record->comm = call.comm;
    record->out = std::move(out);
    if (record->out.way == SendWay::envelope)
      record->offer.emplace(*record->out.place, record->out.peer, record->out.slot.index());
    const bool inner = has_inner(mode, record->out);
    const int code = native_isend(mode_of(mode, record->out), prepared(*record, call),
                                  inner ? &record->inner : request);
    if (code != MPI_SUCCESS) {
      if (record->offer) record->offer->withdraw();
      return code;
    }
    if (inner) {
      idle_request(call.comm, request);
      record->inner_open = record->ready = true;
    } else {
      make_unique_handle(*record, request);
    }
    keep_record(*request, std::move(record));
    return MPI_SUCCESS;
  });
}

int send_init(Function function, SendMode mode, const SendCall& call,
              MPI_Request* request) noexcept {
  if (!may_be_ours(mode)) return native_send_init(mode, call, request);
  return guarded(call.comm, [&] {
    Outgoing out = outgoing_of(function, call);
    if (out.way == SendWay::native) return native_send_init(mode, call, request);
    RecordPtr record = new_record();
    record->sends = true;
    record->persistent = true;
    record->active = false;
    record->comm = call.comm;
    record->out = std::move(out);
    const bool by_envelope = record->out.way == SendWay::envelope;
    if (!by_envelope) record->packed = record->out.packed();
    const SendCall native = by_envelope
                                ? with_bytes(call, &record->envelope, envelope_bytes)
                                : with_bytes(call, record->packed.get(), record->out.bytes());
    const bool inner = has_inner(mode, record->out);
    int code =
        native_send_init(mode_of(mode, record->out), native, inner ? &record->inner : request);
    if (code == MPI_SUCCESS && inner) code = idle_request(call.comm, request);
    if (code == MPI_SUCCESS) keep_record(*request, std::move(record));
    return code;
  });
}

}  // namespace quadriga::mpi
