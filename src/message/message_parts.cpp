// SPDX-License-Identifier: BSD-3-Clause
// src/message/message_parts.cpp: the public collectives that are started, of parts of any sizes.
#include <fmt/format.h>
#include <quadriga/message_collectives.h>

#include <span>
#include <string_view>
#include <vector>

#include "message/layout/layout.h"
#include "message/start_collective.h"

namespace quadriga::message {
namespace {

// Which elements are a rank's.
struct RankRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

std::vector<RankRange> ranges_of(std::string_view caller, const Counts& of, int ranks,
                                 std::int64_t elements) {
  const auto size = static_cast<std::size_t>(ranks);
  const bool is_dense = of.displacements.empty();
  require(of.counts.size() == size && (is_dense || of.displacements.size() == size),
          fmt::format("{}: {} counts, {} displacements; expected {}", caller, of.counts.size(),
                      is_dense ? of.counts.size() : of.displacements.size(), ranks));
  std::vector<RankRange> all;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const RankRange range{is_dense ? next : of.displacements[i], of.counts[i]};
    require(range.begin >= 0 && range.count >= 0 && range.begin <= elements &&
                range.count <= elements - range.begin,
            fmt::format("{}: rank {} has {} elements from element {} on; expected some of {}",
                        caller, i, range.count, range.begin, elements));
    next = range.begin + range.count;
    all.push_back(range);
  }
  return all;
}

// Each rank's elements of a buffer.
template <class Buffer>
void add_divided(Operands& with, std::vector<RankPart>& to, CallKind kind, const Buffer& buffer,
                 const Counts& counts, int ranks) {
  const ElementSignature& elements = buffer.layout().elements();
  const MessageBuffer whole = place_of(buffer);
  const bool is_flat = elements.count() == 0 || (elements.uniform() && whole.flat() != nullptr);
  require(is_flat, fmt::format("{}: expected elements of one type that lie together; ialltoallw "
                               "takes any layouts",
                               name(kind)));
  const auto size = static_cast<std::int64_t>(size_of(elements.type()));
  int rank = 0;
  for (const RankRange& each :
       ranges_of(name(kind), counts, ranks, static_cast<std::int64_t>(elements.count()))) {
    MessageBuffer part = whole;
    part.layout = contiguous_layout(each.count, elements.type());
    part.data = each.count == 0 ? whole.data : whole.flat() + each.begin * size;
    to.push_back({rank++, std::move(part)});
  }
  if (auto before = order_of(buffer, StreamSide::before)) with.before.push_back(std::move(before));
}

// Parts that only pairs of ranks know; `root` is -1 without one.
template <class Make>
Request start_exchange(const Communicator& comm, CallKind kind, int root, const Make& make) {
  return start_collective(comm, kind, make, [=](CommunicatorCore& core, const Operands& with) {
    core.exchange(kind, root, with.from, with.into, {});
  });
}

Request start_listed(const Communicator& comm, CallKind kind, std::span<const SendPart> sends,
                     std::span<const ReceivePart> receives) {
  return start_exchange(comm, kind, -1, [&](Operands& with) {
    for (const SendPart& each : sends) with.add(with.from, each.destination, each.from);
    for (const ReceivePart& each : receives) with.add(with.into, each.source, each.into);
  });
}

}  // namespace

Request igatherv(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                 const Counts& counts, int root) {
  return start_exchange(comm, CallKind::gatherv, root, [&](Operands& with) {
    with.add(with.from, root, from);
    if (comm.rank() == root)
      add_divided(with, with.into, CallKind::gatherv, into, counts, comm.size());
  });
}

Request iallgatherv(const Communicator& comm, const SendBuffer& from, const ReceiveBuffer& into,
                    const Counts& counts) {
  return start_collective(
      comm, CallKind::allgatherv,
      [&](Operands& with) {
        with.add(with.from, 0, from);
        add_divided(with, with.into, CallKind::allgatherv, into, counts, comm.size());
      },
      [](CommunicatorCore& core, const Operands& with) {
        std::vector<MessageBuffer> places;
        for (const RankPart& each : with.into) places.push_back(each.place);
        core.all_gather_parts(with.from.front().place, places, {});
      });
}

Request iscatterv(const Communicator& comm, const SendBuffer& from, const Counts& counts,
                  const ReceiveBuffer& into, int root) {
  return start_exchange(comm, CallKind::scatterv, root, [&](Operands& with) {
    if (comm.rank() == root)
      add_divided(with, with.from, CallKind::scatterv, from, counts, comm.size());
    with.add(with.into, root, into);
  });
}

Request ialltoallv(const Communicator& comm, const SendBuffer& from, const Counts& send_counts,
                   const ReceiveBuffer& into, const Counts& receive_counts) {
  return start_exchange(comm, CallKind::alltoallv, -1, [&](Operands& with) {
    add_divided(with, with.from, CallKind::alltoallv, from, send_counts, comm.size());
    add_divided(with, with.into, CallKind::alltoallv, into, receive_counts, comm.size());
  });
}

Request ialltoallw(const Communicator& comm, std::span<const SendPart> sends,
                   std::span<const ReceivePart> receives) {
  return start_listed(comm, CallKind::alltoallw, sends, receives);
}

Request ineighbor_alltoall(const Communicator& comm, std::span<const SendPart> sends,
                           std::span<const ReceivePart> receives) {
  return start_listed(comm, CallKind::neighbor_alltoall, sends, receives);
}

}  // namespace quadriga::message
