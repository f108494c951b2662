// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/task_state.h: the states of a task in the schedule, and which follows which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace quadriga {

/// In the order in which a task meets them, as far as it does.
enum class TaskState : std::uint8_t {
  submitted,  ///< Known, its uses of tiles are planned; it has no device.
  deferred,   ///< No device yet, though it could be queued: it says when (device_side.h).
  waiting,    ///< No device yet, though it could be queued: until one pulls it (pulls.h).
  placed,     ///< It has a device: since it was submitted if its front end or its codelet says
              ///< where, else once it could be queued. Not all that it follows is there.
  gathering,  ///< Placed, and could be queued, but not all that start together with it (gangs.h).
  ready,      ///< Placed, and what it follows lets that device queue it. May be stolen.
  head,       ///< Ready, but found no room: nothing else is issued on its device before it. Those
              ///< that start together claim all of their devices instead.
  skipped,    ///< Ready, but there was nothing to do: ends well without having been issued.
  issued,     ///< Its operands are reserved, its copies and its kernel are instructions.
  detached,   ///< Its body has ended; its promise, which others keep, ends it.
  going_on,   ///< The same without its operands, for it goes on on the host (device_side.h).
  ended,      ///< Its kernel has ended, or it failed: its successors are told.
};

inline constexpr std::size_t task_states = static_cast<std::size_t>(TaskState::ended) + 1;

std::string_view name(TaskState state) noexcept;

/// Set of states, a bit each.
using TaskStates = std::uint16_t;

template <class... States>
constexpr TaskStates set_of(States... each) noexcept {
  return static_cast<TaskStates>((0U | ... | (1U << static_cast<unsigned>(each))));
}

constexpr bool is_among(TaskState state, TaskStates set) noexcept {
  return (set >> static_cast<unsigned>(state) & 1) != 0;
}

/// The states that may follow each one. A task that is issued once more stays issued.
inline constexpr std::array<TaskStates, task_states> following_states = [] {
  using enum TaskState;
  std::array<TaskStates, task_states> next{};
  const auto after = [&](TaskState state) -> TaskStates& {
    return next[static_cast<std::size_t>(state)];
  };
  after(submitted) = set_of(deferred, waiting, placed, ended);
  after(deferred) = set_of(submitted);
  after(waiting) = set_of(submitted);
  after(placed) = set_of(submitted, gathering, ready);
  after(gathering) = set_of(submitted, ready);
  after(ready) = set_of(submitted, head, skipped, issued, ended);
  after(head) = set_of(ready);
  after(skipped) = set_of(ended);
  after(issued) = set_of(detached, going_on, ended);
  after(detached) = set_of(ended);
  after(going_on) = set_of(ended);
  return next;
}();

constexpr bool may_follow(TaskState before, TaskState after) noexcept {
  return is_among(after, following_states[static_cast<std::size_t>(before)]);
}

/// It has no device.
inline constexpr TaskStates homeless_states =
    set_of(TaskState::submitted, TaskState::deferred, TaskState::waiting);
/// It stands among the ready tasks of its device.
inline constexpr TaskStates ready_states =
    set_of(TaskState::ready, TaskState::head, TaskState::skipped);
/// It was issued and has not ended.
inline constexpr TaskStates issued_states =
    set_of(TaskState::issued, TaskState::detached, TaskState::going_on);
/// It is neither issued nor in flight, and ends when somebody says so: a promise, or itself.
inline constexpr TaskStates open_states =
    set_of(TaskState::deferred, TaskState::detached, TaskState::going_on);

}  // namespace quadriga
