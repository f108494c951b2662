// SPDX-License-Identifier: BSD-3-Clause
// src/graph/driver.cpp: the driver's life: messages in, steps, waits, what others ask of it.
#include "graph/driver.h"

#include <fmt/format.h>

#include <utility>

#include "base/log.h"
#include "base/units.h"
#include "device/factory.h"
#include "graph/engine_impl.h"
#include "graph/host_pool.h"

namespace quadriga {

Driver::Driver(Graph& graph, Failures& failures, Recorder& recorder, const Machine& machine,
               const EngineOptions& options, std::unique_ptr<Backend> backend)
    : graph_(graph),
      failures_(failures),
      recorder_(recorder),
      machine_(machine),
      backend_(std::move(backend)),
      policy_(make_policy(options.policy, options.seed)),
      plan_(machine.devices.size()),
      memory_(std::make_unique<Memory>(*backend_, machine, static_cast<MemoryListener&>(*this),
                                       MemoryOptions{options.host_memory, options.spill})),
      predictions_(machine),
      completions_(64),
      virtual_(backend_->is_virtual()) {
  const auto name_lane = [&](StreamId stream, int lane) {
    if (lane_of_stream_.size() <= stream) lane_of_stream_.resize(stream + 1, -1);
    lane_of_stream_[stream] = lane;
  };
  memory_->for_each_stream(
      [&](DeviceId device, StreamId stream, StreamKind kind, std::string name) {
        name_lane(stream, recorder_.add_lane(device, kind, std::move(name)));
      });
  devices_.resize(machine.devices.size());
  for (DeviceId d = 0; d < machine.devices.size(); ++d) {
    const Device& device = machine.devices[d];
    devices_[d].id = d;
    devices_[d].space = device.space;
    devices_[d].lookahead = std::make_unique<Lookahead>(plan_, d);
    const bool is_cpu = device.kind == DeviceKind::cpu;
    const int count = std::max(1, is_cpu ? device.cores : device.compute_streams);
    for (int i = 0; i < count; ++i) {
      ComputeStream stream;
      // The first of an accelerator takes the kernels that fill it; others pass these.
      const StreamKind kind = is_cpu || i == 0 ? StreamKind::compute : StreamKind::panel;
      stream.id = backend_->create_stream(d, kind);
      stream.lane = recorder_.add_lane(d, StreamKind::compute,
                                       count == 1 ? "compute" : fmt::format("compute {}", i));
      name_lane(stream.id, stream.lane);
      devices_[d].streams.push_back(std::move(stream));
    }
  }
  compute_of_stream_.resize(lane_of_stream_.size());
  for (DeviceState& device : devices_)
    for (ComputeStream& stream : device.streams) compute_of_stream_[stream.id] = {&device, &stream};
  if (!virtual_) thread_ = std::thread([this] { loop(); });
}

Driver::~Driver() {
  if (thread_.joinable()) {
    stopping_.store(true);
    backend_->wake();
    thread_.join();
  }
  if (broken_ || (!virtual_ && memory_->in_flight() > 0)) {
    // What is queued may still use this memory.
    backend_.reset();
    static_cast<void>(memory_.release());
  }
  memory_.reset();
}

void Driver::loop() {
  try {
    while (!stopping_.load(std::memory_order_acquire)) step(never);
    // Nobody waited for what was fetched ahead in vain, but it uses memory that is about to go.
    constexpr Nanoseconds patience = 10'000'000'000;
    const Nanoseconds until = now() + patience;
    while (memory_->in_flight() > 0 && now() < until) step(until);
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
  if (was_empty && !virtual_ && std::this_thread::get_id() != thread_.get_id()) backend_->wake();
}

void Driver::add(Datum& datum) { post({Message::Kind::data, nullptr, &datum}); }
void Driver::submitted(Task& task) { post({Message::Kind::submitted, &task, nullptr}); }
void Driver::ready(Task& task, std::uint64_t id) {
  post({Message::Kind::ready, &task, nullptr, id});
}

void Driver::execute(const std::function<void()>& work) {
  if (virtual_) {
    std::lock_guard lock(driving_);
    rethrow_if_broken();
    try {
      take_messages();
      work();
    } catch (...) {
      break_down(std::current_exception());
      throw;
    }
    return;
  }
  if (std::this_thread::get_id() == thread_.get_id()) {
    work();
    return;
  }
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

void Driver::run_commands() {
  std::vector<std::shared_ptr<Command>> commands;
  {
    std::lock_guard lock(inbox_mutex_);
    commands.swap(commands_);
  }
  if (!commands.empty()) take_messages();  // of the data that they are about
  for (std::size_t i = 0; i < commands.size(); ++i) {
    try {
      (*commands[i]->work)();
      answer(*commands[i], nullptr);
    } catch (...) {
      for (; i < commands.size(); ++i) answer(*commands[i], std::current_exception());
      throw;
    }
  }
}

void Driver::take_messages() {
  {
    std::lock_guard lock(inbox_mutex_);
    taken_.swap(inbox_);
  }
  for (const Message& message : taken_) {
    switch (message.kind) {
      case Message::Kind::data: {
        Datum& datum = *message.datum;
        const std::size_t element = size_of(datum.dtype);
        datum.tile = memory_->add({datum.home, static_cast<std::size_t>(datum.rows) * element,
                                   static_cast<std::size_t>(datum.cols),
                                   static_cast<std::size_t>(datum.ld) * element, datum.home_space});
        plan_.uses(datum.tile) = TileUses{};
        plan_.uses(datum.tile).datum = &datum;
        break;
      }
      case Message::Kind::submitted:
        plan(*message.task);
        break;
      case Message::Kind::ready:
        if (message.task->planned && message.task->id == message.id)
          activate(*message.task->planned);
        break;
    }
  }
  taken_.clear();
}

bool Driver::step(Nanoseconds deadline) {
  take_messages();
  run_commands();
  const bool recovers = is_recovering();
  bool happened = !recovers && pump();
  if (!happened && !recovers && !anything_in_flight()) happened = fail_without_buffer();
  if (more_to_issue_ && !recovers) deadline = std::min(deadline, backend_->now());
  // No completion tells of tasks that failed instead of being issued, nor of what they made ready.
  if (std::exchange(failed_, false)) {
    deadline = std::min(deadline, backend_->now());
    happened = true;
    graph_.flush(free_);
    if (waiters_.load(std::memory_order_seq_cst) > 0) signal_waiters();
  }
  {
    // A message that came meanwhile must not wait for a completion.
    std::lock_guard lock(inbox_mutex_);
    if (!inbox_.empty() || !commands_.empty()) deadline = std::min(deadline, backend_->now());
  }
  if (virtual_ && !anything_in_flight()) return happened;
  const std::size_t count = backend_->next_completion(completions_, deadline);
  for (std::size_t i = 0; i < count; ++i) complete(completions_[i]);
  graph_.flush(free_);
  if (count > 0 && waiters_.load(std::memory_order_seq_cst) > 0) signal_waiters();
  return happened || count > 0;
}

/// A step under the virtual clock, by whoever waits.
bool Driver::drive(Nanoseconds deadline) {
  rethrow_if_broken();
  try {
    return step(deadline);
  } catch (...) {
    break_down(std::current_exception());
    throw;
  }
}

bool Driver::anything_in_flight() const {
  if (memory_->in_flight() > 0) return true;
  for (const DeviceState& device : devices_)
    if (device.issued > 0) return true;
  return false;
}

void Driver::signal_waiters() {
  std::lock_guard lock(wait_mutex_);
  changed_.notify_all();
}

void Driver::notice(std::string text) {
  std::lock_guard lock(wait_mutex_);
  notices_.push_back(std::move(text));
}

void Driver::tell_notices() {
  std::vector<std::string> notices;
  {
    std::lock_guard lock(wait_mutex_);
    notices.swap(notices_);
  }
  for (const std::string& text : notices) log(LogLevel::warning, text);
}

bool Driver::help() {
  if (virtual_) {
    std::lock_guard lock(driving_);
    if (!drive(never))
      fail(Errc::internal, "the window of tasks is full and nothing can run\n" + status());
    return true;
  }
  rethrow_if_broken();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  return false;
}

bool Driver::wait(const std::function<bool()>& condition, Nanoseconds deadline) {
  if (current_task(graph_))
    fail(Errc::unavailable,
         "a task on a device can't wait; it may submit tasks, and its successors wait for them");
  const bool met = virtual_ ? drive_until(condition, deadline) : sleep_until(condition, deadline);
  tell_notices();
  return met;
}

bool Driver::drive_until(const std::function<bool()>& condition, Nanoseconds deadline) {
  std::lock_guard lock(driving_);
  while (!condition()) {
    if (now() >= deadline) return false;
    if (!drive(deadline) && !condition() && now() < deadline) {
      std::lock_guard inbox(inbox_mutex_);
      if (inbox_.empty()) fail(Errc::internal, "nothing can run any more\n" + explain_stuck());
    }
  }
  return true;
}

bool Driver::sleep_until(const std::function<bool()>& condition, Nanoseconds deadline) {
  waiters_.fetch_add(1, std::memory_order_seq_cst);
  bool met = false;
  {
    Nanoseconds pause = 50'000;
    std::unique_lock lock(wait_mutex_);
    while (true) {
      lock.unlock();
      met = condition();
      if (!met) rethrow_if_broken();
      lock.lock();
      if (met || now() >= deadline) break;
      changed_.wait_for(lock, std::chrono::nanoseconds(std::min(pause, deadline - now())));
      pause = std::min<Nanoseconds>(pause * 2, 1'000'000);
    }
  }
  waiters_.fetch_sub(1, std::memory_order_seq_cst);
  return met;
}

/// Starts the way home if it can; true if there is nothing left to wait for: no way will be found
/// either once nothing is to come that might free a buffer on the host.
bool Driver::go_home(Datum& datum, std::exception_ptr& refusal) {
  if (datum.poisoned.load(std::memory_order_acquire)) return true;
  const SpaceId owner = memory_->directory().owner(datum.tile);
  const Directory& directory = memory_->directory();
  if (owner == no_space) return !directory.in_flight(datum.tile, directory.home(datum.tile));
  if (!memory_->confirmed(datum.tile, owner) ||
      memory_->send_home(datum.tile, Reason::write_back) || anything_in_flight() ||
      ended() < graph_.submitted())
    return false;
  refusal = std::make_exception_ptr(no_buffer());
  return true;
}

bool Driver::bring_all_home(Nanoseconds deadline) {
  return bring_home(deadline, [&](auto&& want) {
    plan_.for_each_datum([&](Datum& each) {
      if (!each.keep) want(each);
    });
  });
}

bool Driver::bring_home(std::span<Datum* const> data, Nanoseconds deadline) {
  return bring_home(deadline, [&](auto&& want) {
    for (Datum* const each : data) want(*each);
  });
}

/// Of all data for which `each` calls what it is given.
template <class Each>
bool Driver::bring_home(Nanoseconds deadline, Each&& each) {
  std::vector<Datum*> wanted;
  std::exception_ptr refusal;
  execute([&] {
    each([&](Datum& datum) {
      if (datum.home && !go_home(datum, refusal)) wanted.push_back(&datum);
    });
  });
  const auto all_home = [&] {
    while (!wanted.empty() && go_home(*wanted.back(), refusal)) wanted.pop_back();
  };
  const auto condition = [&] {
    if (!wanted.empty()) execute(all_home);
    return wanted.empty();
  };
  const bool is_met = wanted.empty() || wait(condition, deadline);
  if (is_met && refusal) std::rethrow_exception(refusal);
  return is_met;
}

void Driver::remove(std::span<Datum* const> data) {
  execute([&] {
    take_messages();
    for (Datum* const datum : data) {
      while (memory_->busy(datum->tile)) step(never);
      memory_->remove(datum->tile);
      plan_.uses(datum->tile) = TileUses{};
    }
  });
}

void Driver::finalize(Datum& datum) {
  execute([&] {
    take_messages();  // from here on all writers are known
    datum.final = true;
    send_final_home(datum.tile);
  });
}

void Driver::evict(Datum& datum) {
  execute([&] { memory_->evict(datum.tile); });
}

std::vector<bool> Driver::valid(std::span<Datum* const> data, SpaceId space) const {
  std::vector<bool> is_valid(data.size());
  auto& self = const_cast<Driver&>(*this);
  self.execute([&] {
    self.take_messages();
    for (std::size_t i = 0; i < data.size(); ++i)
      is_valid[i] = data[i] && memory_->directory().valid(data[i]->tile, space);
  });
  return is_valid;
}

void Driver::cancel(bool on) {
  cancelled_.store(on);
  // Under the virtual clock, who drives meets it at the next step.
  if (!virtual_) execute([] {});
}

void Driver::count(Counters& counters) const {
  auto& self = const_cast<Driver&>(*this);
  self.execute([&] {
    recorder_.count(counters);
    counters.ended = ended();
    counters.spill_bytes = memory_->most_spilled_bytes();
    for (const DeviceState& device : devices_)
      if (device.space != host_space)
        counters.devices[device.id].most_bytes = memory_->most_bytes(device.space);
    counters.work_seconds = static_cast<double>(work_) / 1e9;
    counters.critical_path_seconds = static_cast<double>(longest_path_) / 1e9;
    if (first_ >= 0) counters.elapsed = last_end_ - first_;
  });
}

void Driver::reset_counters() {
  execute([&] {
    recorder_.reset();
    work_ = longest_path_ = last_end_ = 0;
    first_ = -1;
  });
}

std::string Driver::status() const {
  std::string text;
  auto& self = const_cast<Driver&>(*this);
  self.execute([&] { text = explain_stuck(); });
  return text;
}

std::string Driver::explain_stuck() const {
  std::string text = fmt::format("{} tasks submitted, {} ended; {} copies in flight\n",
                                 graph_.submitted(), ended(), memory_->in_flight());
  for (const DeviceState& device : devices_) {
    const DevicePlan& plan = plan_.on(device.id);
    text += fmt::format("  {}{}: {} issued, {} ready, {} planned", machine_.devices[device.id].name,
                        device.lost ? " (lost)" : "", device.issued, plan.ready.size(),
                        plan.planned.size());
    if (device.head)
      text += fmt::format("; task {} '{}' waits for room", device.head->task->id.load(),
                          device.head->task->codelet->name);
    int shown = 0;
    for (const PlannedTask* planned : plan.planned) {
      if (planned->ready || ++shown > 3) continue;
      text += fmt::format("; task {} '{}' waits for {} predecessors", planned->task->id.load(),
                          planned->task->codelet->name, planned->task->pending.load() & 0xffffffff);
    }
    text += '\n';
  }
  return text;
}

std::unique_ptr<Executor> make_driver(Graph& graph, Failures& failures, Recorder& recorder,
                                      const Machine& machine, const EngineOptions& options) {
  BackendOptions backend_options;
  backend_options.virtual_clock = options.virtual_clock;
  backend_options.virtual_options.compute = options.compute;
  backend_options.virtual_options.protect = options.protect;
  backend_options.virtual_options.seed = options.seed;
  std::unique_ptr<Backend> backend = make_backend(machine, backend_options);
  if (options.wrap_backend) backend = options.wrap_backend(std::move(backend));
  return std::make_unique<Driver>(graph, failures, recorder, machine, options, std::move(backend));
}

}  // namespace quadriga
