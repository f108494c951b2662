// SPDX-License-Identifier: BSD-3-Clause
// src/engine/on_host.cpp: the host looks at data: accesses that end when they are let go, and
// questions about tasks and content.
#include "engine/on_host.h"

#include <fmt/format.h>
#include <quadriga/engine.h>

#include "engine/engine_access.h"
#include "engine/engine_impl.h"
#include "engine/occupied.h"

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
  impl.bring_ended_home(-1);  // copies of what has ended; the content may be the caller's by now
  return result;
}

HostAccess hold_regions(Engine& engine, std::span<const HeldRegion> regions, double timeout,
                        bool names_lost) {
  EngineAccess::Impl& impl = EngineAccess::impl(engine);
  HostAccess found = EngineAccess::access(
      impl.holds->hold_regions(regions, impl.waits->deadline_after(timeout), names_lost));
  impl.bring_ended_home(-1);
  return found;
}

bool has_names(const Engine& engine, const Data& data) {
  return EngineAccess::impl(engine).renaming->has_names(*EngineAccess::datum(data));
}

std::uint64_t newest_writer(const Engine& engine, const Data& data) {
  return EngineAccess::impl(engine).renaming->newest_writer(*EngineAccess::datum(data));
}

std::vector<std::uint64_t> before_host(const Engine& engine, const Data& data, Access access) {
  std::vector<std::uint64_t> tasks;
  EngineAccess::impl(engine).renaming->collect_before_host(*EngineAccess::datum(data), access,
                                                           tasks);
  return tasks;
}

bool is_registered(const Engine& engine, const Region& region) {
  bool is_any = false;
  EngineAccess::impl(engine).registrations->look(
      region, [&](std::span<Datum* const> found) { is_any = !found.empty(); });
  return is_any;
}

bool is_home(const Engine& engine, const Data& data) {
  EngineAccess::Impl& impl = EngineAccess::impl(engine);
  Datum* const asked = EngineAccess::datum(data);
  const std::vector<Datum*> aliases = impl.registrations->pin_aliases(*asked, false, never);
  std::vector<Datum*> all{asked};
  all.insert(all.end(), aliases.begin(), aliases.end());
  const bool found = impl.holds->are_home(all);
  impl.registrations->unpin(aliases);
  return found;
}

bool has_come_home(const Engine& engine, const Data& data) {
  return EngineAccess::impl(engine).executor->has_come_home(*EngineAccess::datum(data));
}

void bring_all_home(Engine& engine) {
  EngineAccess::Impl& impl = EngineAccess::impl(engine);
  impl.waits->until_ended(impl.renaming->bring_idle_home(), never);
  impl.executor->bring_all_home(never);
  if (const auto error = impl.failures.take_untold()) std::rethrow_exception(error);
}

void wait_for_end(Engine& engine, const Future& task, double timeout) {
  EngineAccess::impl(engine).wait_task(EngineAccess::task(task), timeout);
}

bool has_lingering(const Engine& engine) noexcept {
  try {
    const EngineAccess::Impl& impl = EngineAccess::impl(engine);
    return (impl.executor->has_lingering() || impl.renaming->is_on()) && !task_around(impl.graph);
  } catch (const Error&) {
    return false;  // in a forked child, whose memory no device has
  }
}

void bring_ended_home(Engine& engine, double timeout) {
  EngineAccess::impl(engine).bring_ended_home(timeout);
}

HostAccess& HostAccess::operator=(HostAccess&& other) noexcept {
  release();
  hold_ = std::move(other.hold_);
  return *this;
}

void HostAccess::release() noexcept {
  const auto hold = std::move(hold_);
  if (hold) Holds::release(*hold);
}

bool HostAccess::is_awaited() const noexcept { return hold_ && Holds::is_awaited(*hold_); }

}  // namespace quadriga
