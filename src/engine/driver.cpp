// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver.cpp: the driver's life: messages in, steps, completions.
#include "engine/driver.h"

#include <algorithm>
#include <utility>

#include "base/config.h"
#include "base/thread.h"
#include "device/factory.h"
#include "engine/bodies.h"
#include "engine/engine_impl.h"
#include "engine/kernel_streams.h"
#include "engine/libraries.h"
#include "schedule/policy_registry.h"

namespace quadriga {
namespace {

#ifdef NDEBUG
constexpr bool poisons_freed_blocks = false;
#else
constexpr bool poisons_freed_blocks = true;
#endif

}  // namespace

Driver::Driver(Graph& graph, Failures& failures, Recorder& recorder, const Machine& machine,
               const EngineOptions& options, std::unique_ptr<Backend> backend)
    : graph_(graph),
      machine_(machine),
      backend_(std::move(backend)),
      virtual_(backend_->is_virtual()),
      spaces_(std::make_unique<DeviceSpaces>(*backend_, machine)),
      record_(recorder, machine, *backend_),
      releases_(graph, inbox_),
      waiters_([this] { return now(); }),
      // Under the virtual clock protection catches who reads a freed block.
      news_(machine, *spaces_, {failures, record_, releases_, waiters_},
            options.compute ? nullptr : keep_promise(), poisons_freed_blocks && !virtual_,
            [this](Task& task) { go_on(*this, task); }),
      devices_(*backend_, machine, *spaces_, news_, waiters_),
      bodies_(*this, graph, machine, !virtual_, options.blocking_threads) {
  spaces_->for_each_stream(
      machine_, [&](DeviceId device, StreamId stream, StreamKind kind, std::string name) {
        record_.open(device, stream, kind, std::move(name));
      });
  const auto kernel_streams = make_kernel_streams(*backend_, machine_, record_);
  library_bytes_ = make_library_handles(*backend_, machine_, *spaces_, kernel_streams);
  spaces_->take_memory(machine_);
  const MemoryOptions memory{.spill_bytes = options.host_memory};
  const std::string eviction = Config::global().text("eviction");
  ScheduleLog* const log = log_.open(Config::global().text("schedule_log"));
  if (log)
    log->begin(machine_, options.policy, eviction, options.seed, most_rounds(), memory,
               spaces_->spaces(), kernel_streams);
  scheduler_ = std::make_unique<Scheduler>(
      machine_, instructions_, news_, bodies_,
      ScheduleOptions{.policy = make_policy(options.policy, {machine_, options.seed}, eviction),
                      .memory = memory,
                      .spaces = spaces_->spaces(),
                      .kernel_streams = kernel_streams,
                      .most_rounds = most_rounds(),
                      .log = log});
  backend_->on_full([this](DeviceId device) { return devices_.make_room(device); });
  issuers_ = std::make_unique<Issuers>(*backend_, record_.device_of_stream(), !virtual_);
  loop_.emplace(DriverLoop::Parts{*backend_, instructions_, inbox_, releases_, waiters_, record_,
                                  *scheduler_, *issuers_},
                virtual_);
  if (virtual_)
    drive_.emplace(inbox_, hooks());
  else
    thread_ = start_thread("quadriga driver", [this] { loop(); });
}

/// Where bodies aren't run, nobody else does.
ScheduleNews::Promise Driver::keep_promise() {
  return [this](Task& task) { kept(task, task.id, nullptr); };
}

/// Of issuing, under a real clock: it takes time, in which nobody sees what has ended.
int Driver::most_rounds() const noexcept { return virtual_ ? 0 : 4; }

Driver::~Driver() {
  if (thread_.joinable()) {
    stopping_.store(true);
    backend_->wake();
    thread_.join();
  }
  const bool is_broken = inbox_.is_broken();
  // Nobody answers any more.
  if (!is_broken)
    inbox_.break_down(std::make_exception_ptr(Error(Errc::cancelled, "the engine was closed")));
  issuers_->stop();
  if (is_broken || (!virtual_ && scheduler_->in_flight())) {
    // What is queued may still use this memory, and the host's buffers.
    spaces_->keep_reserves();
    backend_.reset();
    spaces_->release();
    static_cast<void>(scheduler_.release());
  }
  scheduler_.reset();
}

VirtualDrive::Hooks Driver::hooks() {
  const auto others = [this] {
    if (graph_.has_holds()) return VirtualDrive::Others::access;
    return scheduler_->awaits_promises() ? VirtualDrive::Others::promises
                                         : VirtualDrive::Others::nothing;
  };
  return {.step = [this](Nanoseconds deadline) { return loop_->step(deadline); },
          .now = [this] { return now(); },
          .others = others,
          .all_ended = [this] { return ended() >= graph_.submitted(); },
          .broken = [this](std::exception_ptr error) { break_down(std::move(error)); },
          .status = [this] { return describe(); }};
}

void Driver::loop() {
  try {
    while (!stopping_.load(std::memory_order_acquire)) loop_->step(never);
    // Prefetches that nobody waited for use memory that is about to go.
    constexpr Nanoseconds patience = 10'000'000'000;
    const Nanoseconds until = now() + patience;
    while (scheduler_->memory().transfers().in_flight() > 0 && now() < until) loop_->step(until);
  } catch (...) {
    break_down(std::current_exception());
  }
}

/// A bug of ours or of the backend's: nothing more is driven, and whoever waits is told why.
void Driver::break_down(std::exception_ptr error) {
  inbox_.break_down(std::move(error));
  waiters_.wake_all();
}

void Driver::post(const Message& message) {
  const bool was_empty = inbox_.post(message);
  if (was_empty && !virtual_ && std::this_thread::get_id() != thread_.get_id()) backend_->wake();
}

void Driver::add(Datum& datum) { post({.kind = Message::Kind::data, .datum = &datum}); }
void Driver::final(Datum& datum) { post({.kind = Message::Kind::final, .datum = &datum}); }
void Driver::submitted(Task& task) { post({.kind = Message::Kind::submitted, .task = &task}); }
void Driver::ready(Task& task, std::uint64_t id) {
  post({.kind = Message::Kind::ready, .task = &task, .id = id});
}

void Driver::kept(Task& task, std::uint64_t id, std::exception_ptr error) {
  post({.kind = Message::Kind::kept, .task = &task, .id = id, .error = std::move(error)});
}

void Driver::execute(const std::function<void()>& work) {
  if (virtual_) {
    return drive_->execute([&] {
      loop_->take_messages();
      work();
      loop_->settle();
    });
  }
  if (std::this_thread::get_id() == thread_.get_id()) return work();
  const std::function<bool()> once = [&] {
    work();
    return true;
  };
  const auto request = std::make_shared<DriverRequest>(once);
  inbox_.post(request);
  backend_->wake();
  request->await();
}

bool Driver::execute_until(const std::function<bool()>& work, Nanoseconds deadline) {
  if (virtual_ || current_task(graph_) || std::this_thread::get_id() == thread_.get_id()) {
    bool is_done = false;
    const auto condition = [&] {
      if (!is_done) execute([&] { is_done = work(); });
      return is_done;
    };
    return condition() || wait(condition, deadline, Checked::by_waiter);
  }
  const auto request = std::make_shared<DriverRequest>(work);
  inbox_.post(request);
  backend_->wake();
  bool is_done = true;
  if (deadline == never) {
    request->await();
  } else if (!request->await_for(
                 std::chrono::nanoseconds(std::max<Nanoseconds>(deadline - now(), 0)))) {
    execute([&] { request->withdraw(); });
    is_done = request->await_for(std::chrono::nanoseconds(0));  // it may just have been
  }
  waiters_.tell_notices();
  return is_done;
}

std::unique_ptr<Executor> make_driver(Graph& graph, Failures& failures, Recorder& recorder,
                                      const Machine& machine, const Machine& truth,
                                      const EngineOptions& options,
                                      const BackendWrap& wrap_backend) {
  BackendOptions backend_options;
  backend_options.virtual_clock = options.virtual_clock;
  backend_options.virtual_options.compute = options.compute;
  backend_options.virtual_options.protect = options.protect;
  backend_options.virtual_options.seed = options.seed;
  std::unique_ptr<Backend> backend = make_backend(truth, backend_options);
  if (wrap_backend) backend = wrap_backend(std::move(backend));
  return std::make_unique<Driver>(graph, failures, recorder, machine, options, std::move(backend));
}

}  // namespace quadriga
