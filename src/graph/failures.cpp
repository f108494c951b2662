// SPDX-License-Identifier: BSD-3-Clause
// src/graph/failures.cpp: wraps, keeps and hands out the failures of tasks.
#include "graph/failures.h"

#include <fmt/format.h>

#include <utility>

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

std::exception_ptr wrap(const Task& task, std::exception_ptr error, const std::string& device) {
  const std::string who = describe(task, device);
  if (!error)
    return std::make_exception_ptr(
        Error(Errc::cancelled, who + " did not run: an operand's producer failed"));
  try {
    std::rethrow_exception(error);
  } catch (const NotPositiveDefinite&) {
    return error;
  } catch (const Error& cause) {
    const Errc code = cause.code() == Errc::device_lost || cause.code() == Errc::unavailable ||
                              cause.code() == Errc::cancelled || cause.code() == Errc::too_large ||
                              cause.code() == Errc::io
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

}  // namespace

void poison(Task& task) noexcept {
  for (OperandSlot& slot : task.slots())
    if (writes(slot.access)) slot.datum->poisoned.store(true, std::memory_order_release);
}

const Datum* poisoned_operand(const Task& task) noexcept {
  for (int i = 0; i < task.operand_count; ++i) {
    const OperandSlot& slot = task.operands[i];
    if (slot.access != Access::write && slot.datum->poisoned.load(std::memory_order_acquire))
      return slot.datum;
  }
  return nullptr;
}

void Failures::record(Task& task, std::exception_ptr error, const std::string& device) {
  const bool consequence = !error;
  error = wrap(task, std::move(error), device);
  std::lock_guard lock(mutex_);
  constexpr std::size_t most = 4096;
  by_task_[task.id] = error;
  if (by_task_.size() > most) by_task_.erase(by_task_.begin());
  TaskGroup* const group = task.group;
  std::exception_ptr& first = group ? group->failure : first_;
  if (!first && !consequence) first = error;
  if (group && consequence && !group->consequence) group->consequence = error;
  any_.store(true, std::memory_order_release);
  count_.fetch_add(1, std::memory_order_relaxed);
}

void Failures::note(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  note_ = std::move(error);
  if (!first_) first_ = note_;
  any_.store(true, std::memory_order_release);
  count_.fetch_add(1, std::memory_order_relaxed);
}

std::exception_ptr Failures::take_first() {
  std::lock_guard lock(mutex_);
  return std::exchange(first_, nullptr);
}

std::exception_ptr Failures::cause_of(const TaskGroup& group) {
  std::lock_guard lock(mutex_);
  if (!note_) return group.consequence;
  if (first_ == note_) first_ = nullptr;
  return std::exchange(note_, nullptr);
}

std::exception_ptr Failures::of(const TaskGroup& group) const {
  std::lock_guard lock(mutex_);
  return group.failure;
}

std::exception_ptr Failures::of(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  const auto found = by_task_.find(id);
  return found == by_task_.end() ? nullptr : found->second;
}

}  // namespace quadriga
