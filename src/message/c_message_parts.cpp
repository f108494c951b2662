// SPDX-License-Identifier: BSD-3-Clause
// src/message/c_message_parts.cpp: message_parts_c.h on the collectives for C++.
#include <fmt/format.h>
#include <quadriga/message_collectives.h>
#include <quadriga/message_parts_c.h>

#include <algorithm>
#include <span>
#include <vector>

#include "message/c_messages.h"
#include "message/layout/layout.h"

namespace quadriga::message {
namespace {

// Counts and displacements as C has them, and how many elements they reach over. Their sizes are
// checked here only so far that this number exists: what is wrong is told by who uses them.
struct CountedElements {
  Counts of;
  std::int64_t elements = 0;

  CountedElements(const std::int64_t* counts, const std::int64_t* displacements, int ranks) {
    require(counts != nullptr, "the counts are NULL");
    const auto size = static_cast<std::size_t>(ranks);
    of.counts = {counts, size};
    if (displacements != nullptr) of.displacements = {displacements, size};
    std::int64_t next = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::int64_t begin = displacements != nullptr ? displacements[i] : next;
      const bool is_sum = !__builtin_add_overflow(std::max<std::int64_t>(begin, 0),
                                                  std::max<std::int64_t>(counts[i], 0), &next);
      require(is_sum, fmt::format("rank {} has {} elements from element {} on; expected fewer "
                                  "than 2^63",
                                  i, counts[i], begin));
      elements = std::max(elements, next);
    }
  }
};

const quadriga_layout* one_element(const quadriga_layout* of) {
  require(of != nullptr, "the layout is NULL");
  require(of->layout.elements().count() == 1,
          fmt::format("the layout has {}; expected one element", of->layout.elements().text()));
  return of;
}

std::span<const quadriga_part> listed(const quadriga_part* first, std::int64_t count) {
  require(count >= 0 && (first != nullptr || count == 0),
          fmt::format("a list of {} parts{}; expected 0 or more, at an address", count,
                      first != nullptr ? "" : " is NULL"));
  return {first, static_cast<std::size_t>(count)};
}

struct Parts {
  std::vector<SendPart> leaving;
  std::vector<ReceivePart> arriving;

  Parts(std::span<const quadriga_part> sends, std::span<const quadriga_part> receives) {
    for (const quadriga_part& each : sends)
      leaving.push_back({sent(each.data, each.count, each.of), each.rank});
    for (const quadriga_part& each : receives)
      arriving.push_back({received(each.data, each.count, each.of), each.rank});
  }
};

}  // namespace
}  // namespace quadriga::message

namespace message = quadriga::message;
using message::CallKind;
using message::Communicator;

std::int64_t quadriga_igatherv(quadriga_communicator* comm, const void* from, std::int64_t count,
                               void* into, const std::int64_t* counts,
                               const std::int64_t* displacements, const quadriga_layout* of,
                               int root, quadriga_request** request) {
  return message::started(comm, CallKind::gatherv, request, [&](const Communicator& ranks) {
    const auto own = message::sent(from, count, message::one_element(of));
    if (ranks.rank() != root) return message::igatherv(ranks, own, {}, {}, root);
    const message::CountedElements reach(counts, displacements, ranks.size());
    return message::igatherv(ranks, own, message::received(into, reach.elements, of), reach.of,
                             root);
  });
}

std::int64_t quadriga_iallgatherv(quadriga_communicator* comm, const void* from, std::int64_t count,
                                  void* into, const std::int64_t* counts,
                                  const std::int64_t* displacements, const quadriga_layout* of,
                                  quadriga_request** request) {
  return message::started(comm, CallKind::allgatherv, request, [&](const Communicator& ranks) {
    const message::CountedElements reach(counts, displacements, ranks.size());
    return message::iallgatherv(ranks, message::sent(from, count, message::one_element(of)),
                                message::received(into, reach.elements, of), reach.of);
  });
}

std::int64_t quadriga_iscatterv(quadriga_communicator* comm, const void* from,
                                const std::int64_t* counts, const std::int64_t* displacements,
                                void* into, std::int64_t count, const quadriga_layout* of, int root,
                                quadriga_request** request) {
  return message::started(comm, CallKind::scatterv, request, [&](const Communicator& ranks) {
    const auto own = message::received(into, count, message::one_element(of));
    if (ranks.rank() != root) return message::iscatterv(ranks, {}, {}, own, root);
    const message::CountedElements reach(counts, displacements, ranks.size());
    return message::iscatterv(ranks, message::sent(from, reach.elements, of), reach.of, own, root);
  });
}

std::int64_t quadriga_ialltoallv(quadriga_communicator* comm, const void* from,
                                 const std::int64_t* send_counts,
                                 const std::int64_t* send_displacements, void* into,
                                 const std::int64_t* receive_counts,
                                 const std::int64_t* receive_displacements,
                                 const quadriga_layout* of, quadriga_request** request) {
  return message::started(comm, CallKind::alltoallv, request, [&](const Communicator& ranks) {
    const message::CountedElements leaving(send_counts, send_displacements, ranks.size());
    const message::CountedElements arriving(receive_counts, receive_displacements, ranks.size());
    return message::ialltoallv(
        ranks, message::sent(from, leaving.elements, message::one_element(of)), leaving.of,
        message::received(into, arriving.elements, of), arriving.of);
  });
}

std::int64_t quadriga_ireduce_scatter(quadriga_communicator* comm, const void* from, void* into,
                                      const std::int64_t* counts, const quadriga_layout* of,
                                      quadriga_operation operation, quadriga_request** request) {
  return message::started(comm, CallKind::reduce_scatter, request, [&](const Communicator& ranks) {
    const message::CountedElements reach(counts, nullptr, ranks.size());
    const std::int64_t own = counts[ranks.rank()];
    return message::ireduce_scatter(
        ranks, message::sent(from, reach.elements, message::one_element(of)),
        message::received(into, own, of), reach.of.counts, message::known(operation));
  });
}

std::int64_t quadriga_ialltoallw(quadriga_communicator* comm, std::int64_t send_count,
                                 const quadriga_part* sends, std::int64_t receive_count,
                                 const quadriga_part* receives, quadriga_request** request) {
  return message::started(comm, CallKind::alltoallw, request, [&](const Communicator& ranks) {
    const message::Parts parts(message::listed(sends, send_count),
                               message::listed(receives, receive_count));
    return message::ialltoallw(ranks, parts.leaving, parts.arriving);
  });
}

std::int64_t quadriga_ineighbor_alltoall(quadriga_communicator* comm, std::int64_t send_count,
                                         const quadriga_part* sends, std::int64_t receive_count,
                                         const quadriga_part* receives,
                                         quadriga_request** request) {
  return message::started(
      comm, CallKind::neighbor_alltoall, request, [&](const Communicator& ranks) {
        const message::Parts parts(message::listed(sends, send_count),
                                   message::listed(receives, receive_count));
        return message::ineighbor_alltoall(ranks, parts.leaving, parts.arriving);
      });
}
