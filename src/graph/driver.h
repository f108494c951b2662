// SPDX-License-Identifier: BSD-3-Clause
// src/graph/driver.h: drives a backend's devices: places, stages, issues, completes. One thread.
//
// Under a real clock the driver has a thread of its own, which sleeps in the backend; under the
// virtual clock step() is called by whoever waits, and time passes only there.
//
// Invariants
//   1. Plan, memory, policy and backend belong to the driver's thread; others reach them by
//   execute().
//      Under the virtual clock they belong to who holds `driving_`.
//   2. New data, submitted and ready tasks come in through `inbox_`, guarded by inbox_mutex_, in
//   order;
//      data comes before its tasks, a task is submitted before it is ready.
//   3. A task holds nothing before it is issued; issuing reserves, stages and queues in one step.
//   4. A queued operation waits only for events of operations queued before.
//   5. Per device, once a task found no room, it is the head: nothing else is issued there before
//   it.
//   6. Waiters sleep on changed_; the driver signals after each batch of completions.
//   7. The log may take locks of the user's, such as Python's GIL: waiters write it, not the
//   driver.
#pragma once

#include <quadriga/engine.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device/backend.h"
#include "graph/executor.h"
#include "graph/failures.h"
#include "graph/graph.h"
#include "graph/lookahead.h"
#include "graph/plan.h"
#include "graph/policy.h"
#include "graph/predictions.h"
#include "graph/recorder.h"
#include "memory/memory.h"

namespace quadriga {

class Driver final : public Executor, private MemoryListener {
 public:
  Driver(Graph& graph, Failures& failures, Recorder& recorder, const Machine& machine,
         const EngineOptions& options, std::unique_ptr<Backend> backend);
  ~Driver() override;

  void add(Datum& datum) override;
  void remove(std::span<Datum* const> data) override;
  void check(const Task& task) override;
  std::vector<bool> partial_places(const Codelet& codelet, const Datum& target) const override;
  void submitted(Task& task) override;
  void ready(Task& task, std::uint64_t id) override;
  bool help() override;
  bool wait(const std::function<bool()>& condition, Nanoseconds deadline) override;
  bool bring_home(std::span<Datum* const> data, Nanoseconds deadline) override;
  bool bring_all_home(Nanoseconds deadline) override;
  void finalize(Datum& datum) override;
  void evict(Datum& datum) override;
  std::vector<bool> valid(std::span<Datum* const> data, SpaceId space) const override;
  std::size_t memory_bytes(DeviceId device) const override {
    const SpaceId space = machine_.devices[device].space;
    return space == host_space ? 0 : memory_->capacity(space);
  }
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
    enum class Kind { data, submitted, ready } kind;
    Task* task;
    Datum* datum;
    std::uint64_t id = 0;  ///< Of the task that is ready.
  };
  struct ComputeStream {
    StreamId id = 0;
    int lane = 0;
    std::deque<std::pair<std::uint64_t, PlannedTask*>> issued;  ///< By ticket.
    double issued_seconds = 0;                                  ///< Of their kernels.
    int waiting = 0;  ///< Issued tasks whose variants may wait.
  };
  struct DeviceState {
    DeviceId id = 0;
    SpaceId space = host_space;
    std::vector<ComputeStream> streams;
    PlannedTask* head = nullptr;  ///< Found no room (invariant 5).
    bool lacks_buffer = false;    ///< Its head: one on the host.
    int issued = 0;
    double issued_seconds = 0;
    bool lost = false;
    std::exception_ptr loss;  ///< Why.
    std::unique_ptr<Lookahead> lookahead;
    std::deque<Fetch> fetches;  ///< Foreseen and not made yet.
    bool touched = true;        ///< Something changed that may let it do more.
    bool open = false;          ///< It may find a task to issue.
    bool looked = false;        ///< For one, since it last filled up.
    bool awaits_source =
        false;  ///< A ready task waits for content that another device still makes.
  };
  struct Waiting {
    Edge* released = nullptr;
    DeviceId device = no_device;
    Nanoseconds path = 0;
  };

  // MemoryListener
  std::uint64_t next_use(TileId tile, SpaceId space) const override;
  void copy_ended(StreamId stream, Reason reason, TileId tile, SpaceId from, SpaceId to,
                  std::size_t bytes, const Completion& completion) override;
  void evicted(TileId tile, SpaceId space) override;
  void departed(TileId tile, SpaceId space) override;
  void probed(SpaceId space, const Completion& completion) override;
  void fetchable(TileId tile, SpaceId from);

  void loop();
  void post(const Message& message);
  /// Runs something on the driver's side, and waits for it.
  void execute(const std::function<void()>& work);
  void run_commands();
  struct Command;
  static void answer(Command& command, std::exception_ptr error);
  void break_down(std::exception_ptr error);
  void rethrow_if_broken();
  bool go_home(Datum& datum, std::exception_ptr& refusal);
  template <class Each>
  bool bring_home(Nanoseconds deadline, Each&& each);
  /// Takes messages, issues what it can, then takes completions until the deadline. False if
  /// nothing happened and nothing is in flight.
  bool step(Nanoseconds deadline);
  bool drive(Nanoseconds deadline);
  void take_messages();
  void plan(Task& task);
  void activate(PlannedTask& planned);
  void choose_device(PlannedTask& planned);
  void place_on(PlannedTask& planned, DeviceId device);
  DeviceId given_device(const Task& task) const;
  bool is_bound(const Task& task) const;
  std::size_t bytes_needed(const Task& task, SpaceId space) const;
  bool takes_over(const DeviceState& device, const Codelet& codelet) const;
  bool can_run(const DeviceState& device, const Task& task) const;
  bool may_issue(const DeviceState& device, const PlannedTask& planned) const;
  void predict(PlannedTask& planned);
  double seconds_on(const PlannedTask& planned, DeviceId device) const;
  void predict_on(PlannedTask& planned, DeviceId device);
  void predict_again(PlannedTask& planned);
  Experience experience_on(const PlannedTask& planned, DeviceId device) const;
  Nanoseconds expected(const PlannedTask& planned) const;

  bool pump();
  bool issue_in_turn(DeviceState& device);
  bool fill_up(DeviceState& device);
  static void touch(DeviceState& device) { device.touched = true; }
  bool wants_more(const DeviceState& device) const;
  /// Issues the best ready task; false if none could be.
  bool issue_next(DeviceState& device);
  Outcome issue(DeviceState& device, PlannedTask& planned);
  void note_needs(PlannedTask& planned);
  void spare_task(PlannedTask& planned);
  void launch(DeviceState& device, PlannedTask& planned);
  static bool has_enough(const ComputeStream& stream);
  bool can_start(const DeviceState& device, const ComputeStream& stream) const;
  ComputeStream& stream_for(DeviceState& device, const PlannedTask& planned);
  bool may_prefetch(const DeviceState& device) const;
  void prefetch(DeviceState& device);
  class Sight;
  void look_ahead(DeviceState& device);
  bool steal(DeviceState& thief);
  bool steal_from(const DeviceState& victim, DeviceState& thief);
  static double width(const DeviceState& device);
  std::vector<double> stealable(const DeviceState& thief);
  StealCandidate candidate(const PlannedTask& planned, const DeviceState& thief,
                           const DeviceState& victim, double& fetch);

  void complete(const Completion& completion);
  void finish(PlannedTask& planned, std::exception_ptr error);
  void release(Task& task, Edge* earlier, DeviceId device, Nanoseconds path);
  void release_waiting(Task& task);
  void written_ok(PlannedTask& planned);
  void empty_partials(PlannedTask& planned);
  void poison_written(PlannedTask& planned);
  static void poison_reader(PlannedTask& planned, const Datum& datum, std::uint32_t epoch);
  void send_final_home(TileId tile);
  Error home_lost(const PlannedTask& planned) const;
  Error none_left() const;
  void retry_write_back(TileId tile, Reason reason);
  void doom_readers(TileId tile, const Completion& copy);
  void content_lost(TileId tile, std::exception_ptr error);
  void lose_device(DeviceState& device, const std::exception_ptr& cause);
  void note_before(PlannedTask& planned);
  std::uint32_t rewriters(const PlannedTask& planned, TileId tile) const;
  bool is_being_written(TileId tile);
  bool is_recovering() const;
  bool has_what_it_began_with(const PlannedTask& planned) const;
  bool result_is_lost(const PlannedTask& planned) const;
  bool run_again(PlannedTask& planned);
  /// Fails a task that can't be issued any more.
  void fail_task(PlannedTask& planned, std::exception_ptr error);
  bool fail_without_buffer();
  bool leave_host(PlannedTask& planned);
  Error no_buffer() const;
  /// Something that who waits next shall say in the log.
  void notice(std::string text);
  bool drive_until(const std::function<bool()>& condition, Nanoseconds deadline);
  bool sleep_until(const std::function<bool()>& condition, Nanoseconds deadline);
  void tell_notices();
  bool anything_in_flight() const;
  void signal_waiters();
  DeviceState* device_at(SpaceId space);
  std::string explain_stuck() const;

  Graph& graph_;
  Failures& failures_;
  Recorder& recorder_;
  const Machine& machine_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Policy> policy_;
  Plan plan_;
  std::unique_ptr<Memory> memory_;
  std::vector<DeviceState> devices_;
  std::vector<int> lane_of_stream_;
  std::vector<std::pair<DeviceState*, ComputeStream*>> compute_of_stream_;
  /// Tasks that ran, but whose children have not ended, or a predecessor, as one that reads another
  /// replica of what the task wrote: it may be slower, and holds edges that lie in its successors.
  std::map<Task*, Waiting> waiting_;
  std::map<std::uint64_t, int> retries_;  ///< Of write-backs that failed, by tile.
  Calibration calibration_;
  mutable Predictions predictions_;  ///< Remembers what it was asked.
  FreeSlots free_;
  std::vector<Completion> completions_;
  const PlannedTask* ending_ = nullptr;  ///< Whose completion is being taken.
  std::vector<Need> needs_;              ///< Of the task that is being issued.
  std::vector<Resident> residents_;
  Nanoseconds longest_path_ = 0;
  Nanoseconds work_ = 0;
  Nanoseconds first_ = -1;
  Nanoseconds last_end_ = 0;
  std::atomic<bool> cancelled_{false};  ///< Set by any thread.
  bool failed_ = false;                 ///< A task failed without a completion since the last step.
  bool more_to_issue_ = false;          ///< Some device may have, after the last step.
  std::size_t next_turn_ = 0;           ///< The device after the one that issued last.

  mutable std::recursive_mutex driving_;  ///< Virtual clock only: invariant 1.
  bool virtual_ = false;
  std::mutex inbox_mutex_;
  std::vector<Message> inbox_;
  std::vector<Message> taken_;
  struct Command {
    const std::function<void()>* work;
    std::atomic<bool> done{false};
    std::exception_ptr error;
  };
  std::vector<std::shared_ptr<Command>> commands_;  ///< Guarded by inbox_mutex_.
  std::exception_ptr broken_;                       ///< Guarded by inbox_mutex_.
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<int> waiters_{0};
  std::mutex wait_mutex_;
  std::vector<std::string> notices_;  ///< Guarded by wait_mutex_.
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace quadriga
