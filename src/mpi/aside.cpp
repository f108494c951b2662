// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/aside.cpp: taking messages early, and finding them again.
#include "mpi/aside.h"

#include <map>

#include "mpi/requests.h"

namespace quadriga::mpi {

std::atomic<int> early_messages{0};

namespace {

std::list<EarlyMessage>& early() {
  static auto* const made = new std::list<EarlyMessage>;
  return *made;
}
std::map<std::uint32_t, EarlyMessage>& handed_out() {
  static auto* const made = new std::map<std::uint32_t, EarlyMessage>;
  return *made;
}
std::uint32_t next_handle = 1;

auto oldest(MPI_Comm comm, int source, int tag) {
  auto at = early().begin();
  while (at != early().end() &&
         !(at->comm == comm && (source == MPI_ANY_SOURCE || source == at->status.MPI_SOURCE) &&
           (tag == MPI_ANY_TAG || tag == at->status.MPI_TAG)))
    ++at;
  return at;
}

}  // namespace

int EarlyMessage::receive(Incoming& into, MPI_Status& seen) noexcept {
  if (opened) {
    if (content.is_valid() && world->probed)
      world->probed->begin_receive(content.peer(), content.probed_slot());
    copy_status(status, seen);
    return raise(comm, into.finish_early(content, seen));
  }
  const int code =
      WIDEST(PMPI_Mrecv)(into.buffer(), into.count(), into.datatype(), &message, &seen);
  return code != MPI_SUCCESS ? code : raise(comm, into.finish(seen));
}

std::optional<EarlyMessage> take_early(MPI_Comm comm, int source, int tag) {
  const TableLock lock;
  const auto at = oldest(comm, source, tag);
  if (at == early().end()) return std::nullopt;
  std::optional<EarlyMessage> found = std::move(*at);
  early().erase(at);
  early_messages.fetch_sub(1, std::memory_order_acq_rel);
  return found;
}

bool find_early(MPI_Comm comm, int source, int tag, MPI_Status& status) {
  if (early_messages.load(std::memory_order_acquire) == 0) return false;
  const TableLock lock;
  const auto at = oldest(comm, source, tag);
  if (at == early().end()) return false;
  copy_status(at->status, status);
  return true;
}

EarlyMessage opened(MPI_Comm comm, MPI_Message message, const MPI_Status& status) {
  EarlyMessage made{comm, status, message, false, {}};
  if (bytes_in(status) != envelope_bytes) return made;
  MPI_Status seen;
  {
    const ProbedSends::Opening opening(world->probed.get());
    PMPI_Mrecv(&made.content, envelope_bytes, MPI_BYTE, &made.message, &seen);
    if (made.content.is_valid() && world->probed)
      world->probed->hold(made.content.peer(), made.content.probed_slot());
  }
  made.opened = true;
  count(world->counters.looked_at);
  if (made.content.is_valid()) set_bytes(made.status, made.content.bytes());
  return made;
}

bool look_at(MPI_Comm comm, MPI_Status& status) {
  if (bytes_in(status) != envelope_bytes) return true;
  const int source = status.MPI_SOURCE, tag = status.MPI_TAG;
  const TableLock lock;
  for (;;) {
    int is_there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status found;
    if (PMPI_Improbe(source, MPI_ANY_TAG, comm, &is_there, &message, &found) != MPI_SUCCESS ||
        is_there == 0)
      return false;
    early().push_back(opened(comm, message, found));
    early_messages.fetch_add(1, std::memory_order_acq_rel);
    if (found.MPI_TAG != tag) continue;
    copy_status(early().back().status, status);
    return true;
  }
}

void forget_early(MPI_Comm comm) {
  if (early_messages.load(std::memory_order_acquire) == 0) return;
  std::list<EarlyMessage> gone;
  {
    const TableLock lock;
    for (auto at = early().begin(); at != early().end();) {
      const auto next = std::next(at);
      if (at->comm == comm) gone.splice(gone.end(), early(), at);
      at = next;
    }
    early_messages.fetch_sub(static_cast<int>(gone.size()), std::memory_order_acq_rel);
  }
  // Their senders needn't keep the payloads any longer: a receive of nothing ends them.
  std::int64_t bytes = 0;
  for (const EarlyMessage& each : gone)
    if (each.opened && each.content.is_valid())
      fetch(each.content, {nullptr, 0, datatype_of(MPI_BYTE)}, bytes);
}

MPI_Message keep_opened(EarlyMessage&& message) {
  const TableLock lock;
  const std::uint32_t index = next_handle++ & 0xffffff;
  handed_out()[index] = std::move(message);
  return own_message(index);
}

EarlyMessage take_opened(MPI_Message handle) {
  const TableLock lock;
  const std::uint32_t index = index_of(handle);
  EarlyMessage found = std::move(handed_out().at(index));
  handed_out().erase(index);
  return found;
}

}  // namespace quadriga::mpi
