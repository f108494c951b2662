// SPDX-License-Identifier: BSD-3-Clause
// src/message/start_collective.h: how public collectives are started: what they take, and what the
// others are told if that can't be had.
#pragma once

#include <quadriga/error.h>

#include <memory>
#include <utility>
#include <vector>

#include "message/buffer_place.h"
#include "message/communicator_common.h"

namespace quadriga::message {

/// Elements for and from ranks, and the streams that must have come so far before.
struct Operands {
  std::vector<RankPart> from, into;
  std::vector<std::shared_ptr<StreamOrder>> before;

  template <class Buffer>
  void add(std::vector<RankPart>& to, int rank, const Buffer& buffer) {
    OrderedPlace found = ordered_place_of(buffer);
    if (found.before) before.push_back(std::move(found.before));
    to.push_back({rank, std::move(found.place)});
  }
};

/// Starts `call(core, operands)` of what `make(operands)` adds to them. A rank that can't make them
/// tells the others. Streams are waited for by the thread that carries it out.
template <class Make, class Call>
Request start_collective(const Communicator& comm, CallKind kind, const Make& make, Call call) {
  Communicator::Common& common = comm.common();
  StartedCollectives& lane = common.started();
  try {
    const auto operands = std::make_shared<Operands>();
    make(*operands);
    return common.request(
        lane.start(kind, [kind, operands, call = std::move(call)](CommunicatorCore& core) {
          for (const auto& each : operands->before) core.await_stream(each, kind, {});
          call(core, *operands);
        }));
  } catch (const Error& error) {
    lane.refuse(kind, error.what());
    throw;
  }
}

}  // namespace quadriga::message
