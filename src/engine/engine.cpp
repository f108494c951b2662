// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine.cpp: the public engine: checks what it is given and hands it to graph and
// executor.
#include <quadriga/engine.h>
#include <quadriga/spill_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/cgroup.h"
#include "base/config.h"
#include "base/log.h"
#include "base/process.h"
#include "base/units.h"
#include "engine/believed.h"
#include "engine/bodies.h"
#include "engine/circles.h"
#include "engine/engine_impl.h"
#include "engine/host_pool.h"
#include "engine/occupied.h"
#include "graph/task_life.h"

namespace quadriga {
namespace {

/// On the disk of a file that is to be made. Without its folder there is room for none, which is
/// said when the file is made.
std::size_t free_bytes_beside(const std::string& file) {
  std::error_code none;
  const auto space = std::filesystem::space(std::filesystem::absolute(file).parent_path(), none);
  return none ? 0 : space.available;
}

EngineOptions resolve(EngineOptions options) {
  const Config& config = Config::global();
  options.policy = config.get("policy", options.policy).value;
  if (options.window == 0)
    options.window = static_cast<std::size_t>(
        parse_integer(config.get("window").value, 1, std::int64_t{1} << 30));
  if (!options.machine) options.devices = config.get("devices", options.devices).value;
  options.spill = config.get("spill", options.spill).value;
  if (options.renaming_bytes == SIZE_MAX)
    options.renaming_bytes = 0;
  else if (options.renaming_bytes == 0)
    options.renaming_bytes = parse_bytes(config.get("renaming").value);
  if (options.host_memory == 0) {
    options.host_memory = parse_bytes(config.get("host_memory").value);
    // Times under the virtual clock shall not depend on what others use.
    if (options.host_memory == 0)
      options.host_memory =
          (options.virtual_clock ? usable_memory_bytes() : free_memory_bytes()) / 5 * 4;
  }
  return options;
}

Machine make_machine(const EngineOptions& options) {
  if (options.machine) return *options.machine;
  // Times under the virtual clock shall not depend on the machine that it runs on.
  const bool chosen = !options.devices.empty() && options.devices != "auto";
  if (!chosen && options.virtual_clock) return Machine::host();
  return Machine::parse(chosen ? options.devices : "auto");
}

/// Work that needs the host finds a stream there, also where no core is to compute: a CPU
/// without cores.
Machine with_host_device(Machine machine) {
  for (const Device& device : machine.devices)
    if (device.kind == DeviceKind::cpu) return machine;
  Device host;
  host.name = "host cpu";  // "host" is the memory space
  machine.devices.push_back(host);
  return machine;
}

bool runs_on_host(const Machine& machine, const EngineOptions& options) {
  return !options.virtual_clock && machine.devices.size() == 1 &&
         machine.devices.front().kind == DeviceKind::cpu;
}

/// Where tasks run on the host's memory alone, the file is that memory; elsewhere it is a space of
/// the machine, to which the host's buffers are evicted. Returns whether it is the former.
bool place_spill(Machine& machine, std::optional<Machine>& truth, EngineOptions& options) {
  const bool on_host = runs_on_host(machine, options);
  if (options.spill.empty()) return on_host;
  if (on_host) {
    options.host_memory = free_bytes_beside(options.spill);
    return true;
  }
  // Times under the virtual clock shall not depend on this computer's disk.
  if (truth) *truth = with_spill(*std::move(truth), options.spill, false);
  machine = with_spill(std::move(machine), options.spill, !options.virtual_clock);
  return false;
}

/// Others may have taken memory of a device since it was asked for: plans must not count on it.
void take_what_is_given(Device& device, std::size_t bytes, std::size_t reserve_bytes) {
  if (device.space == host_space || bytes >= device.memory_bytes) return;
  if (bytes + reserve_bytes < device.memory_bytes)
    log(LogLevel::warning, fmt::format("device '{}' gives {} of the {} that it was asked for",
                                       device.name, format_bytes(static_cast<double>(bytes)),
                                       format_bytes(static_cast<double>(device.memory_bytes))));
  device.memory_bytes = bytes;
}

/// Settings that change nothing are mistakes, or left over.
void tell_unused_settings(const EngineOptions& options, bool on_host) {
  const auto tell = [](const char* name, const char* why) {
    if (const std::string value = Config::global().text(name); !value.empty())
      log(LogLevel::warning, fmt::format("setting {}: '{}' isn't used {}", name, value, why));
  };
  if (on_host) tell("schedule_log", "by an engine on cores alone, which logs no schedule");
  if (options.spill.empty())
    tell("spill_rate", "without the setting spill");
  else if (on_host)
    tell("spill_rate", "by an engine on cores alone, whose memory is the file");
}

/// What an engine is made of, for the log; said by the thread that makes it.
void tell_begin(const Machine& machine, const EngineOptions& options, bool on_host) {
  tell_unused_settings(options, on_host);
  for (const Device& device : machine.devices) {
    if (device.kind != DeviceKind::cpu || options.virtual_clock) continue;
    if (const int usable = usable_cores(); device.cores > usable)
      log(LogLevel::warning, fmt::format("device '{}' has {} cores and this process may use {}",
                                         device.name, device.cores, usable));
  }
  if (!log_enabled(LogLevel::info)) return;
  std::string names;
  for (const Device& device : machine.devices)
    if (device.kind != DeviceKind::cpu || device.cores > 0)
      names += (names.empty() ? "" : ", ") + device.name;
  log(LogLevel::info,
      fmt::format("engine on {}: policy {}, window {}, {} clock, tiles without a home up to {}{}{}",
                  names, options.policy, options.window, options.virtual_clock ? "virtual" : "real",
                  format_bytes(static_cast<double>(options.host_memory)),
                  options.spill.empty() ? ""
                  : on_host             ? " in "
                                        : ", then in ",
                  options.spill));
}

}  // namespace

Engine::Impl::Impl(EngineOptions given, const BackendWrap& wrap_backend)
    : owner(process_id()),
      options(resolve(std::move(given))),
      truth(options.believed ? std::optional(with_host_device(make_machine(options)))
                             : std::nullopt),
      machine(truth ? believed_machine(*truth, options) : with_host_device(make_machine(options))),
      on_host(place_spill(machine, truth, options)),
      graph(options.window),
      recorder(truth ? *truth : machine, options.trace, kept_of_trace()),
      adopted(graph) {
  if (options.trace && recorder.keeps_graph()) graph.keep_edges();
  if (on_host)
    executor = std::make_unique<HostPool>(
        graph, failures, recorder, machine,
        HostPoolOptions{std::max(1, machine.devices.front().cores), options.policy, options.seed,
                        options.host_memory, options.spill, options.blocking_threads,
                        Config::global().flag("divide") &&
                            !Config::global().flag("reproducible", options.reproducible)});
  else
    executor = make_driver(graph, failures, recorder, machine, truth ? *truth : machine, options,
                           wrap_backend);
  for (DeviceId device = 0; device < machine.devices.size(); ++device)
    take_what_is_given(machine.devices[device], executor->devices().memory_bytes(device),
                       executor->devices().reserve_bytes(device));
  reductions.emplace(graph, *executor);
  sharing.emplace(graph, *executor, failures, machine, on_host);
  renaming.emplace(graph, *executor, *sharing, machine, options.renaming_bytes);
  graph.set_reductions(&*reductions);
  waits.emplace(graph, *executor, open_holds);
  registrations.emplace(Registrations::Parts{.engine = this,
                                             .graph = graph,
                                             .executor = *executor,
                                             .sharing = *sharing,
                                             .reductions = *reductions,
                                             .renaming = *renaming,
                                             .waits = *waits,
                                             .before_memory = [this] { others.enter(); }});
  holds.emplace(Holds::Parts{.graph = graph,
                             .executor = *executor,
                             .failures = failures,
                             .sharing = *sharing,
                             .reductions = *reductions,
                             .renaming = *renaming,
                             .registrations = *registrations,
                             .waits = *waits,
                             .open = open_holds,
                             .on_host = on_host});
  cancelling.emplace(Cancelling::Parts{.graph = graph,
                                       .executor = *executor,
                                       .failures = failures,
                                       .reductions = *reductions,
                                       .renaming = *renaming,
                                       .waits = *waits,
                                       .is_ending = refuses,
                                       .messages = [this](bool on) { cancel_messages(on); }});
  tell_begin(machine, options, on_host);
}

void Engine::Impl::end() noexcept {
  try {
    executor->cancel(true);
    cancel_messages(true);
    holds->end_all();
    executor->wait([&] { return executor->ended() >= graph.submitted(); }, never,
                   Checked::by_anybody);
    left.end();
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("an engine ended in disorder: {}", error.what()));
    holds->end_all();  // Nobody else may come back to them.
  }
  holds->await_ended();
  others.leave();
}

Engine::Impl::~Impl() {
  if (on_host) {
    renaming->close();
    // Data that nobody removed: the host's pool keeps buffers for those without a home.
    registrations->close();
  }
  while (executor->keepers.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  executor.reset();
  log(LogLevel::debug, fmt::format("engine ended after {} tasks, {} of them failed",
                                   graph.submitted(), failures.count()));
}

/// To their own memory, and waits for their tasks.
void Engine::Impl::bring_renamed_home(std::span<Datum* const> written, Nanoseconds deadline) {
  std::vector<TaskRef> tasks;
  for (Datum* const each : written) {
    renaming->bring_home(*each);
    graph.collect(*each, tasks);
  }
  waits->until_ended(tasks, deadline);
}

void Engine::Impl::end_left() {
  if (left.any() && !task_around(graph) && executor->ended() >= graph.submitted()) left.end();
}

void Engine::Impl::wait_all(double timeout) {
  const Nanoseconds deadline = waits->deadline_after(timeout);
  renaming->bring_all_home();
  open_holds.refuse_own();
  reductions->end_all(nullptr);
  waits->until([&] { return executor->ended() >= graph.submitted(); }, deadline, "the work");
  if (!executor->bring_all_home(deadline)) waits->fail_late("writing results back");
  end_left();
  renaming->trim();
  if (const auto error = failures.take_first()) std::rethrow_exception(error);
}

void Engine::Impl::wait_data(Datum& datum, double timeout) {
  // Who removes an alias may wait for the calling task.
  const Nanoseconds deadline = waits->deadline_after(timeout);
  const std::vector<Datum*> aliases =
      registrations->pin_aliases(datum, !current_task(graph), deadline);
  try {
    wait_data(datum, aliases, deadline);
  } catch (...) {
    registrations->unpin(aliases);
    throw;
  }
  registrations->unpin(aliases);
  end_left();
}

void Engine::Impl::wait_data(Datum& datum, std::span<Datum* const> aliases, Nanoseconds deadline) {
  std::vector<TaskRef> tasks;
  std::vector<Datum*> wanted{&datum};
  wanted.insert(wanted.end(), aliases.begin(), aliases.end());
  reductions->end(datum, current_task(graph));
  renaming->bring_home(datum);
  {
    std::lock_guard lock(graph.submission());
    for (Datum* const each : wanted) graph.collect(*each, Access::update, tasks);
  }
  renaming->collect(datum, tasks);
  {
    const BodyWait body_waits(graph, deadline == never ? running_here : nullptr, tasks);
    waits->until_ended(tasks, deadline);
  }
  if (!datum.is_lost()) waits->until_home(wanted, deadline);
  const auto lost = std::ranges::find_if(wanted, &Datum::is_lost);
  const std::uint64_t failed = lost == wanted.end() ? 0 : (*lost)->failed_by.load();
  const bool is_lost = lost != wanted.end();
  std::erase_if(wanted, [](const Datum* each) { return each->resident || each->is_private; });
  if (!executor->give_back(wanted, false, deadline)) waits->fail_late("a copy of the data");
  if (!is_lost) return;
  if (const auto error = failures.take_first()) std::rethrow_exception(error);
  std::rethrow_exception(content_lost(failures.of(failed)));
}

void Engine::Impl::wait_task(const TaskRef& ref, double timeout) {
  if (!graph.ended(ref)) {  // else nothing is waited for, which a task on a device may not
    open_holds.refuse_own(&ref);
    const BodyWait body_waits(graph, timeout < 0 ? running_here : nullptr, std::span(&ref, 1));
    waits->until([&] { return graph.ended(ref); }, waits->deadline_after(timeout),
                 fmt::format("task {}", ref.id));
  }
  end_left();
  if (const auto error = failures.of(ref.id)) std::rethrow_exception(error);
}

void Engine::Impl::bring_ended_home(double timeout) {
  if (task_around(graph)) return;
  const Nanoseconds deadline = waits->deadline_after(timeout);
  waits->until_ended(renaming->bring_idle_home(), deadline);
  if (!executor->bring_ended_home(deadline)) waits->fail_late("writing results back");
}

template <class Wait>
void Engine::Impl::wait_then_bring(double timeout, Wait&& wait) {
  try {
    wait();
  } catch (const Error& error) {
    if (error.code() == Errc::deadline) throw;
    const std::exception_ptr failure = std::current_exception();
    bring_ended_home(timeout);
    std::rethrow_exception(failure);
  }
  bring_ended_home(timeout);
}

Engine::Engine(EngineOptions options)
    : Engine(std::make_unique<Impl>(std::move(options), BackendWrap())) {}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Engine EngineAccess::make(WrappedOptions options) {
  const BackendWrap wrap = std::move(options.wrap_backend);
  return Engine(std::make_unique<Engine::Impl>(std::move(options), wrap));
}

Engine::~Engine() {
  // Its threads didn't come along to a child after fork(): nothing can be ended properly there.
  if (impl_->owner == process_id())
    impl_->end();
  else
    static_cast<void>(impl_.release());
}

/// The parts, for a caller in the process that made them.
Engine::Impl& Engine::checked() const {
  check_not_forked(impl_->owner, "this engine");
  return *impl_;
}

void Engine::wait(double timeout) {
  Impl& impl = checked();
  if (Task* const task = current_task(impl.graph)) {
    impl.reductions->end_all(task);
    impl.waits->until([&] { return task->children.load(std::memory_order_acquire) == 1; },
                      impl.waits->deadline_after(timeout), "the task's children");
    return;
  }
  impl.wait_all(timeout);
}

void Engine::wait(Data data, double timeout) {
  Impl& impl = checked();
  impl.wait_then_bring(timeout, [&] { impl.wait_data(*data.datum_, timeout); });
}

void Engine::wait(const Future& task, double timeout) {
  Impl& impl = checked();
  impl.wait_then_bring(timeout, [&] { impl.wait_task({task.task_, task.id_}, timeout); });
}

bool Engine::done(const Future& task) const { return impl_->graph.ended({task.task_, task.id_}); }

void Engine::final(Data data) {
  Impl& impl = checked();
  impl.reductions->end(*data.datum_, current_task(impl.graph));
  impl.renaming->bring_home(*data.datum_);
  impl.recorder.final(*data.datum_);
  impl.executor->final(*data.datum_);
}

std::vector<bool> Engine::valid(std::span<const Data> data, SpaceId space) const {
  Impl& impl = checked();
  std::vector<Datum*> all(data.size());
  std::ranges::transform(data, all.begin(), [&](const Data& each) {
    return each.datum_ ? &impl.renaming->current(*each.datum_) : nullptr;
  });
  return impl.executor->valid(all, space);
}

DeviceId Engine::device_of(const void* memory) const {
  return checked().executor->devices().holder(memory);
}

void Engine::synchronize(DeviceId device, std::uintptr_t stream) const {
  const Impl& impl = checked();
  if (device >= impl.machine.devices.size())
    fail(Errc::invalid_argument, fmt::format("synchronize(): device {}; the engine's are 0 to {}",
                                             device, impl.machine.devices.size() - 1));
  impl.executor->devices().synchronize(device, stream);
}

bool EngineAccess::pin(Engine& engine, std::byte* memory, std::size_t bytes) {
  return engine.checked().executor->devices().pin(memory, bytes);
}

void EngineAccess::unpin(Engine& engine, std::byte* memory, std::size_t bytes) noexcept {
  engine.impl_->executor->devices().unpin(memory, bytes);
}

bool EngineAccess::is_lost(const Engine& engine, DeviceId device) {
  return engine.checked().executor->devices().is_lost(device);
}

void Engine::evict(Data data) { checked().executor->evict(*data.datum_); }

const Machine& Engine::machine() const noexcept { return impl_->machine; }

const Machine& EngineAccess::truth(const Engine& engine) noexcept {
  return engine.impl_->truth ? *engine.impl_->truth : engine.impl_->machine;
}
Kept& kept_with(const Engine& engine) { return EngineAccess::impl(engine).kept; }
const EngineOptions& Engine::options() const noexcept { return impl_->options; }
bool Engine::host_only() const noexcept { return impl_->on_host; }
Nanoseconds Engine::now() const noexcept { return impl_->executor->now(); }
std::string Engine::status() const {
  Impl& impl = checked();
  MessageTasks* const messages = impl.known_messages();
  return impl.executor->status() + (messages ? messages->status() : "");
}

Counters Engine::counters() const {
  const Impl& impl = checked();
  Counters counters;
  impl.executor->count(counters);
  counters.ended -= impl.ended_before.load();
  counters.submitted = impl.graph.submitted() - impl.submitted_before.load();
  counters.failed = impl.failures.count() - impl.failed_before.load();
  counters.renaming = impl_->renaming->counters();
  const Nanoseconds first = impl.first_submission.load();
  if (counters.elapsed == 0 && first >= 0) {
    const Nanoseconds last = impl.recorder.last_end();
    counters.elapsed = (last > first ? last : impl.executor->now()) - first;
  }
  return counters;
}

void Engine::reset_counters() {
  Impl& impl = checked();
  impl.executor->reset_counters();
  impl.renaming->reset_counters();
  impl.submitted_before = impl.graph.submitted();
  impl.ended_before = impl.executor->ended();
  impl.failed_before = impl.failures.count();
  impl.first_submission = -1;
  if (MessageTasks* const messages = impl.known_messages()) messages->reset_counters();
}

}  // namespace quadriga
