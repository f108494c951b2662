// SPDX-License-Identifier: BSD-3-Clause
// src/device/instructions.cpp: numbering of instructions, and their way to a backend.
#include "device/instructions.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {

Event Instructions::add(StreamId stream, Operation operation) {
  const std::uint64_t ticket = ++at(stream).issued;
  pending_.push_back({++count_, stream, ticket, std::move(operation)});
  return {stream, ticket};
}

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
