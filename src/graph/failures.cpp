// SPDX-License-Identifier: BSD-3-Clause
// src/graph/failures.cpp: wraps, keeps and hands out the failures of tasks.
#include "graph/failures.h"

#include <fmt/format.h>

#include <utility>

#include "graph/brings_home.h"

namespace quadriga {
namespace {

std::string describe(const Task& task, const std::string& device) {
  std::string operands;
  for (int i = 0; i < task.operand_count; ++i) {
    const OperandSlot& slot = task.operands[i];
    operands += fmt::format("{}{} {}x{} {}", i ? ", " : "", name(slot.access), slot.datum->rows,
                            slot.datum->cols, name(slot.datum->dtype));
  }
  return fmt::format("task {} '{}' on {} ({})", task.id.load(), task.codelet->name, device,
                     operands);
}

/// Names the task, and nests what it failed with for std::rethrow_if_nested().
struct Failed final : Error, std::nested_exception {
  using Error::Error;
};

std::exception_ptr wrap(const std::string& who, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const NotPositiveDefinite&) {
    return error;
  } catch (const Error& cause) {
    const Errc code = cause.code() == Errc::device_lost || cause.code() == Errc::unavailable ||
                              cause.code() == Errc::cancelled || cause.code() == Errc::too_large ||
                              cause.code() == Errc::io || cause.code() == Errc::peer_lost
                          ? cause.code()
                          : Errc::task_failed;
    return std::make_exception_ptr(Failed(code, who + " failed: " + cause.what(), cause.where()));
  } catch (const std::exception& cause) {
    return std::make_exception_ptr(Failed(Errc::task_failed, who + " failed: " + cause.what()));
  } catch (...) {
    return std::make_exception_ptr(
        Error(Errc::task_failed, who + " failed with an exception of unknown type"));
  }
}

/// What a task's failure says, which names the task.
std::string text_of(const std::string& who, const std::exception_ptr& wrapped) {
  try {
    std::rethrow_exception(wrapped);
  } catch (const NotPositiveDefinite& error) {
    return who + " failed: " + error.what();
  } catch (const std::exception& error) {
    return error.what();
  }
}

/// The task whose result a body lacked; 0: its failure is its own.
std::uint64_t lacking_in(const std::exception_ptr& error) {
  if (!error) return 0;
  try {
    std::rethrow_exception(error);
  } catch (const LacksResult& lacks) {
    return lacks.task();
  } catch (...) {
    return 0;
  }
}

/// Of a task that didn't run, where the first failure was forgotten: which operand it lacks.
std::string unknown_cause(const Task& task) {
  for (int i = 0; i < task.operand_count; ++i) {
    const OperandSlot& slot = task.operands[i];
    if (slot.access == Access::write) continue;
    if (const std::uint64_t id = slot.datum->failed_by.load(std::memory_order_relaxed))
      return fmt::format(
          "task {}, which should have written its operand {}, failed; so many have "
          "failed since that it isn't known why",
          id, i);
    if (slot.datum->poisoned.load())
      return fmt::format(
          "its operand {} has no content, as the task that should have written it "
          "failed",
          i);
  }
  return "a task that it follows failed";
}

}  // namespace

void Failures::record(Task& task, std::exception_ptr error, const std::string& device) {
  const std::uint64_t lacking = lacking_in(error);
  const bool consequence = !error || lacking != 0;
  const std::string who = describe(task, device);
  if (!consequence) error = wrap(who, error);
  std::lock_guard lock(mutex_);
  std::shared_ptr<const std::string> cause;
  if (consequence) {
    cause = first_of(task, lacking);
    error = std::make_exception_ptr(
        Error(Errc::cancelled, who + " did not run: " + (cause ? *cause : unknown_cause(task))));
  } else {
    cause = std::make_shared<const std::string>(text_of(who, error));
  }
  const std::uint64_t id = task.id.load();
  by_task_[id] = {error, std::move(cause)};
  const bool brings_home = is_bringing_home(task.codelet);  // of which its follower tells
  if (consequence && !task.group && !brings_home) untold_.insert(id);
  forget_oldest();
  for (const OperandSlot& slot : task.slots()) {
    if (!writes(slot.access)) continue;
    if (brings_home && slot.datum->is_lost()) continue;  // by whoever should have written it
    slot.datum->failed_by.store(id, std::memory_order_relaxed);
  }
  TaskGroup* const group = task.group;
  std::exception_ptr& first = group ? group->failure : first_;
  if (!first && !consequence) first = error;
  if (group && consequence && !group->consequence) group->consequence = error;
  any_.store(true, std::memory_order_release);
  count_.fetch_add(1, std::memory_order_relaxed);
}

/// What failed first of all that kept the task from running; null if that isn't known.
std::shared_ptr<const std::string> Failures::first_of(const Task& task,
                                                      std::uint64_t lacking) const {
  const auto found = [this](std::uint64_t id) {
    const auto known = by_task_.find(id);
    return known == by_task_.end() ? nullptr : known->second.first;
  };
  if (lacking != 0) return found(lacking);
  // The poison may have gone since, by a task that overwrites.
  for (const bool is_poisoned : {true, false})
    for (int i = 0; i < task.operand_count; ++i) {
      const OperandSlot& slot = task.operands[i];
      if (slot.access == Access::write || slot.datum->poisoned.load() != is_poisoned) continue;
      if (auto cause = found(slot.datum->failed_by.load(std::memory_order_relaxed))) return cause;
    }
  return nullptr;
}

bool Failures::failed(std::uint64_t id) const {
  if (!any()) return false;
  std::lock_guard lock(mutex_);
  return by_task_.contains(id) || failed_before_.contains(id);
}

std::string Failures::first_of(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = by_task_.find(id);
  return found == by_task_.end() || !found->second.first ? "" : *found->second.first;
}

void Failures::forget_oldest() {
  constexpr std::size_t most = 4096;
  if (by_task_.size() <= most) return;
  const auto oldest = by_task_.begin();
  failed_before_.add(oldest->first);
  try {
    std::rethrow_exception(oldest->second.error);
  } catch (const Error& error) {
    if (error.code() == Errc::cancelled) cancelled_before_.add(oldest->first);
  } catch (...) {  // of another type
  }
  untold_.erase(oldest->first);
  by_task_.erase(oldest);
}

void Failures::note(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  note_ = std::move(error);
  note_is_told_ = false;
  if (!first_) {
    first_ = note_;
    first_is_noted_ = true;
  }
  any_.store(true, std::memory_order_release);
  count_.fetch_add(1, std::memory_order_relaxed);
}

std::exception_ptr Failures::take_first() {
  std::lock_guard lock(mutex_);
  note_is_told_ |= std::exchange(first_is_noted_, false);
  // What they came of was told by an earlier call: who goes on must know that they did not run.
  if (!first_ && !untold_.empty()) first_ = by_task_.at(*untold_.begin()).error;
  untold_.clear();
  return std::exchange(first_, nullptr);
}

std::exception_ptr Failures::take_untold() {
  std::lock_guard lock(mutex_);
  if (note_is_told_) return nullptr;
  if (std::exchange(first_is_noted_, false)) first_ = nullptr;
  return std::exchange(note_, nullptr);
}

std::exception_ptr Failures::cause_of(const TaskGroup& group) {
  std::lock_guard lock(mutex_);
  if (!note_) return group.consequence;
  if (first_ == note_) {
    first_ = nullptr;
    first_is_noted_ = false;
  }
  return std::exchange(note_, nullptr);
}

std::exception_ptr Failures::of(const TaskGroup& group) const {
  std::lock_guard lock(mutex_);
  return group.failure;
}

std::exception_ptr Failures::of(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = by_task_.find(id);
  untold_.erase(id);
  if (found != by_task_.end()) return found->second.error;
  if (!failed_before_.contains(id)) return nullptr;
  const bool was_cancelled = cancelled_before_.contains(id);
  return std::make_exception_ptr(
      Error(was_cancelled ? Errc::cancelled : Errc::task_failed,
            fmt::format("task {} {}; so many have failed since that it isn't known why", id,
                        was_cancelled ? "did not run" : "failed")));
}

}  // namespace quadriga
