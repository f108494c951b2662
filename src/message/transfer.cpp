// SPDX-License-Identifier: BSD-3-Clause
// src/message/transfer.cpp: words for transfers, and how they end.
#include "message/transfer.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <array>

#include "message/device_moves.h"
#include "message/matching.h"

namespace quadriga::message {

std::string_view name(CallKind operation) noexcept {
  constexpr std::array<std::string_view, 21> names{"nothing",   "send",       "recv",
                                                   "probe",     "barrier",    "bcast",
                                                   "reduce",    "allreduce",  "gather",
                                                   "allgather", "scatter",    "alltoall",
                                                   "Split",     "close",      "reduce_scatter",
                                                   "gatherv",   "allgatherv", "scatterv",
                                                   "alltoallv", "alltoallw",  "neighbor_alltoall"};
  const auto index = static_cast<std::size_t>(operation);
  return index < names.size() ? names[index] : "unknown";
}

int Group::rank_of(int world_rank) const noexcept {
  const auto found = std::find(world.begin(), world.end(), world_rank);
  return found == world.end() ? -1 : static_cast<int>(found - world.begin());
}

std::byte* MessageBuffer::flat() const noexcept {
  const Canonical& form = layout.form();
  return form.leaf == Leaf::run && form.strides.empty() ? data + form.origin : nullptr;
}

std::exception_ptr ContextAbort::error(const Group& group) const {
  const int rank = lost < 0 ? -1 : group.rank_of(lost);
  if (rank >= 0) return std::make_exception_ptr(PeerLost(rank, text));
  return std::make_exception_ptr(Error(Errc::cancelled, text));
}

std::string MessageTransfer::text() const {
  const std::string other =
      peer == any_source ? "any rank" : fmt::format("rank {}", group->rank_of(peer));
  const std::string with = operation == CallKind::send || operation == CallKind::recv
                               ? (tag == any_tag ? ", any tag" : fmt::format(", tag {}", tag))
                               : "";
  return fmt::format("{} {} {}{}", name(operation), sends ? "to" : "from", other, with);
}

void MessageTransfer::renew(std::shared_ptr<void> with) noexcept {
  keep = std::move(with);
  error = nullptr;
  status = {};
  claim = {};
  sender = 0;
  address = 0;
  expected = 0;
  moved = 0;
  matched = {};
  stop_moving();
  done.store(false, std::memory_order_relaxed);
}

bool MessageTransfer::is_queued() const noexcept {
  return copier ? copier->is_queued() : writer && writer->is_queued();
}

void MessageTransfer::stop_moving() noexcept {
  reader.reset();
  writer.reset();
  copier.reset();
}

void MessageTransfer::finish(std::exception_ptr with) noexcept {
  stop_moving();
  error = std::move(with);
  done.store(true, std::memory_order_release);
}

}  // namespace quadriga::message
