// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver.cpp: the driver's life: messages in, steps, completions.
#include "engine/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/config.h"
#include "base/file.h"
#include "base/thread.h"
#include "device/factory.h"
#include "engine/bodies.h"
#include "engine/engine_impl.h"
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
            options.compute ? nullptr : keep_promise(), poisons_freed_blocks && !virtual_),
      completions_(64),
      bodies_(*this, graph, machine, !virtual_, options.blocking_threads) {
  const std::vector<std::vector<StreamId>> kernel_streams = open_streams();
  library_bytes_ = make_library_handles(*backend_, machine_, *spaces_, kernel_streams);
  spaces_->take_memory(machine_);
  const MemoryOptions memory{options.host_memory, options.spill};
  open_log(options, memory, kernel_streams);
  scheduler_ = std::make_unique<Scheduler>(
      machine_, instructions_, news_, bodies_,
      ScheduleOptions{.policy = make_policy(options.policy, {machine_, options.seed},
                                            Config::global().text("eviction")),
                      .memory = memory,
                      .spaces = spaces_->spaces(),
                      .kernel_streams = kernel_streams,
                      .most_rounds = most_rounds(),
                      .log = log_.get()});
  backend_->on_full([this](DeviceId device) { return make_room(device); });
  issuers_ = std::make_unique<Issuers>(*backend_, record_.device_of_stream(), !virtual_);
  if (!virtual_) thread_ = start_thread("quadriga driver", [this] { loop(); });
}

/// Where bodies aren't run, nobody else does.
ScheduleNews::Promise Driver::keep_promise() {
  return [this](Task& task) { kept(task, task.id, nullptr); };
}

/// Of issuing, under a real clock: it takes time, in which nobody sees what has ended.
int Driver::most_rounds() const noexcept { return virtual_ ? 0 : 4; }

void Driver::open_log(const EngineOptions& options, const MemoryOptions& memory,
                      std::span<const std::vector<StreamId>> kernel_streams) {
  const std::string path = Config::global().text("schedule_log");
  if (path.empty() || !log_claim_.take()) return;
  require_regular(path);
  log_file_.open(path);
  if (!log_file_) fail(Errc::io, fmt::format("can't write the schedule's log '{}'", path));
  log_ = std::make_unique<ScheduleLog>(log_file_);
  log_->begin(machine_, options.policy, Config::global().text("eviction"), options.seed,
              most_rounds(), memory, spaces_->spaces(), kernel_streams);
}

/// Lanes for the streams of copies, and streams with lanes for kernels; returns these by device.
std::vector<std::vector<StreamId>> Driver::open_streams() {
  spaces_->for_each_stream(
      machine_, [&](DeviceId device, StreamId stream, StreamKind kind, std::string name) {
        record_.open(device, stream, kind, std::move(name));
      });
  std::vector<std::vector<StreamId>> kernel_streams(machine_.devices.size());
  for (DeviceId d = 0; d < machine_.devices.size(); ++d) {
    const Device& device = machine_.devices[d];
    const bool is_cpu = device.kind == DeviceKind::cpu;
    const int count = std::max(1, is_cpu ? device.cores : device.compute_streams);
    for (int i = 0; i < count; ++i) {
      // The first of an accelerator takes the kernels that fill it; others pass these.
      const StreamKind kind = is_cpu || i == 0 ? StreamKind::compute : StreamKind::panel;
      kernel_streams[d].push_back(backend_->create_stream(d, kind));
      record_.open(d, kernel_streams[d].back(), StreamKind::compute,
                   count == 1 ? "compute" : fmt::format("compute {}", i));
    }
  }
  return kernel_streams;
}

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

void Driver::loop() {
  try {
    while (!stopping_.load(std::memory_order_acquire)) step(never);
    // Prefetches that nobody waited for use memory that is about to go.
    constexpr Nanoseconds patience = 10'000'000'000;
    const Nanoseconds until = now() + patience;
    while (scheduler_->memory().transfers().in_flight() > 0 && now() < until) step(until);
  } catch (...) {
    break_down(std::current_exception());
  }
}

/// A bug of ours or of the backend's: nothing more is driven, and whoever waits is told why.
void Driver::break_down(std::exception_ptr error) {
  inbox_.break_down(std::move(error));
  waiters_.signal();
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
    std::lock_guard lock(driving_);
    inbox_.rethrow_if_broken();
    try {
      take_messages();
      work();
      settle();
    } catch (...) {
      break_down(std::current_exception());
      throw;
    }
    return;
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
    return condition() || wait(condition, deadline);
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

bool Driver::run_requests() {
  std::vector<std::shared_ptr<DriverRequest>> requests = inbox_.take_requests();
  if (requests.empty()) return false;
  take_messages();  // of the data that they are about
  std::size_t left = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    try {
      const bool is_done = !requests[i]->is_withdrawn() && requests[i]->run();
      settle();
      if (is_done)
        requests[i]->answer(nullptr);
      else if (!requests[i]->is_withdrawn())
        requests[left++].swap(requests[i]);
    } catch (...) {
      for (std::size_t k = 0; k < requests.size(); ++k)
        if (k < left || k >= i) requests[k]->answer(std::current_exception());
      throw;
    }
  }
  const bool any_done = left < requests.size();
  requests.resize(left);
  inbox_.put_back(std::move(requests));
  return any_done;
}

void Driver::take_messages() {
  if (const bool on = cancelled(); on != is_cancelled_) scheduler_->cancel(is_cancelled_ = on);
  inbox_.take(taken_);
  for (const Message& message : taken_) take(message);
  taken_.clear();
  settle();
}

void Driver::take(const Message& message) {
  Task* const task = message.task;
  switch (message.kind) {
    case Message::Kind::data:
      scheduler_->add(*message.datum);
      break;
    case Message::Kind::submitted:
      record_.submitted();
      scheduler_->submitted(*task, cost_of(*task));
      break;
    case Message::Kind::ready:
      // It may have ended meanwhile, and its slot be another's.
      if (task->planned && task->id == message.id)
        scheduler_->ready(*task, task->pending.load(std::memory_order_acquire) == 0
                                     ? Predecessors::done
                                     : Predecessors::issued);
      break;
    case Message::Kind::final:
      scheduler_->final(*message.datum);
      break;
    case Message::Kind::kept:
      if (task->planned && task->id == message.id) scheduler_->kept(*task, message.error);
      break;
  }
}

Cost Driver::cost_of(const Task& task) {
  if (!task.codelet->cost) return {};
  views_.clear();
  for (int i = 0; i < task.operand_count; ++i) {
    const Datum& datum = *task.operands[i].datum;
    views_.push_back({nullptr, datum.rows, datum.cols, datum.rows, datum.dtype});
  }
  return task.codelet->cost({views_, task.params(), nullptr});
}

/// Lets the scheduler decide until there is nothing left before the next event; true if it
/// did something.
bool Driver::decide() {
  bool happened = false;
  scheduler_->begin_steps();
  while (scheduler_->step()) {
    happened = true;
    settle();
  }
  settle();
  if (happened || scheduler_->in_flight() || !scheduler_->resolve_standstill()) return happened;
  settle();
  return true;
}

bool Driver::step(Nanoseconds deadline) {
  take_messages();
  // A request may have taken what the caller of this step waits for.
  const bool has_run = run_requests();
  const std::uint64_t left = releases_.left();
  bool happened = decide();
  // No completion tells of tasks that failed instead of being issued, nor of what they made ready.
  const bool any_left = releases_.left() != left;
  if (any_left) {
    happened = true;
    releases_.flush();
    waiters_.signal();
  }
  if (any_left || has_run || scheduler_->has_more() || !inbox_.empty())
    deadline = std::min(deadline, backend_->now());
  if (virtual_ && !scheduler_->in_flight()) return happened;
  return take_completions(deadline) > 0 || happened;
}

std::size_t Driver::take_completions(Nanoseconds deadline) {
  const std::size_t count = issuers_->next(completions_, deadline);
  for (std::size_t i = 0; i < count; ++i) {
    scheduler_->ended(completions_[i]);
    settle();
  }
  releases_.flush();
  if (count > 0) waiters_.signal();
  return count;
}

void Driver::settle() {
  releases_.settle(*scheduler_);
  issuers_->take(instructions_);
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
