// SPDX-License-Identifier: BSD-3-Clause
// src/engine/executor.h: the graph's interface to the executor of its tasks (host pool or driver).
#pragma once

#include <quadriga/machine.h>
#include <quadriga/report.h>

#include <atomic>
#include <exception>
#include <functional>
#include <span>
#include <string>

#include "engine/device_services.h"
#include "engine/hold.h"
#include "engine/waiters.h"
#include "graph/task.h"

namespace quadriga {

class Executor {
 public:
  virtual ~Executor() = default;

  /// A datum was registered. Its `tile` is the executor's to set.
  virtual void add(Datum& datum) = 0;
  /// Data whose tasks have ended and whose content isn't wanted any more are forgotten.
  virtual void remove(std::span<Datum* const> data) = 0;
  /// Throws too_large or unavailable if the task can never run.
  virtual void check(const Task& task) = 0;
  /// By place, whether a reduction has a partial result there, or tasks add in place; empty: they
  /// do everywhere. Any thread.
  virtual std::vector<bool> partial_places(const Codelet& codelet, const Datum& target) const = 0;
  /// Called under the submission lock, in submission order.
  virtual void submitted(Task& task) = 0;
  /// The task became ready for this executor: predecessors issued (`pending` low half 0) or
  /// all done. `id` is the task's: by the time of the call it may have ended, and its slot
  /// be another's.
  virtual void ready(Task& task, std::uint64_t id) = 0;
  /// The promise of a detached task was kept, see promises.h; `error` null: it has ended well. Any
  /// thread, also while the body runs.
  virtual void kept(Task& task, std::uint64_t id, std::exception_ptr error) = 0;
  /// What the engine's own copies between memory of the host do: a body that waits runs them, too.
  /// Set before the first task; null: there are none.
  const Codelet* copies = nullptr;
  /// Threads that are inside of kept(): they may still be there when the task's end is known, and
  /// the executor goes once there are none.
  std::atomic<int> keepers{0};
  /// What cancel() set last. Any thread.
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }
  /// Runs or drives something for a while; false if there was nothing to do. Called by submitters
  /// that meet a full window.
  virtual bool help() = 0;
  /// Waits until `condition` holds; it is looked at whenever a task ended, also by who ends it if
  /// `checked` says so. False at the deadline.
  virtual bool wait(const std::function<bool()>& condition, Nanoseconds deadline,
                    Checked checked) = 0;
  /// Brings the newest content of the data home once these tasks have ended; other writers have.
  /// False at the deadline; it goes on then.
  virtual bool bring_home(std::span<Datum* const> data, std::span<const TaskRef> after,
                          Nanoseconds deadline) = 0;
  /// The same for all data that isn't kept; those that aren't resident leave the devices.
  virtual bool bring_all_home(Nanoseconds deadline) = 0;
  /// What ended tasks left on devices of data that aren't resident comes home and leaves them, but
  /// for what pending tasks use. False at the deadline; it goes on then.
  virtual bool bring_ended_home(Nanoseconds deadline) = 0;
  /// Whether that has something to do. Any thread.
  virtual bool has_lingering() const noexcept = 0;
  /// Data that are home, whose tasks have ended, leave the devices: the host may write them. False
  /// at the deadline. `overwrites`: it does; else lost content stays lost.
  virtual bool give_back(std::span<Datum* const> data, bool overwrites, Nanoseconds deadline) = 0;
  /// Ends an access of the host's, see Graph::link_hold(), which may have written these data, and
  /// parts of others: those may have been removed since, and their addresses are compared only.
  virtual void end_hold(Task& hold, std::span<Datum* const> written,
                        std::span<Datum* const> others) = 0;
  /// No task submitted from here on writes the data. Nobody waits for that to be known.
  virtual void final(Datum& datum) = 0;
  virtual void evict(Datum& datum) = 0;
  /// Whether the space has the newest content, or will have it when a copy has arrived.
  virtual std::vector<bool> valid(std::span<Datum* const> data, SpaceId space) const = 0;
  /// Whether the newest content is at home, and isn't still to come by a copy.
  virtual bool has_come_home(const Datum& datum) const = 0;
  /// What else the devices do for a program. Any thread.
  virtual DeviceServices& devices() noexcept = 0;
  virtual Nanoseconds now() const = 0;
  /// Tasks that have ended so far.
  virtual std::uint64_t ended() const = 0;
  /// While set, tasks that have not started end cancelled.
  virtual void cancel(bool on) { cancelled_.store(on, std::memory_order_release); }
  virtual void count(Counters& counters) const = 0;
  virtual void reset_counters() = 0;
  virtual std::string status() const = 0;

 private:
  std::atomic<bool> cancelled_{false};
};

}  // namespace quadriga
