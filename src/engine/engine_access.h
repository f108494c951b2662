// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_access.h: access to an engine and its handles beyond their public functions,
// for the library and its tests: how one is made, tasks of the library's own, and their groups.
//
// What needs no more than the parts of an engine stands beside these: on_host.h, occupied.h,
// message_tasks.h.
#pragma once

#include <quadriga/engine.h>

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/backend.h"
#include "graph/group.h"
#include "graph/task.h"

namespace quadriga {

class Graph;

class DeviceSide;

/// Puts something around a backend.
using BackendWrap = std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend>)>;

/// How an engine is made whose backend has something around it, as injected faults. An engine made
/// without EngineAccess has nothing around its backend.
struct WrappedOptions : EngineOptions {
  BackendWrap wrap_backend = {};
};

/// One of several tasks that start together.
struct GangTask {
  const Codelet* codelet = nullptr;
  std::vector<Operand> operands;
  DeviceId device = no_device;  ///< Its own.
  std::span<const std::byte> params = {};
};

class EngineAccess {
 public:
  using Impl = Engine::Impl;
  /// What an engine consists of. Errors: as of all its functions, in a forked child.
  static Impl& impl(const Engine& engine) { return engine.checked(); }
  static Engine make(WrappedOptions options);
  static std::unique_ptr<Engine> make_unique(WrappedOptions options) {
    return std::unique_ptr<Engine>(new Engine(make(std::move(options))));
  }
  static Datum* datum(const Data& data) noexcept { return data.datum_; }
  static Datum* datum(const Sequence& sequence) noexcept { return sequence.datum_; }
  static Data data(Datum& datum) noexcept { return Data(&datum); }
  static HostAccess access(std::shared_ptr<Hold> hold) noexcept {
    HostAccess made;
    made.hold_ = std::move(hold);
    return made;
  }
  static TaskRef task(const Future& future) noexcept { return {future.task_, future.id_}; }

  /// As Engine::data(); no_device: on the host. Private: the library's own, whose memory its caller
  /// holds: it is nobody's alias, and stays on devices beyond waits.
  /// `watch`: hears of its copies, and outlives it.
  static Data add(Engine& engine, DeviceId device, const View& view, DataOptions options,
                  bool is_private, CopyWatch* watch = nullptr);
  /// Waits until a condition holds that ends of tasks and copies bring about: under the virtual
  /// clock the caller drives meanwhile. False after `timeout` seconds.
  static bool wait_until(Engine& engine, const std::function<bool()>& condition, double timeout);
  /// What failed first of all that made a task fail, or not run; nobody is told by it.
  static std::string why_failed(const Engine& engine, std::uint64_t task);

  /// As Backend's. Any thread.
  static bool pin(Engine& engine, std::byte* memory, std::size_t bytes);
  static void unpin(Engine& engine, std::byte* memory, std::size_t bytes) noexcept;

  /// Whether a device was set aside, as one that is lost. Any thread.
  static bool is_lost(const Engine& engine, DeviceId device);

  /// While on, submissions throw invalid_argument, those included that wait for a full window.
  static void refuse(Engine& engine, bool on) noexcept;
  /// Whether this thread's next submission finds room in the window, so that it doesn't wait.
  static bool has_room(Engine& engine);
  /// As Engine::submit(); the task belongs to a group, which the calling thread keeps until wait()
  /// or cancel() has returned. `side`: of a codelet that detaches there and on the host; it belongs
  /// to `held`. That is let go once the task has ended, whether or not it ran, or
  /// was refused: by a thread of the engine's, so that its destructor neither waits nor submits.
  static Future submit(Engine& engine, const Codelet& codelet, std::span<const Operand> operands,
                       std::span<const std::byte> params, const SubmitOptions& options,
                       TaskGroup* group, std::shared_ptr<void> held = {},
                       DeviceSide* side = nullptr);
  /// Sets `open`, for which a deferred task waits (DeviceSide::choose): it is asked again.
  static void reopen(Engine& engine, const TaskRef& task, std::atomic<bool>& open);
  /// By which occupied_engines() names it.
  static const Graph* graph(const Engine& engine);
  /// The number of the task whose body this thread runs; 0 outside of the engine's.
  static std::uint64_t running(const Engine& engine) noexcept;
  /// Calls this once no task is left, outside of bodies (let_go.h).
  static void leave(Engine& engine, std::function<void()> end);
  /// Submits tasks that start together, so that their variants may wait for each other: none is
  /// issued before all operands of all of them have room, each on the device that it names. If one
  /// can't run then, or its device is lost, none does. A variant that waits leaves room on its
  /// device for what was queued before it there, and gives up once the gang is broken, see gang.h:
  /// another may fail, or what it reads. Those of codelets that wait to queue may also wait for
  /// each other before they queue anything. Under the virtual clock they run one by one. Tasks let
  /// go of the gang once they have ended, whether or not they ran, by a thread of the engine's; at
  /// an error here nothing of it is kept.
  ///
  /// Errors:  as submit(); too_large or unavailable if one can't run on its device;
  ///          invalid_argument if two name the same device or share memory that one writes, and for
  ///          modes commute and reduce, and codelets that submit, detach or block.
  static std::vector<Future> submit_together(Engine& engine, std::span<const GangTask> tasks,
                                             const std::shared_ptr<Gang>& gang,
                                             TaskGroup* group = nullptr);
  /// Waits until the group's tasks have ended and `data`, which no others touch, are home.
  /// Errors: the group's first failure, for wait(double) it is none; deadline.
  static void wait(Engine& engine, TaskGroup& group, std::span<const Data> data,
                   double timeout = -1);
  /// Names a stretch of time in the trace, if there is one. `details`: an object in JSON of what a
  /// stream did in it.
  static void section(Engine& engine, std::string name, Nanoseconds begin, Nanoseconds end,
                      std::string details = {});
  /// Whether a task failed or was cancelled; false while it hasn't ended.
  static bool failed(const Engine& engine, const Future& task);
  /// The first failure of the group's tasks so far; null if there is none.
  static std::exception_ptr failure_of(const Engine& engine, const TaskGroup& group);
  /// The machine by whose figures time passes; Engine::machine() but for EngineOptions::believed.
  static const Machine& truth(const Engine& engine) noexcept;
  /// Engine::cancel() for the group's tasks alone; returns when all of them have ended.
  static void cancel(Engine& engine, TaskGroup& group);
};

}  // namespace quadriga
