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
    record.offer.emplace(record.out.place, record.out.peer, record.out.slot.index());
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

int idle_request(MPI_Comm comm, MPI_Request* request) noexcept {
  static char nothing = 0;
  return PMPI_Recv_init(&nothing, 0, MPI_BYTE, MPI_PROC_NULL, 0, comm, request);
}

thread_local RequestList::Arrays RequestList::kept;

RequestList::RequestList(int count, MPI_Request* requests) : arrays_(std::move(kept)) {
  if (mpi::requests().is_empty() || count <= 0 || requests == nullptr) return;
  requests_ = {requests, static_cast<std::size_t>(count)};
  records_.reserve(requests_.size());
  for (const MPI_Request each : requests_) any_ = records_.emplace_back(each).get() || any_;
  if (any_) originals_.assign(requests_.begin(), requests_.end());
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
  masked_ = originals_;
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
  if (!records_[at]) return MPI_SUCCESS;
  return conclude(records_[at], &requests_[at], status);
}

}  // namespace quadriga::mpi
