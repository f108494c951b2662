// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_group.cpp: waiting for a group of tasks, and cancelling one or everything.
#include <fmt/format.h>

#include <algorithm>

#include "engine/bodies.h"
#include "engine/engine_access.h"
#include "engine/engine_impl.h"
#include "graph/task_life.h"

namespace quadriga {

void EngineAccess::wait(Engine& engine, TaskGroup& group, std::span<const Data> data,
                        double timeout) {
  Engine::Impl& impl = engine.checked();
  const Nanoseconds deadline = impl.waits->deadline_after(timeout);
  impl.waits->until([&] { return group.all_ended(); }, deadline, "the work");
  if (const auto error = impl.failures.of(group)) std::rethrow_exception(error);
  std::vector<Datum*> written;
  for (const Data& each : data)
    if (each) written.push_back(datum(each));
  if (impl.options.renaming_bytes > 0) impl.bring_renamed_home(written, deadline);
  impl.waits->until_home(written, deadline);
  const auto lost =
      std::ranges::find_if(written, [](Datum* each) { return each->poisoned.load(); });
  if (lost == written.end() && !group.consequence) return;
  if (const auto error = impl.failures.cause_of(group)) std::rethrow_exception(error);
  std::rethrow_exception(content_lost(impl.failures.of((*lost)->failed_by.load())));
}

std::exception_ptr EngineAccess::failure_of(const Engine& engine, const TaskGroup& group) {
  const Failures& failures = engine.impl_->failures;
  return failures.any() ? failures.of(group) : nullptr;
}

bool EngineAccess::failed(const Engine& engine, const Future& task) {
  const Failures& failures = engine.impl_->failures;
  return failures.any() && failures.of(task.id()) != nullptr;
}

std::string EngineAccess::why_failed(const Engine& engine, std::uint64_t task) {
  const std::string first = engine.checked().failures.first_of(task);
  return first.empty() ? fmt::format("task {} failed", task) : first;
}

bool EngineAccess::wait_until(Engine& engine, const std::function<bool()>& condition,
                              double timeout) {
  Engine::Impl& impl = engine.checked();
  return impl.executor->wait(condition, impl.waits->deadline_after(timeout), Checked::by_waiter);
}

MessageTasks* Engine::Impl::known_messages() {
  const std::lock_guard lock(messages_mutex);
  return messages.get();
}

void Engine::Impl::cancel_messages(bool on) {
  if (MessageTasks* const known = known_messages()) known->cancel(on);
}

void Engine::cancel() {
  Impl& impl = checked();
  // Inside of a task what it submitted ends; the task itself can't.
  Task* const inside = current_task(impl.graph);
  if (inside)
    impl.executor->wait([] { return true; }, never, Checked::by_waiter);  // refused on devices
  if (impl.refuses) {
    impl.holds->end_all();  // the engine is about to end, and with it what waits for the host
    return impl.cancelling->without_turn(inside);
  }
  impl.open_holds.refuse_own();
  impl.cancelling->all(inside);
}

void EngineAccess::leave(Engine& engine, std::function<void()> end) {
  engine.impl_->left.add(std::move(end));
}

void EngineAccess::cancel(Engine& engine, TaskGroup& group) {
  group.cancelled.store(true, std::memory_order_release);
  engine.checked().executor->wait([&] { return group.all_ended(); }, never, Checked::by_anybody);
}

}  // namespace quadriga
