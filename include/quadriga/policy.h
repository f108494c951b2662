// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/policy.h: user-defined policies: placement, order, prefetch and eviction.
//
// A policy sees tasks, tiles, devices and the time that links need, and answers with an index or a
// score. It can make a program slow, never wrong: the engine keeps dependencies, room, coherence.
// An invalid answer or an exception counts as no answer and is logged once. Each engine has its own
// policy, called by one thread at a time; on the host's cores alone each worker one, for victims.
//
// If a task's owner (SubmitOptions::owner) and the policy disagree, the first that applies wins:
//   1. A task that names its `device` runs there; no policy is asked, and no idle device steals it.
//   2. Under a policy that follows owners (PolicyTraits) a task is placed on its owner; the policy
//      isn't asked.
//   3. Else place() decides; it sees the owner, and may choose another device.
//   4. Later an idle device may steal a task of 2 and 3, by victim() and choose().
// A device or owner that can't run the task (no variant, no room, lost) is skipped in 1 and 2.
#pragma once

#include <quadriga/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

class Machine;

/// One operand of a task.
struct OperandView {
  std::uint32_t tile = 0;  ///< The same number for the same tile, as long as it is registered.
  std::size_t bytes = 0;
  Access access = Access::read;
};

/// A task; its references are valid during the call.
struct TaskView {
  std::uint64_t id = 0;  ///< Order of submission, from 1.
  std::string_view codelet;
  int priority = 0;
  std::span<const OperandView> operands;
};

/// What a policy learns of a task.
struct TaskNews {
  TaskView task;
  /// Predicted time of its kernel by device; 0 if unknown, infinite where it can't run.
  std::span<const double> kernel_seconds;
};

struct PullQuestion {
  DeviceId device = 0;                                 ///< It has little to do.
  const std::function<bool(std::uint32_t tile)>& has;  ///< The content, or a copy is under way.
};

/// Of similar tasks (same codelet, size within a factor of two) on one kind of device.
struct Experience {
  bool learns = false;         ///< Its time is predicted from theirs alone, so trials are useful.
  std::int64_t placed = 0;     ///< Placed on any device so far.
  std::int64_t beside = 0;     ///< Of those, on other kinds and not ended.
  std::int64_t under_way = 0;  ///< On this kind and not ended.
  std::int64_t ended = 0;      ///< Ended on this kind.
};

/// A device as a candidate for one task.
struct PlaceCandidate {
  DeviceId device = no_device;
  double bytes_here = 0;      ///< Of the task's operands, valid or in flight.
  double fetch_seconds = 0;   ///< To copy the rest that no task there wants, by link.
  double kernel_seconds = 0;  ///< Predicted; 0 if unknown.
  double queued_seconds = 0;  ///< Predicted work of the tasks placed there; 0 if unknown.
  Experience experience;
};

struct PlaceQuestion {
  std::span<const PlaceCandidate> candidates;  ///< Never empty.
  DeviceId owner = no_device;                  ///< The submitter's preferred device.
  DeviceId activator = no_device;  ///< Where the last predecessor ran; no_device if it had none.
  TaskView task;
};

/// One task that an idle device could take from another's queue.
struct StealCandidate {
  double bytes_here = 0;  ///< On the thief.
  double bytes_missing = 0;
  double staged_there = 0;  ///< Bytes already copied to the victim for it.
  double gain_seconds = 0;  ///< Predicted end on the victim minus predicted end on the thief.
  Experience experience;    ///< On the thief.
};

struct StealQuestion {
  DeviceId thief = 0;
  std::span<const double> queued;  ///< Predicted seconds (or tasks) placed, by device or worker.
};

/// A task that its device could issue now.
struct ReadyCandidate {
  TaskView task;
  double kernel_seconds = 0;  ///< Predicted; 0 if unknown.
  double bytes_here = 0;      ///< Of its operands, valid on the device or in flight.
  double bytes_missing = 0;
};

/// A tile that could be copied to a device before a task there needs it.
struct PrefetchCandidate {
  std::uint32_t tile = 0;
  std::size_t bytes = 0;
  double fetch_seconds = 0;  ///< By link, including its queue.
  std::size_t victims = 0;   ///< Tiles to be evicted for it.
};

/// A tile's replica that could be evicted from a device's memory.
struct EvictionCandidate {
  std::uint32_t tile = 0;
  std::size_t bytes = 0;
  std::uint64_t next_use = UINT64_MAX;  ///< Position in the device's plan; UINT64_MAX: none.
  std::uint64_t last_use = 0;           ///< Position of its last use.
  bool dirty = false;                   ///< It must be written back first.
};

/// Which tile is evicted when room is needed.
enum class Eviction : std::uint8_t {
  farthest_use,  ///< The one whose next planned use is farthest, else the least recently used.
  least_recent,  ///< The least recently used one.
  read_first,    ///< The least recently used of those only read, then of those to be written back.
  by_score,      ///< The one with the greatest Policy::eviction_score().
};

/// Which functions of a policy are called; constant for its lifetime.
struct PolicyTraits {
  /// Tasks with an owner are placed when they are submitted, so that their operands can be
  /// prefetched; else tasks are placed when they become ready.
  bool plans_ahead = false;
  bool follows_owners = false;      ///< place() isn't called if a task's owner can run it.
  bool orders = false;              ///< next() is called; else ready tasks go in plan order.
  bool filters_prefetches = false;  ///< prefetch() is called; else all go in plan order.
  bool follows_tasks = false;       ///< submitted() and ended() are called.
  bool pulls = false;               ///< Ready tasks wait for pull(), not for place().
  bool steals_from_host = false;    ///< Else the host keeps tasks of known time that it was given.
  bool ranks = false;               ///< rank() is called; else priority and submission order tasks.
  Eviction eviction = Eviction::farthest_use;
};

class Policy {
 public:
  /// The answer "none of them", like the number of candidates.
  static constexpr std::size_t none = SIZE_MAX;

  virtual ~Policy() = default;
  virtual PolicyTraits traits() const { return {}; }
  /// A task was submitted, in order of submission; a task has ended, or failed.
  virtual void submitted(const TaskNews&) {}
  virtual void ended(std::uint64_t /*id*/) {}
  /// Of a task that can be issued: the greatest is issued first. What is below 0 counts as 0.
  virtual double rank(const TaskView&) { return 0; }
  /// A task waits for pull(); again if its device couldn't take it or was lost. ended() follows.
  virtual void waiting(const TaskNews&) {}
  /// A task waits no more: no device got it by pull(), place() gave it this one.
  virtual void placed(std::uint64_t /*id*/, DeviceId) {}
  /// Appends the numbers of the tasks that the device gets, in the order in which they are issued.
  /// If no device has work and each gets none, the longest-waiting one is placed by place().
  virtual void pull(const PullQuestion&, std::vector<std::uint64_t>& /*tasks*/) {}
  // None of these is called without candidates.
  /// Index into question.candidates. None: the device with the least predicted work.
  virtual std::size_t place(const PlaceQuestion& question) = 0;
  /// Index into question.queued of the device (or worker) from which an idle one steals a task.
  virtual std::size_t victim(const StealQuestion&) { return none; }
  /// Index of the task to steal.
  virtual std::size_t choose(std::span<const StealCandidate>) { return none; }
  /// Index of the task that its device tries to issue next. None: the first, as planned.
  virtual std::size_t next(std::span<const ReadyCandidate>) { return 0; }
  /// Index of the tile to copy next, at this moment; called again when something has changed.
  virtual std::size_t prefetch(std::span<const PrefetchCandidate>) { return 0; }
  /// The greatest score is evicted first. Called once per candidate until its members change.
  virtual double eviction_score(const EvictionCandidate&) { return 0; }
};

/// Arguments of a new policy; the machine (quadriga/machine.h) outlives it.
struct PolicyContext {
  const Machine& machine;
  std::uint64_t seed = 1;  ///< The same seed gives the same decisions.
};
using PolicyMaker = std::function<std::unique_ptr<Policy>(const PolicyContext&)>;

struct PolicyInfo {
  std::string name, help;  ///< The help is one line.
};

/// Registers a policy under a name, which engines (`policy`) and settings accept. Thread-safe.
/// Errors: invalid_argument if the name is empty or taken, the help isn't one line, or no maker.
void register_policy(std::string name, std::string help, PolicyMaker maker);

/// The registered policies, by name. Thread-safe.
std::vector<PolicyInfo> policies();

}  // namespace quadriga
