// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_host.cpp: the functions of an engine by which the host looks at its data.
#include <fmt/format.h>
#include <quadriga/engine.h>

#include "base/log.h"
#include "engine/engine_access.h"
#include "engine/engine_impl.h"

namespace quadriga {

HostAccess Engine::on_host(Data data, Access access, double timeout) {
  Impl& impl = checked();
  require(access <= Access::update, "on_host() takes the modes read, write and update");
  Datum* const datum = data.datum_;
  require(datum && datum->engine == &impl, "on_host(): not data of this engine");
  require(datum->home && !datum->buffer && datum->home_space == host_space,
          "on_host(): the data has no home on the host");
  HostAccess result;
  result.hold_ = impl.holds->hold({{datum, access}}, impl.waits->deadline_after(timeout));
  return result;
}

HostAccess EngineAccess::hold(Engine& engine, std::span<const HeldRegion> regions, double timeout,
                              bool names_lost) {
  Engine::Impl& impl = engine.checked();
  HostAccess result;
  result.hold_ = impl.holds->hold_regions(regions, impl.waits->deadline_after(timeout), names_lost);
  return result;
}

bool EngineAccess::has_names(Engine& engine, const Data& data) {
  return engine.checked().renaming->has_names(*data.datum_);
}

std::uint64_t EngineAccess::newest_writer(Engine& engine, const Data& data) {
  return engine.checked().renaming->newest_writer(*data.datum_);
}

std::vector<std::uint64_t> EngineAccess::before_host(Engine& engine, const Data& data,
                                                     Access access) {
  std::vector<std::uint64_t> tasks;
  engine.checked().renaming->collect_before_host(*data.datum_, access, tasks);
  return tasks;
}

std::string EngineAccess::why_failed(const Engine& engine, std::uint64_t task) {
  const std::string first = engine.checked().failures.first_of(task);
  return first.empty() ? fmt::format("task {} failed", task) : first;
}

bool EngineAccess::is_registered(const Engine& engine, const Region& region) {
  bool is_any = false;
  engine.checked().registrations->look(
      region, [&](std::span<Datum* const> found) { is_any = !found.empty(); });
  return is_any;
}

bool EngineAccess::is_home(const Engine& engine, const Data& data) {
  Engine::Impl& impl = engine.checked();
  Datum* const asked = datum(data);
  const std::vector<Datum*> aliases = impl.registrations->pin_aliases(*asked, false, never);
  std::vector<Datum*> all{asked};
  all.insert(all.end(), aliases.begin(), aliases.end());
  const bool found = impl.holds->are_home(all);
  impl.registrations->unpin(aliases);
  return found;
}

bool EngineAccess::has_come_home(const Engine& engine, const Data& data) {
  return engine.checked().executor->has_come_home(*datum(data));
}

void EngineAccess::bring_all_home(Engine& engine) {
  Engine::Impl& impl = engine.checked();
  impl.waits->until_ended(impl.renaming->bring_idle_home(), never);
  impl.executor->bring_all_home(never);
  if (const auto error = impl.failures.take_untold()) std::rethrow_exception(error);
}

bool EngineAccess::is_lost(const Engine& engine, DeviceId device) {
  return engine.checked().executor->devices().is_lost(device);
}

HostAccess& HostAccess::operator=(HostAccess&& other) noexcept {
  release();
  hold_ = std::move(other.hold_);
  return *this;
}

void HostAccess::release() noexcept {
  const auto hold = std::move(hold_);
  if (hold) EngineAccess::end(*hold);
}

/// What went wrong is some task's, and told by who waits for it.
void EngineAccess::end(Hold& hold) noexcept {
  try {
    Holds::end(hold);
  } catch (const std::exception& error) {
    log(LogLevel::error, fmt::format("an access on the host did not end: {}", error.what()));
  }
}

bool HostAccess::is_awaited() const noexcept {
  return hold_ && hold_->of && hold_->task->successors.load(std::memory_order_acquire) != 0;
}

}  // namespace quadriga
