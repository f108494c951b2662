// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver.h: drives a backend's devices: an inbox, a clock and a loop around the
// scheduler, which decides, and the issuers, which carry out.
//
// Under a real clock the driver has a thread of its own, which sleeps in the backend; under the
// virtual clock step() is called by whoever waits, and time passes only there.
//
// Invariants
//
//   1. Scheduler and instructions belong to the driver's thread; others reach them by execute().
//      Under the virtual clock they belong to who holds `driving_`.
//
//   2. New data, submitted and ready tasks come in through `inbox_`, guarded by inbox_mutex_, in
//      order; data comes before its tasks, a task is submitted before it is ready.
//
//   3. What the scheduler tells is kept in `news_` and taken by settle(), which tells the graph and
//      gives the scheduler what follows as events.
//
//   4. Waiters sleep on changed_; the driver signals after each batch of completions.
//
//   5. The log may take locks of the user's, such as Python's GIL: waiters write it, not
//      the driver.
#pragma once

#include <quadriga/engine.h>

#include <condition_variable>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "engine/executor.h"
#include "engine/issuers.h"
#include "engine/promises.h"
#include "engine/recorder.h"
#include "graph/failures.h"
#include "graph/graph.h"
#include "memory/device_spaces.h"
#include "schedule/scheduler.h"

namespace quadriga {

class Driver final : public Executor, private ScheduleListener, private TaskRunner {
 public:
  Driver(Graph& graph, Failures& failures, Recorder& recorder, const Machine& machine,
         const EngineOptions& options, std::unique_ptr<Backend> backend);
  ~Driver() override;

  void add(Datum& datum) override;
  void remove(std::span<Datum* const> data) override;
  void check(const Task& task) override { scheduler_->feasibility().check(task); }
  std::vector<bool> partial_places(const Codelet& codelet, const Datum& target) const override {
    return scheduler_->feasibility().partial_places(codelet, target);
  }
  void submitted(Task& task) override;
  void ready(Task& task, std::uint64_t id) override;
  void kept(Task& task, std::uint64_t id, std::exception_ptr error) override;
  bool cancelled() const noexcept override { return cancelled_.load(std::memory_order_acquire); }
  bool help() override;
  bool wait(const std::function<bool()>& condition, Nanoseconds deadline) override;
  bool bring_home(std::span<Datum* const> data, Nanoseconds deadline) override;
  bool bring_all_home(Nanoseconds deadline) override;
  bool give_back(std::span<Datum* const> data, bool overwrites, Nanoseconds deadline) override;
  void end_hold(Task& hold, std::span<Datum* const> written) override;
  void final(Datum& datum) override;
  void final_later(Datum& datum) override;
  void evict(Datum& datum) override;
  std::vector<bool> valid(std::span<Datum* const> data, SpaceId space) const override;
  std::size_t memory_bytes(DeviceId device) const override;
  DeviceId holder(const void* memory) const override { return backend_->holder(memory); }
  void synchronize(DeviceId device, std::uintptr_t stream) const override {
    backend_->synchronize(device, stream);
  }
  Nanoseconds now() const override { return backend_->now(); }
  std::uint64_t ended() const override { return ended_.load(std::memory_order_acquire); }
  void cancel(bool on) override;
  void count(Counters& counters) const override;
  void reset_counters() override;
  std::string status() const override;

 private:
  struct Message {
    enum class Kind { data, submitted, ready, kept, final } kind;
    Task* task;
    Datum* datum;
    std::uint64_t id = 0;           ///< Of a task that is ready, or whose promise was kept.
    std::exception_ptr error = {};  ///< Of a task whose promise was kept.
  };
  struct Command {
    const std::function<void()>* work;
    std::atomic<bool> done{false};
    std::exception_ptr error;
  };
  /// A task that was issued, or one that has left the schedule.
  struct News {
    PlannedTask* issued = nullptr;
    EndedTask ended;
  };
  /// What counters say of the run as a whole.
  struct Extent {
    Nanoseconds longest_path = 0;
    Nanoseconds work = 0;
    Nanoseconds first = -1;
    Nanoseconds last_end = 0;
  };

  // ScheduleListener
  void issued(PlannedTask& planned) override { news_.push_back({&planned, {}}); }
  void ended(const EndedTask& ended) override { news_.push_back({nullptr, ended}); }
  void failed(Task& task, std::exception_ptr error, DeviceId device) override;
  void content_lost(std::exception_ptr error) override { failures_.note(std::move(error)); }
  void noticed(std::string text) override;
  void marked(DeviceId device, Mark mark, TileId tile, std::uint64_t task) override;
  void copied(const EndedCopy& copy, const Completion& completion) override;
  void ran(const PlannedTask& planned, const Completion& completion) override;
  void freed(SpaceId space, std::byte* block, std::size_t bytes) override;
  // TaskRunner
  void run(const PlannedTask& planned, const Arguments& arguments) override;
  void run_variant(const PlannedTask& planned, const Arguments& arguments);
  static bool met_failure(const PlannedTask& planned);
  static void note_failure(const PlannedTask& planned) noexcept;

  std::vector<std::vector<StreamId>> open_streams();
  void open_log(const EngineOptions& options, const MemoryOptions& memory,
                std::span<const std::vector<StreamId>> kernel_streams);
  int most_rounds() const noexcept;
  void loop();
  void post(const Message& message);
  /// Runs something on the driver's side, and waits for it.
  void execute(const std::function<void()>& work);
  /// False if there was none.
  bool run_commands();
  static void answer(Command& command, std::exception_ptr error);
  void break_down(std::exception_ptr error);
  void rethrow_if_broken();
  /// Takes messages, decides, then takes completions until the deadline. False if nothing happened
  /// and nothing is in flight.
  bool step(Nanoseconds deadline);
  bool drive(Nanoseconds deadline);
  void take_messages();
  void take(const Message& message);
  Cost cost_of(const Task& task);
  bool decide();
  std::size_t take_completions(Nanoseconds deadline);
  bool has_mail();
  /// Tells the graph what happened, and lets the issuers have what was decided.
  void settle();
  void release_successors(PlannedTask& planned);
  void drop_edges(Task& task, const EndedTask& ended, std::vector<Task*>& late);
  void task_ended(const EndedTask& ended);
  void release(const EndedTask& ended);
  void release_waiting(Task& task);

  bool go_home(Datum& datum, std::exception_ptr& refusal);
  template <class Each>
  bool bring_home(Nanoseconds deadline, Each&& each);
  bool await_promise();
  bool drive_until(const std::function<bool()>& condition, Nanoseconds deadline);
  bool sleep_until(const std::function<bool()>& condition, Nanoseconds deadline);
  void tell_notices();
  void signal_waiters();
  std::string describe() const;

  Graph& graph_;
  Failures& failures_;
  Recorder& recorder_;
  const Machine& machine_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<DeviceSpaces> spaces_;
  std::vector<std::size_t> library_bytes_;  ///< By device.
  std::vector<int> lane_of_stream_;
  std::vector<int> lane_of_device_;  ///< Of its first compute stream.
  std::vector<DeviceId> device_of_stream_;
  std::ofstream log_file_;
  std::unique_ptr<ScheduleLog> log_;  ///< As the setting schedule_log says; null: none.
  Instructions instructions_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Issuers> issuers_;

  std::vector<News> news_;
  bool any_ended_ = false;  ///< A task left the schedule since waiters were signalled.
  /// Tasks that ran, but whose children have not ended, or a predecessor, as one that reads another
  /// replica of what the task wrote: it may be slower, and holds edges that lie in its successors.
  std::map<Task*, EndedTask> waiting_;
  FreeSlots free_;
  Extent extent_;
  std::vector<Completion> completions_;
  std::vector<View> views_;  ///< Scratch of cost_of().

  mutable std::recursive_mutex driving_;  ///< Virtual clock only: invariant 1.
  const bool virtual_;
  std::mutex inbox_mutex_;
  std::vector<Message> inbox_;
  std::vector<Message> taken_;
  std::condition_variable arrived_;                 ///< Something did in inbox_.
  std::vector<std::shared_ptr<Command>> commands_;  ///< Guarded by inbox_mutex_.
  std::exception_ptr broken_;                       ///< Guarded by inbox_mutex_.
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<bool> cancelled_{false};  ///< As cancel() left it; the scheduler follows.
  bool is_cancelled_ = false;           ///< As the scheduler was told.
  std::atomic<bool> stopping_{false};
  std::atomic<int> waiters_{0};
  std::mutex wait_mutex_;
  std::vector<std::string> notices_;  ///< Guarded by wait_mutex_.
  std::condition_variable changed_;
  BlockingThreads blocking_;
  std::thread thread_;
};

}  // namespace quadriga
