// SPDX-License-Identifier: BSD-3-Clause
// src/engine/driver_requests.cpp: what others ask of the driver: to wait, to bring data home, to
// count, to tell.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/bodies.h"
#include "engine/driver.h"

namespace quadriga {

bool Driver::help() {
  if (virtual_) {
    drive_->help();
    return true;
  }
  inbox_.rethrow_if_broken();
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  return false;
}

bool Driver::wait(const std::function<bool()>& condition, Nanoseconds deadline, Checked checked) {
  if (current_task(graph_))
    fail(Errc::unavailable,
         "a task on a device can't wait; it may submit tasks, and its successors wait for them");
  const bool met =
      virtual_ ? drive_->until(condition, deadline) : sleep_until(condition, deadline, checked);
  waiters_.tell_notices();
  return met;
}

bool Driver::sleep_until(const std::function<bool()>& condition, Nanoseconds deadline,
                         Checked checked) {
  const auto met = [&] {
    if (condition()) return true;
    inbox_.rethrow_if_broken();
    return false;
  };
  return waiters_.sleep_until(met, deadline, checked == Checked::by_anybody ? &condition : nullptr);
}

/// Starts the way home if it can; true if there is nothing left to wait for: no way will be found
/// either once nothing is to come that might free a buffer on the host.
bool Driver::go_home(Datum& datum, Refused& refused) {
  const Homecoming homecoming = scheduler_->bring_home(datum);
  if (homecoming != Homecoming::no_buffer) return homecoming == Homecoming::home;
  if (scheduler_->in_flight() || ended() < graph_.submitted()) return false;
  refused.why = std::make_exception_ptr(scheduler_->no_buffer());
  refused.data.push_back(&datum);
  return true;
}

bool Driver::bring_all_home(Nanoseconds deadline) {
  std::vector<Datum*> leaving;
  Refused refused;
  bool is_met = bring_home(
      {}, deadline,
      [&](auto&& want) {
        scheduler_->for_each_datum([&](Datum& each) {
          if (each.keep) return;
          want(each);
          if (each.home && !each.is_private && !each.resident) leaving.push_back(&each);
        });
      },
      refused);
  // The host may write the others, whoever has no way home.
  std::erase_if(leaving, [&](Datum* each) { return std::ranges::count(refused.data, each) > 0; });
  if (is_met) is_met = give_back(leaving, false, deadline);
  if (is_met && refused.why) std::rethrow_exception(refused.why);
  return is_met;
}

bool Driver::bring_ended_home(Nanoseconds deadline) {
  if (!has_lingering()) return true;
  std::vector<Datum*> wanted;
  Refused refused;
  bool has_begun = false;
  const auto has_come = [&](Datum* each) {
    const Homecoming homecoming = scheduler_->return_home(*each);
    if (homecoming != Homecoming::no_buffer) return homecoming == Homecoming::home;
    if (scheduler_->is_moving()) return false;  // what ends may free a buffer
    refused.why = std::make_exception_ptr(scheduler_->no_buffer());
    return true;
  };
  const auto all_home = [&] {
    if (!std::exchange(has_begun, true)) {
      loop_->take_messages();
      scheduler_->for_each_lingering([&](Datum& each) { wanted.push_back(&each); });
    }
    std::erase_if(wanted, has_come);
    return wanted.empty();
  };
  const bool is_met = execute_until(all_home, deadline);
  if (is_met && refused.why) std::rethrow_exception(refused.why);
  return is_met;
}

bool Driver::give_back(std::span<Datum* const> data, bool overwrites, Nanoseconds deadline) {
  std::vector<Datum*> left(data.begin(), data.end());
  const auto give = [&] {
    std::erase_if(left, [&](Datum* each) { return scheduler_->give_back(*each, overwrites); });
    return left.empty();
  };
  return left.empty() || execute_until(give, deadline);
}

bool Driver::bring_home(std::span<Datum* const> data, std::span<const TaskRef> after,
                        Nanoseconds deadline) {
  Refused refused;
  const auto all = [&](auto&& want) {
    for (Datum* const each : data) want(*each);
  };
  const bool is_met = bring_home(after, deadline, all, refused);
  if (is_met && refused.why) std::rethrow_exception(refused.why);
  return is_met;
}

/// Of all data for which `each` calls what it is given, once the tasks have ended.
template <class Each>
bool Driver::bring_home(std::span<const TaskRef> after, Nanoseconds deadline, Each&& each,
                        Refused& refused) {
  std::vector<Datum*> wanted;
  bool has_begun = false;
  const auto all_home = [&] {
    const auto has_ended = [&](const TaskRef& ref) { return graph_.ended(ref); };
    if (!has_begun && !std::ranges::all_of(after, has_ended)) return false;
    while (!wanted.empty() && go_home(*wanted.back(), refused)) wanted.pop_back();
    if (!std::exchange(has_begun, true))
      each([&](Datum& datum) {
        if (datum.home && !go_home(datum, refused)) wanted.push_back(&datum);
      });
    return wanted.empty();
  };
  return execute_until(all_home, deadline);
}

void Driver::remove(std::span<Datum* const> data) {
  execute([&] {
    loop_->take_messages();
    for (Datum* const datum : data) {
      while (scheduler_->busy(*datum)) loop_->step(never);
      scheduler_->remove(*datum);
    }
  });
}

void Driver::end_hold(Task& hold, std::span<Datum* const> written, std::span<Datum* const> others) {
  // Nobody waits behind it: then nothing was fetched since it began either.
  if (Graph::end_alone(hold)) return;
  execute([&] {
    loop_->take_messages();
    for (Datum* const each : written) scheduler_->host_wrote(*each);
    std::vector<Datum*> known;
    if (!others.empty())
      scheduler_->for_each_datum([&](Datum& each) {
        if (std::ranges::find(others, &each) != others.end()) known.push_back(&each);
      });
    for (Datum* const each : known) scheduler_->host_wrote(*each);
    releases_.end_hold(*scheduler_, hold);
  });
}

void Driver::evict(Datum& datum) {
  execute([&] { scheduler_->evict(datum); });
}

std::vector<bool> Driver::valid(std::span<Datum* const> data, SpaceId space) const {
  std::vector<bool> is_valid(data.size());
  auto& self = const_cast<Driver&>(*this);
  self.execute([&] {
    self.loop_->take_messages();
    for (std::size_t i = 0; i < data.size(); ++i)
      is_valid[i] = data[i] && scheduler_->memory().directory().valid(data[i]->tile, space);
  });
  return is_valid;
}

bool Driver::has_come_home(const Datum& datum) const {
  bool is_there = false;
  auto& self = const_cast<Driver&>(*this);
  self.execute([&] {
    self.loop_->take_messages();
    is_there = scheduler_->memory().directory().arrived(datum.tile, datum.home_space);
  });
  return is_there;
}

void Driver::cancel(bool on) {
  Executor::cancel(on);
  loop_->cancel(on);
  // Under the virtual clock, who drives meets it at the next step.
  if (!virtual_) execute([] {});
}

void Driver::count(Counters& counters) const {
  auto& self = const_cast<Driver&>(*this);
  self.execute([&] {
    record_.count(counters);
    counters.ended = ended();
    counters.spill_bytes = scheduler_->memory().residency().spill().most();
    for (DeviceId d = 0; d < machine_.devices.size(); ++d) {
      const SpaceId space = machine_.devices[d].space;
      if (space == host_space) continue;
      counters.devices[d].most_bytes = scheduler_->memory().pool(space).most();
      counters.devices[d].arena_bytes = devices_.memory_bytes(d);
      counters.devices[d].library_bytes = library_bytes_[d];
    }
  });
}

void Driver::reset_counters() {
  execute([&] { record_.reset(); });
}

std::string Driver::status() const {
  std::string text;
  auto& self = const_cast<Driver&>(*this);
  self.execute([&] { text = describe(); });
  return text;
}

std::string Driver::describe() const {
  return fmt::format("{} tasks submitted, {} ended; {} copies in flight\n{}", graph_.submitted(),
                     ended(), scheduler_->memory().transfers().in_flight(), scheduler_->status());
}

}  // namespace quadriga
