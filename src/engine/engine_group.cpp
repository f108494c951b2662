// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_group.cpp: waiting for a group of tasks, and cancelling one or everything.
#include <algorithm>

#include "engine/bodies.h"
#include "engine/engine_access.h"
#include "engine/engine_impl.h"
#include "graph/task_life.h"

namespace quadriga {

void EngineAccess::wait(Engine& engine, TaskGroup& group, std::span<const Data> data,
                        double timeout) {
  Engine::Impl& impl = engine.checked();
  const Nanoseconds deadline = impl.deadline_after(timeout);
  impl.wait_until([&] { return group.all_ended(); }, deadline, "the work");
  if (const auto error = impl.failures.of(group)) std::rethrow_exception(error);
  std::vector<Datum*> written;
  for (const Data& each : data)
    if (each) written.push_back(datum(each));
  if (impl.options.renaming_bytes > 0) impl.bring_renamed_home(written, deadline);
  impl.bring_home(written, deadline);
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

bool EngineAccess::wait_until(Engine& engine, const std::function<bool()>& condition,
                              double timeout) {
  Engine::Impl& impl = engine.checked();
  return impl.executor->wait(condition, impl.deadline_after(timeout));
}

MessageTasks* Engine::Impl::known_messages() {
  const std::lock_guard lock(data_mutex);
  return messages.get();
}

void Engine::Impl::cancel_messages(bool on) {
  if (MessageTasks* const known = known_messages()) known->cancel(on);
}

MessageTasks& EngineAccess::messages(Engine& engine) {
  Engine::Impl& impl = engine.checked();
  const std::lock_guard lock(impl.data_mutex);
  if (!impl.messages) impl.messages = std::make_unique<MessageTasks>(engine);
  return *impl.messages;
}

MessageCounters EngineAccess::count_messages(const Engine& engine) {
  MessageTasks* const known = engine.checked().known_messages();
  return known ? known->counters() : MessageCounters{};
}

void EngineAccess::note_message(Engine& engine, MessageEvent event) {
  engine.impl_->recorder.message(std::move(event));
}

/// Tasks that were cancelled may have left copies of their operands on the way, and those that ran
/// results on devices: either would meet what the host writes next. While what is submitted
/// meanwhile is cancelled, so that nothing but copies is waited for.
void Engine::Impl::settle() {
  try {
    executor->bring_all_home(never);
  } catch (const std::exception&) {
    // What can't come home now is as before; the next wait says so.
  }
}

/// By tasks that run at once: what nobody uses.
void Engine::Impl::settle_renamed() {
  try {
    wait_ended(renaming->bring_idle_home(), never);
  } catch (const std::exception&) {
    // As above.
  }
}

/// Of threads that cancel at once the first one begins, and the last one ends it.
void Engine::Impl::begin_cancelling() {
  const std::lock_guard lock(cancelling_mutex);
  executor->cancel(true);
  cancel_messages(true);
  ++cancelling;
}

void Engine::Impl::end_cancelling() {
  const std::lock_guard lock(cancelling_mutex);
  if (--cancelling > 0) return;
  cancel_messages(false);
  executor->cancel(false);
}

void Engine::Impl::cancel_all(Task* inside) {
  const auto all_ended = [&] {
    return inside ? inside->children.load(std::memory_order_acquire) == 1
                  : executor->ended() >= graph.submitted();
  };
  const bool settles = !inside && !refuses;
  begin_cancelling();
  try {
    reductions->end_all(inside);
    executor->wait(all_ended, never);
    if (settles) settle();
    renaming->keep_what_was_not_copied();
  } catch (...) {
    end_cancelling();
    throw;
  }
  end_cancelling();
  if (settles) settle_renamed();
  failures.take_first();
}

void Engine::cancel() {
  Impl& impl = checked();
  // Inside of a task what it submitted ends; the task itself can't.
  Task* const inside = current_task(impl.graph);
  if (inside) impl.executor->wait([] { return true; }, never);  // refused on devices
  if (impl.refuses) {
    impl.end_holds();  // the engine is about to end, and with it what waits for the host
    return impl.cancel_all(inside);
  }
  impl.refuse_own_holds();
  // Whoever returns finds the data as promised, not on another one's way.
  std::unique_lock<std::mutex> turn(impl.cancel_mutex, std::defer_lock);
  if (!inside) turn.lock();
  impl.cancel_all(inside);
}

void EngineAccess::leave(Engine& engine, std::function<void()> end) {
  engine.impl_->left.add(std::move(end));
}

void EngineAccess::cancel(Engine& engine, TaskGroup& group) {
  group.cancelled.store(true, std::memory_order_release);
  engine.checked().executor->wait([&] { return group.all_ended(); }, never);
}

}  // namespace quadriga
