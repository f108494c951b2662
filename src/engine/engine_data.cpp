// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_data.cpp: data are registered, found again, and forgotten.
#include <fmt/format.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "engine/bodies.h"
#include "engine/engine_access.h"
#include "engine/engine_impl.h"

namespace quadriga {
namespace {

/// Errors: invalid_argument unless there can be memory of these sizes at the home.
void check_memory_of(const NewDatum& given) {
  if (given.rows < 0 || given.cols < 0)
    fail(Errc::invalid_argument,
         fmt::format("a tile of {} x {}: sizes must not be negative", given.rows, given.cols));
  if (given.ld < given.rows)
    fail(Errc::invalid_argument,
         fmt::format("leading dimension {} is less than the {} rows", given.ld, given.rows));
  if (given.rows == 0 || given.cols == 0) return;
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 60;
  const auto rows = static_cast<std::uint64_t>(given.rows);
  const auto cols = static_cast<std::uint64_t>(given.cols);
  const auto ld = static_cast<std::uint64_t>(given.ld);
  const std::uint64_t most = most_bytes / size_of(given.dtype);
  const std::uint64_t after = ~reinterpret_cast<std::uintptr_t>(given.home);
  if (cols > most / ld || ((cols - 1) * ld + rows) * size_of(given.dtype) - 1 > after)
    fail(Errc::invalid_argument,
         fmt::format("a tile of {} x {} with leading dimension {} takes more bytes than any memory "
                     "has at its address",
                     rows, cols, ld));
}

}  // namespace

Datum& Engine::Impl::take_datum() {
  Datum* datum = free_data;
  if (datum) {
    free_data = datum->next_free;
    std::destroy_at(datum);
    std::construct_at(datum);
  } else {
    datum = &data.emplace_back();
  }
  datum->engine = this;
  return *datum;
}

void Engine::Impl::give_back(Datum& datum) {
  datum.engine = nullptr;
  datum.next_free = free_data;
  free_data = &datum;
}

/// Called with data_mutex held.
Datum& Engine::Impl::make(const NewDatum& given) {
  Datum& datum = take_datum();
  datum.home = given.home;
  datum.home_space = given.space;
  datum.rows = given.rows;
  datum.cols = given.cols;
  datum.ld = given.ld;
  datum.dtype = given.dtype;
  datum.keep = given.keep;
  datum.is_private = given.is_private;
  datum.watch = given.watch;
  datum.holders = 1;
  datum.lenders = given.resident ? 1 : 0;
  datum.resident = given.resident;
  return datum;
}

/// Found under the submission lock by tasks of its aliases; known to the executor before.
Datum& Engine::Impl::add(const NewDatum& given) {
  check_memory_of(given);
  const bool is_shared = given.home && given.rows > 0 && given.cols > 0 && !given.is_private;
  if (is_shared) others.enter();
  std::unique_lock lock(data_mutex);
  if (!is_shared) {
    Datum& datum = make(given);
    lock.unlock();
    executor->add(datum);
    return datum;
  }
  if (Datum* const known =
          sharing->find(given.home, given.rows, given.cols, given.ld, given.dtype)) {
    ++known->holders;
    known->lenders += given.resident;
    known->resident = known->lenders == known->holders;
    return *known;
  }
  Datum& datum = make(given);
  executor->add(datum);
  std::vector<Datum*> others;
  sharing->overlapping(region_of(datum), others);
  for (Datum* const other : others) reductions->end(*other, current_task(graph));
  sharing->add(datum);
  for (Datum* const other : others) renaming->bring_home(*other);
  return datum;
}

Data Engine::data(void* home, std::int64_t rows, std::int64_t cols, std::int64_t ld, DType dtype,
                  DataOptions options) {
  return EngineAccess::add(*this, no_device, {home, rows, cols, ld, dtype}, options, false);
}

Data Engine::data(DeviceId device, void* home, std::int64_t rows, std::int64_t cols,
                  std::int64_t ld, DType dtype, DataOptions options) {
  return EngineAccess::add(*this, device, {home, rows, cols, ld, dtype}, options, false);
}

Data EngineAccess::add(Engine& engine, DeviceId device, const View& view, DataOptions options,
                       bool is_private, CopyWatch* watch) {
  Engine::Impl& impl = engine.checked();
  NewDatum datum{host_space,   static_cast<std::byte*>(view.data),
                 view.rows,    view.cols,
                 view.ld,      view.dtype,
                 options.keep, options.resident || options.keep || is_private,
                 is_private,   watch};
  const std::vector<Device>& devices = impl.machine.devices;
  if (device != no_device && device >= devices.size())
    fail(Errc::invalid_argument,
         fmt::format("data on device {}: the engine's are 0 to {}", device, devices.size() - 1));
  const SpaceId space = device == no_device ? host_space : devices[device].space;
  if (space == host_space || view.rows == 0 || view.cols == 0) {
    require(view.data != nullptr || view.rows == 0 || view.cols == 0,
            "data() needs the address of its home; temporary() makes a tile without a home");
    return Data(&impl.add(datum));
  }
  const DeviceId holder = impl.executor->devices().holder(view.data);
  const auto name_of = [&](DeviceId id) {
    return id == no_device ? std::string("the host") : devices[id].name;
  };
  if (holder == no_device || devices[holder].space != space)
    fail(Errc::invalid_argument, fmt::format("data on device '{}': the memory belongs to {}",
                                             devices[device].name, name_of(holder)));
  datum.space = space;
  return Data(&impl.add(datum));
}

Data Engine::temporary(std::int64_t rows, std::int64_t cols, DType dtype, DataOptions options) {
  return Data(
      &checked().add({host_space, nullptr, rows, cols, rows, dtype, options.keep, true, true}));
}

void Engine::remove(std::span<const Data> data, bool discard) { checked().remove(data, discard); }

void Engine::Impl::remove(std::span<const Data> given, bool discard) {
  std::vector<Datum*> touched;  // In the order given: their numbers are used again.
  std::unordered_set<const Datum*> known;
  std::vector<Datum*> leaving;
  std::vector<Datum*> staying;  // Registered by others, too, who may remove them meanwhile.
  std::vector<TaskRef> tasks;
  {
    std::lock_guard lock(data_mutex);
    for (const Data& each : given) {
      Datum* const datum = EngineAccess::datum(each);
      if (!datum) continue;
      require(datum->engine == this && datum->holders > 0,
              "remove(): not data of this engine, or removed before");
    }
    for (const Data& each : given)
      if (Datum* const datum = EngineAccess::datum(each)) touched.push_back(datum);
    for (Datum* const each : touched) (each->holders == 1 ? leaving : staying).push_back(each);
    leaving = drop_registrations(leaving);
    std::erase_if(touched, [&](Datum* datum) { return !known.insert(datum).second; });
  }
  for (Datum* const datum : touched) {
    reductions->end(*datum, current_task(graph));
    if (!discard) renaming->bring_home(*datum);
    graph.collect(*datum, tasks);
    renaming->collect(*datum, tasks);
  }
  wait_ended(tasks, never);
  if (!discard) bring_home(touched, never);
  forget(leaving);
  unpin(staying);
}

/// One of each; those that nobody holds any more aren't found by their memory from here on. Called
/// with data_mutex held.
std::vector<Datum*> Engine::Impl::drop_registrations(std::span<Datum* const> given) {
  std::vector<Datum*> leaving;
  for (Datum* const datum : given) {
    if (datum->holders == 0) continue;
    --datum->holders;
    // Which of the registrations goes isn't known: that of a lender, which is always safe.
    if (datum->lenders > 0) --datum->lenders;
    datum->resident = datum->lenders == datum->holders;
    if (datum->holders > 0) continue;
    leaving.push_back(datum);
    if (!datum->is_private) sharing->leave(*datum);
  }
  return leaving;
}

/// Registers data once more, so that they stay until unpin(): those that `find` names, with
/// data_mutex held. What another thread is just removing is waited for until it is gone.
std::vector<Datum*> Engine::Impl::pin(const std::function<void(std::vector<Datum*>&)>& find,
                                      Nanoseconds deadline) {
  constexpr std::chrono::microseconds a_while{50};
  for (;; std::this_thread::sleep_for(a_while)) {
    std::vector<Datum*> found;
    std::vector<TaskRef> tasks;
    {
      std::lock_guard lock(data_mutex);
      find(found);
      const auto goes = [](const Datum* each) { return each->holders == 0; };
      if (std::ranges::none_of(found, goes)) {
        for (Datum* const each : found) {
          ++each->holders;
          ++each->lenders;
        }
        return found;
      }
      for (Datum* const each : found)
        if (goes(each)) graph.collect(*each, tasks);
    }
    wait_ended(tasks, deadline);
    if (executor->now() >= deadline) fail_late("the removal of the data by another thread");
  }
}

/// Of aliases that another thread is just removing, `await` says whether they are waited for;
/// else they are left out.
std::vector<Datum*> Engine::Impl::pin_aliases(const Datum& datum, bool await,
                                              Nanoseconds deadline) {
  if (!sharing->any()) return {};
  const auto find = [&](std::vector<Datum*>& found) {
    std::lock_guard lock(graph.submission());
    found = datum.aliases;
    if (!await) std::erase_if(found, [](const Datum* each) { return each->holders == 0; });
  };
  return pin(find, deadline);
}

/// Registrations of the engine's own end; data that others have removed meanwhile are forgotten.
void Engine::Impl::unpin(std::span<Datum* const> given) {
  std::vector<Datum*> leaving;
  {
    std::lock_guard lock(data_mutex);
    leaving = drop_registrations(given);
  }
  std::vector<TaskRef> tasks;
  for (Datum* const datum : leaving) graph.collect(*datum, tasks);
  if (leaving.empty()) return;
  wait_ended(tasks, never);
  bring_home(leaving, never);
  forget(leaving);
}

/// Aliases may have followed them once more meanwhile, and a wait() have sent content home; from
/// the first statement on none does.
void Engine::Impl::forget(std::span<Datum* const> leaving) {
  renaming->forget(leaving);
  for (Datum* const datum : leaving) {
    if (datum->is_private) continue;
    const auto try_remove = [&] {
      std::lock_guard lock(data_mutex);
      return sharing->remove(*datum);
    };
    while (!try_remove()) {
      std::vector<TaskRef> tasks;
      graph.collect(*datum, tasks);
      wait_ended(tasks, never);
    }
  }
  renaming->trim();
  std::vector<Datum*> partials;
  std::vector<std::shared_ptr<Reduction>> kept;
  for (Datum* const datum : leaving) reductions->collect(*datum, partials, kept);
  executor->remove(leaving);
  if (!partials.empty()) executor->remove(partials);
  std::lock_guard lock(data_mutex);
  for (Datum* const datum : leaving) give_back(*datum);
}

}  // namespace quadriga
