// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver.cpp: the driver's life: messages in, steps, completions, news out.
#include "engine/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/config.h"
#include "base/thread.h"
#include "device/factory.h"
#include "engine/bodies.h"
#include "engine/engine_impl.h"
#include "engine/libraries.h"
#include "schedule/policy_registry.h"

namespace quadriga {

Driver::Driver(Graph& graph, Failures& failures, Recorder& recorder, const Machine& machine,
               const EngineOptions& options, std::unique_ptr<Backend> backend)
    : graph_(graph),
      failures_(failures),
      recorder_(recorder),
      machine_(machine),
      backend_(std::move(backend)),
      spaces_(std::make_unique<DeviceSpaces>(*backend_, machine)),
      completions_(64),
      virtual_(backend_->is_virtual()),
      blocking_(options.blocking_threads) {
  const std::vector<std::vector<StreamId>> kernel_streams = open_streams();
  library_bytes_ = make_library_handles(*backend_, machine_, *spaces_, kernel_streams);
  spaces_->take_memory(machine_);
  const MemoryOptions memory{options.host_memory, options.spill};
  open_log(options, memory, kernel_streams);
  scheduler_ = std::make_unique<Scheduler>(
      machine_, instructions_, static_cast<ScheduleListener&>(*this),
      static_cast<TaskRunner&>(*this),
      ScheduleOptions{.policy = make_policy(options.policy, {machine_, options.seed}),
                      .memory = memory,
                      .spaces = spaces_->spaces(),
                      .kernel_streams = kernel_streams,
                      .most_rounds = most_rounds(),
                      .log = log_.get()});
  issuers_ = std::make_unique<Issuers>(*backend_, device_of_stream_, !virtual_);
  if (!virtual_) thread_ = start_thread([this] { loop(); });
}

/// Of issuing, under a real clock: it takes time, in which nobody sees what has ended.
int Driver::most_rounds() const noexcept { return virtual_ ? 0 : 4; }

void Driver::open_log(const EngineOptions& options, const MemoryOptions& memory,
                      std::span<const std::vector<StreamId>> kernel_streams) {
  const std::string path = Config::global().text("schedule_log");
  if (path.empty()) return;
  log_file_.open(path);
  if (!log_file_) fail(Errc::io, fmt::format("can't write the schedule's log '{}'", path));
  log_ = std::make_unique<ScheduleLog>(log_file_);
  log_->begin(machine_, options.policy, options.seed, most_rounds(), memory, spaces_->spaces(),
              kernel_streams);
}

/// Lanes for the streams of copies, and streams with lanes for kernels; returns these by device.
std::vector<std::vector<StreamId>> Driver::open_streams() {
  const auto name_lane = [&](DeviceId device, StreamId stream, int lane) {
    if (lane_of_stream_.size() <= stream) lane_of_stream_.resize(stream + 1, -1);
    if (device_of_stream_.size() <= stream) device_of_stream_.resize(stream + 1, 0);
    lane_of_stream_[stream] = lane;
    device_of_stream_[stream] = device;
  };
  spaces_->for_each_stream(
      machine_, [&](DeviceId device, StreamId stream, StreamKind kind, std::string name) {
        name_lane(device, stream, recorder_.add_lane(device, kind, std::move(name)));
      });
  std::vector<std::vector<StreamId>> kernel_streams(machine_.devices.size());
  for (DeviceId d = 0; d < machine_.devices.size(); ++d) {
    const Device& device = machine_.devices[d];
    const bool is_cpu = device.kind == DeviceKind::cpu;
    const int count = std::max(1, is_cpu ? device.cores : device.compute_streams);
    for (int i = 0; i < count; ++i) {
      // The first of an accelerator takes the kernels that fill it; others pass these.
      const StreamKind kind = is_cpu || i == 0 ? StreamKind::compute : StreamKind::panel;
      const StreamId stream = backend_->create_stream(d, kind);
      name_lane(d, stream,
                recorder_.add_lane(d, StreamKind::compute,
                                   count == 1 ? "compute" : fmt::format("compute {}", i)));
      kernel_streams[d].push_back(stream);
    }
    lane_of_device_.push_back(lane_of_stream_[kernel_streams[d].front()]);
  }
  return kernel_streams;
}

Driver::~Driver() {
  if (thread_.joinable()) {
    stopping_.store(true);
    backend_->wake();
    thread_.join();
  }
  issuers_->stop();
  if (broken_ || (!virtual_ && scheduler_->in_flight())) {
    // What is queued may still use this memory, and the host's buffers.
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
  std::vector<std::shared_ptr<Command>> commands;
  {
    std::lock_guard lock(inbox_mutex_);
    broken_ = error;
    commands.swap(commands_);
  }
  for (const std::shared_ptr<Command>& command : commands) answer(*command, error);
  signal_waiters();
}

void Driver::rethrow_if_broken() {
  std::lock_guard lock(inbox_mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

void Driver::post(const Message& message) {
  bool was_empty;
  {
    std::lock_guard lock(inbox_mutex_);
    was_empty = inbox_.empty();
    inbox_.push_back(message);
  }
  if (virtual_) arrived_.notify_all();
  if (was_empty && !virtual_ && std::this_thread::get_id() != thread_.get_id()) backend_->wake();
}

void Driver::add(Datum& datum) { post({Message::Kind::data, nullptr, &datum}); }
void Driver::final_later(Datum& datum) { post({Message::Kind::final, nullptr, &datum}); }
void Driver::submitted(Task& task) { post({Message::Kind::submitted, &task, nullptr}); }
void Driver::ready(Task& task, std::uint64_t id) {
  post({Message::Kind::ready, &task, nullptr, id});
}

void Driver::kept(Task& task, std::uint64_t id, std::exception_ptr error) {
  post({Message::Kind::kept, &task, nullptr, id, std::move(error)});
}

void Driver::execute(const std::function<void()>& work) {
  if (virtual_) {
    std::lock_guard lock(driving_);
    rethrow_if_broken();
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
  const auto command = std::make_shared<Command>();
  command->work = &work;
  {
    std::lock_guard lock(inbox_mutex_);
    if (broken_) std::rethrow_exception(broken_);
    commands_.push_back(command);
  }
  backend_->wake();
  command->done.wait(false, std::memory_order_acquire);
  if (command->error) std::rethrow_exception(command->error);
}

void Driver::answer(Command& command, std::exception_ptr error) {
  command.error = std::move(error);
  command.done.store(true, std::memory_order_release);
  command.done.notify_all();
}

bool Driver::run_commands() {
  std::vector<std::shared_ptr<Command>> commands;
  {
    std::lock_guard lock(inbox_mutex_);
    commands.swap(commands_);
  }
  if (!commands.empty()) take_messages();  // of the data that they are about
  for (std::size_t i = 0; i < commands.size(); ++i) {
    try {
      (*commands[i]->work)();
      settle();
      answer(*commands[i], nullptr);
    } catch (...) {
      for (; i < commands.size(); ++i) answer(*commands[i], std::current_exception());
      throw;
    }
  }
  return !commands.empty();
}

void Driver::take_messages() {
  if (const bool on = cancelled_.load(); on != is_cancelled_)
    scheduler_->cancel(is_cancelled_ = on);
  {
    std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
  }
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
      if (extent_.first < 0) extent_.first = now();
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

bool Driver::has_mail() {
  std::lock_guard lock(inbox_mutex_);
  return !inbox_.empty() || !commands_.empty();
}

bool Driver::step(Nanoseconds deadline) {
  take_messages();
  // A command may have taken what the caller of this step waits for.
  const bool has_run = run_commands();
  any_ended_ = false;
  bool happened = decide();
  // No completion tells of tasks that failed instead of being issued, nor of what they made ready.
  if (any_ended_) {
    happened = true;
    graph_.flush(free_);
    if (waiters_.load(std::memory_order_seq_cst) > 0) signal_waiters();
  }
  if (any_ended_ || has_run || scheduler_->has_more() || has_mail())
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
  graph_.flush(free_);
  if (count > 0 && waiters_.load(std::memory_order_seq_cst) > 0) signal_waiters();
  return count;
}

void Driver::settle() {
  // What follows may be news as well.
  for (std::size_t i = 0; i < news_.size(); ++i) {
    const News news = news_[i];
    if (news.issued)
      release_successors(*news.issued);
    else
      task_ended(news.ended);
  }
  news_.clear();
  issuers_->take(instructions_);
}

/// Successors on devices may be queued behind an issued task.
void Driver::release_successors(PlannedTask& planned) {
  const EndedTask by{.device = planned.device};
  planned.released = Graph::issued(*planned.task, [&](Task& successor) {
    if (successor.planned)
      scheduler_->ready(successor, Predecessors::issued, &by);
    else  // the message that it was submitted is still to be read
      ready(successor, successor.id);
  });
}

void Driver::task_ended(const EndedTask& ended) {
  any_ended_ = true;
  Task& task = *ended.task;
  const bool childless = task.children.fetch_sub(1, std::memory_order_acq_rel) == 1;
  if (childless && task.pending.load(std::memory_order_acquire) == 0)
    release(ended);
  else
    waiting_[&task] = ended;
}

/// The task's successors learn that it is done; `late` are those that ran before it was.
void Driver::drop_edges(Task& task, const EndedTask& ended, std::vector<Task*>& late) {
  graph_.ended(task, ended.released, [&](Task& successor, std::uint64_t pending) {
    if (successor.planned)
      scheduler_->ready(successor, pending == 0 ? Predecessors::done : Predecessors::issued,
                        &ended);
    // It has run already, or the message that it was submitted is still to be read.
    else if (!waiting_.contains(&successor))
      ready(successor, successor.id);
    else if (pending == 0)
      late.push_back(&successor);
  });
}

void Driver::end_hold(Task& hold, std::span<Datum* const> written) {
  // Nobody waits behind it: then nothing was fetched since it began either.
  if (Graph::end_alone(hold)) return;
  execute([&] {
    take_messages();
    for (Datum* const each : written) scheduler_->host_wrote(*each);
    std::vector<Task*> late;
    drop_edges(hold, {}, late);
    for (Task* const waiting : late) release_waiting(*waiting);
  });
}

void Driver::release(const EndedTask& ended) {
  Task& task = *ended.task;
  Task* const parent = task.parent();
  TaskGroup* const group = std::exchange(task.group, nullptr);
  std::vector<Task*> late;
  drop_edges(task, ended, late);
  graph_.release(&task, free_);
  ended_.fetch_add(1, std::memory_order_release);
  if (group) group->task_ended();
  if (parent && parent->children.fetch_sub(1, std::memory_order_acq_rel) == 1)
    late.push_back(parent);
  for (Task* const waiting : late) release_waiting(*waiting);
}

/// Ends a task that ran before, once neither children nor predecessors are left.
void Driver::release_waiting(Task& task) {
  const auto found = waiting_.find(&task);
  if (found == waiting_.end() || task.children.load(std::memory_order_acquire) != 0 ||
      task.pending.load(std::memory_order_acquire) != 0)
    return;
  const EndedTask ended = found->second;
  waiting_.erase(found);
  release(ended);
}

std::unique_ptr<Executor> make_driver(Graph& graph, Failures& failures, Recorder& recorder,
                                      const Machine& machine, const EngineOptions& options,
                                      const BackendWrap& wrap_backend) {
  BackendOptions backend_options;
  backend_options.virtual_clock = options.virtual_clock;
  backend_options.virtual_options.compute = options.compute;
  backend_options.virtual_options.protect = options.protect;
  backend_options.virtual_options.seed = options.seed;
  std::unique_ptr<Backend> backend = make_backend(machine, backend_options);
  if (wrap_backend) backend = wrap_backend(std::move(backend));
  return std::make_unique<Driver>(graph, failures, recorder, machine, options, std::move(backend));
}

}  // namespace quadriga
