// SPDX-License-Identifier: BSD-3-Clause
// src/message/schedules/schedule.h: what each rank does in a collective, as data that does nothing.
//
// Whoever takes the steps (processes, threads, the virtual clock) keeps to this:
//   1. A step begins once the earlier steps that it names have ended.
//   2. A send and a receive belong together by sender, receiver and lane, in the order in which
//      both ranks list them. Those of one lane begin in this order.
//   3. A send ends once its bytes may be overwritten, a receive once they are there.
//   4. No step but those named in 1 and 2 may be waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace quadriga::message {

/// A rank or a position as an index of a vector.
constexpr std::size_t index(int i) noexcept { return static_cast<std::size_t>(i); }

enum class StepKind : std::uint8_t { send, receive, copy, reduce };
std::string_view name(StepKind kind) noexcept;

/// Memory of a rank that steps name by offset, in bytes.
enum class StepBuffer : std::uint8_t {
  input,   ///< What the rank gives.
  output,  ///< What it gets; may be the same memory as `input`.
  work,    ///< For partial results, where the rank's data are.
  stage,   ///< In the memory of the host, if the rank's data are on a device.
};
inline constexpr int step_buffers = 4;

struct StepPlace {
  StepBuffer buffer = StepBuffer::input;
  std::int64_t offset = 0;
  bool operator==(const StepPlace&) const = default;
};

struct RankStep {
  StepKind kind = StepKind::copy;
  int peer = -1;             ///< Of a send or a receive.
  int lane = 0;              ///< Of a send or a receive.
  std::int64_t bytes = 0;    ///< At least 1.
  StepPlace into;            ///< Written: by a receive, a copy, a reduction.
  StepPlace from;            ///< Read: by a send, a copy, and, as its left operand, a reduction.
  StepPlace with;            ///< A reduction's right operand: into = from op with.
  std::uint32_t after = 0;   ///< Where in RankSteps::after the steps that it waits for are,
  std::uint32_t afters = 0;  ///< and how many.
};

/// What one rank does.
struct RankSteps {
  std::vector<RankStep> steps;
  std::vector<std::uint32_t> after;  ///< Indices of earlier steps.
  std::int64_t work_bytes = 0;
  std::int64_t stage_bytes = 0;

  std::span<const std::uint32_t> awaited(const RankStep& step) const noexcept {
    return {after.data() + step.after, step.afters};
  }
};

/// All ranks' steps.
using Schedule = std::vector<RankSteps>;

/// How many transfers of one lane between two ranks may have begun and not ended: the latency of
/// one passes while the bytes of another flow.
inline constexpr int transfers_in_flight = 2;

}  // namespace quadriga::message
