// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/ending.cpp: starts and ends of single requests, and lists of them.
#include "mpi/ending.h"

#include <sched.h>

#include <algorithm>

#include "mpi/aside.h"

namespace quadriga::mpi {
namespace {

int start_send(RequestRecord& record, MPI_Request* request) {
  if (record.out.way == SendWay::envelope) {
    record.offer.emplace(*record.out.place, record.out.peer, record.out.slot.index());
    record.envelope = record.offer->envelope();
  } else {
    const auto now = record.out.packed();
    std::copy_n(now.get(), record.out.bytes(), record.packed.get());
    count(world->counters.small);
  }
  record.ready = record.inner != MPI_REQUEST_NULL;
  record.inner_open = record.ready;
  const int code = PMPI_Start(record.ready ? &record.inner : request);
  if (code != MPI_SUCCESS && record.offer) record.offer->withdraw();
  return code;
}

int end_send(RequestRecord& record, const MPI_Status& status) {
  if (!record.offer) return MPI_SUCCESS;
  int cancelled = 0;
  PMPI_Test_cancelled(&status, &cancelled);
  if (cancelled != 0)
    record.offer->withdraw();
  else
    record.offer->finish();
  return MPI_SUCCESS;
}

}  // namespace

int start(RequestRecord& record, MPI_Request* request) noexcept {
  try {
    record.active = true;
    if (record.sends) return start_send(record, request);
    if (auto found = early_for(record.comm, record.source, record.tag)) {
      record.code = found->receive(record.in, record.result);
      record.ready = true;
      return MPI_SUCCESS;
    }
    return PMPI_Start(request);
  } catch (...) {
    record.active = false;
    return raise(record.comm, code_of_exception());
  }
}

int conclude(HeldRecord& held, MPI_Request* request, MPI_Status& status) noexcept {
  RequestRecord& record = *held.get();
  if (!record.active) return MPI_SUCCESS;
  int code = MPI_SUCCESS;
  try {
    if (record.ready) {
      while (!record.has_inner_ended()) sched_yield();
      copy_status(record.result, status);
      code = record.sends ? end_send(record, status) : record.code;
      if (!record.persistent && *request != MPI_REQUEST_NULL) PMPI_Request_free(request);
    } else if (record.finished) {
      copy_status(record.result, status);
      code = record.code;
    } else {
      code = record.sends ? end_send(record, status) : record.in.finish(status);
    }
  } catch (...) {
    code = code_of_exception();
  }
  record.active = record.ready = record.finished = false;
  if (record.persistent)
    record.offer.reset();
  else
    held.let_go();
  return code;
}

bool RequestRecord::has_pair_ended() noexcept {
  for (MPI_Request& each : pair) {
    if (each == MPI_REQUEST_NULL) continue;
    HeldRecord held(each);
    MPI_Status status{};
    int ended = 1, own = MPI_SUCCESS;
    try {
      if (held && !held->is_settled()) continue;
      if (!held || !held->ready) own = PMPI_Test(&each, &ended, &status);
    } catch (...) {
      own = code_of_exception();
    }
    if (own == MPI_SUCCESS && ended == 0) continue;
    if (held) {
      const int concluded = conclude(held, &each, status);
      if (own == MPI_SUCCESS) own = concluded;
    }
    each = MPI_REQUEST_NULL;
    if (&each == &pair.back()) result = status;
    if (code == MPI_SUCCESS) code = own;
  }
  return pair.front() == MPI_REQUEST_NULL && pair.back() == MPI_REQUEST_NULL;
}

int idle_request(MPI_Comm comm, MPI_Request* request) noexcept {
  static char nothing = 0;
  return PMPI_Recv_init(&nothing, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, request);
}

RequestList::RequestList(int count, MPI_Request* requests) {
  if (has_no_records() || count <= 0 || requests == nullptr) return;
  requests_ = {requests, static_cast<std::size_t>(count)};
  if (count > few)
    many_ = std::make_unique_for_overwrite<std::byte[]>(requests_.size() * sizeof(HeldRecord));
  auto* const first = reinterpret_cast<HeldRecord*>(many_ ? many_.get() : few_.data());
  held_ = {first, requests_.size()};
  for (std::size_t i = 0; i < requests_.size(); ++i)
    any_ = *std::construct_at(first + i, requests[i]) || any_;
}

int RequestList::ready(int from) const {
  for (int i = from; i < size(); ++i)
    if (record(i) != nullptr && record(i)->active && record(i)->ready && record(i)->is_settled())
      return i;
  return -1;
}

bool RequestList::all_settled() const {
  for (int i = 0; i < size(); ++i)
    if (record(i) != nullptr && !record(i)->is_settled()) return false;
  return true;
}

bool RequestList::mask_unsettled() {
  masked_.assign(requests_.begin(), requests_.end());
  bool some = false;
  for (int i = 0; i < size(); ++i) {
    if (record(i) == nullptr) continue;
    const bool ready = record(i)->active && record(i)->ready;
    if (!ready && record(i)->is_settled()) continue;
    masked_[static_cast<std::size_t>(i)] = MPI_REQUEST_NULL;
    some = true;
  }
  return some;
}

void RequestList::accept(int index) noexcept {
  const auto at = static_cast<std::size_t>(index);
  requests_[at] = masked_[at];
}

int RequestList::end(int index, MPI_Status& status) noexcept {
  const auto at = static_cast<std::size_t>(index);
  return held_[at] ? conclude(held_[at], &requests_[at], status) : MPI_SUCCESS;
}

}  // namespace quadriga::mpi
