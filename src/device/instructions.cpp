// SPDX-License-Identifier: BSD-3-Clause
// src/device/instructions.cpp: numbering of instructions, and their way to a backend.
#include "device/instructions.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace quadriga {

/// Made where it stays: an instruction is larger than a cache line.
template <class Given>
Event Instructions::add(StreamId stream, Given&& operation) {
  Instruction& made = pending_.emplace_back();
  made.number = ++count_;
  made.stream = stream;
  made.ticket = ++at(stream).issued;
  made.operation.emplace<std::decay_t<Given>>(std::forward<Given>(operation));
  return {stream, made.ticket};
}

Event Instructions::copy(StreamId stream, Copy copy) { return add(stream, std::move(copy)); }
Event Instructions::launch(StreamId stream, const Launch& launch) { return add(stream, launch); }

void Instructions::wait(StreamId id, Event event) {
  if (!event || event.stream == id || event.ticket <= at(event.stream).ended) return;
  std::vector<std::uint64_t>& waited = at(id).waited;
  if (waited.size() <= event.stream) waited.resize(event.stream + 1, 0);
  if (waited[event.stream] >= event.ticket) return;
  waited[event.stream] = event.ticket;
  pending_.push_back({++count_, id, 0, event});
}

void Instructions::ended(Event event) {
  std::uint64_t& ended = at(event.stream).ended;
  ended = std::max(ended, event.ticket);
}

void carry_out(const Instruction& instruction, Backend& backend) {
  Event event{instruction.stream, 0};
  if (const Event* const awaited = std::get_if<Event>(&instruction.operation))
    backend.wait(instruction.stream, *awaited);
  else if (const Copy* const copy = std::get_if<Copy>(&instruction.operation))
    event = backend.copy(instruction.stream, *copy);
  else
    event = backend.launch(instruction.stream, std::get<Launch>(instruction.operation));
  if (event.ticket != instruction.ticket) [[unlikely]]
    fail(Errc::internal, fmt::format("operation {} of stream {} was queued as its operation {}",
                                     instruction.ticket, instruction.stream, event.ticket));
}

void carry_out(Instructions& instructions, Backend& backend) {
  for (const Instruction& instruction : instructions.pending()) carry_out(instruction, backend);
  instructions.clear();
}

}  // namespace quadriga
