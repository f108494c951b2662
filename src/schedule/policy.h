// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/policy.h: chooses the device of a ready task, and what an idle device takes from
// others.
//
// Pure: a policy is asked with what it needs to know and answers with an index; it knows no thread,
// device or clock. Queues belong to the executor.
#pragma once

#include <quadriga/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/random.h"

namespace quadriga {

/// What is known of a task from others of its codelet and order of size, on one kind of device.
struct Experience {
  bool learns = false;         ///< Its time follows from theirs alone; else nothing is to be tried.
  std::int64_t placed = 0;     ///< On any device so far.
  std::int64_t beside = 0;     ///< Of them on other kinds, and not ended.
  std::int64_t under_way = 0;  ///< On this kind, and not ended.
  std::int64_t ended = 0;      ///< On this kind.
};

/// A device as a candidate for one task.
struct PlaceCandidate {
  DeviceId device = no_device;
  double bytes_here = 0;      ///< Of the task's operands, valid or on their way.
  double fetch_seconds = 0;   ///< To bring the rest, by link.
  double kernel_seconds = 0;  ///< Predicted; 0 if unknown.
  double queued_seconds = 0;  ///< Predicted work of what is placed there; 0 if unknown.
  Experience experience;
};

struct PlaceQuestion {
  std::span<const PlaceCandidate> candidates;  ///< Never empty.
  DeviceId owner = no_device;                  ///< Where the submitter would have it.
  DeviceId activator = no_device;  ///< Where the last predecessor ran; no_device if it had none.
};

/// One task that an idle device could take from another's queue.
struct StealCandidate {
  double bytes_here = 0;  ///< On the thief.
  double bytes_missing = 0;
  double staged_there = 0;  ///< Bytes already brought to the victim for it.
  double gain_seconds = 0;  ///< Predicted end on the victim minus predicted end on the thief.
  Experience experience;    ///< On the thief.
};

struct StealQuestion {
  DeviceId thief = 0;
  /// Predicted seconds (or tasks) placed on each device or worker.
  std::span<const double> queued;
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual std::string_view name() const noexcept = 0;
  /// Whether tasks with an owner are placed when they are submitted, so that their operands can be
  /// fetched ahead; else tasks are placed when they become ready.
  virtual bool plans_ahead() const noexcept = 0;
  /// Whether place() chooses a task's owner wherever that is a candidate: it isn't asked then.
  virtual bool follows_owners() const noexcept { return false; }
  /// Index into question.candidates.
  virtual std::size_t place(const PlaceQuestion& question) = 0;
  /// Index into question.queued of the victim to look at; queued.size() for none.
  virtual std::size_t victim(const StealQuestion& question) = 0;
  /// Index into candidates of the task to take; candidates.size() for none.
  virtual std::size_t choose(std::span<const StealCandidate> candidates) = 0;
};

/// "steal" (random victim, its oldest task) or "affinity" (owners and bytes; most bytes here).
/// Errors: invalid_argument naming the policies there are.
std::unique_ptr<Policy> make_policy(std::string_view name, std::uint64_t seed);

}  // namespace quadriga
