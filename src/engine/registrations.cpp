// SPDX-License-Identifier: BSD-3-Clause
// src/engine/registrations.cpp: the lives of data, from the first registration to the last removal.
#include "engine/registrations.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "engine/bodies.h"
#include "engine/engine_access.h"

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

/// A slot, for data or for a sequence. Called with mutex_ held, as give_back(), make() and drop().
Datum& Registrations::take() {
  Datum* datum = free_;
  if (datum) {
    free_ = datum->next_free;
    std::destroy_at(datum);
    std::construct_at(datum);
  } else {
    datum = &data_.emplace_back();
  }
  datum->engine = parts_.engine;
  return *datum;
}

void Registrations::give_back(Datum& datum) {
  datum.engine = nullptr;
  datum.next_free = free_;
  free_ = &datum;
}

Datum& Registrations::make(const NewDatum& given) {
  Datum& datum = take();
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
Datum& Registrations::add(const NewDatum& given) {
  check_memory_of(given);
  const bool is_shared = given.home && given.rows > 0 && given.cols > 0 && !given.is_private;
  if (is_shared) parts_.before_memory();
  std::unique_lock lock(mutex_);
  if (!is_shared) {
    Datum& datum = make(given);
    lock.unlock();
    parts_.executor.add(datum);
    return datum;
  }
  if (Datum* const known =
          parts_.sharing.find(given.home, given.rows, given.cols, given.ld, given.dtype)) {
    ++known->holders;
    known->lenders += given.resident;
    known->resident = known->lenders == known->holders;
    return *known;
  }
  Datum& datum = make(given);
  parts_.executor.add(datum);
  std::vector<Datum*> others;
  parts_.sharing.overlapping(region_of(datum), others);
  for (Datum* const other : others) parts_.reductions.end(*other, current_task(parts_.graph));
  parts_.sharing.add(datum);
  for (Datum* const other : others) parts_.renaming.bring_home(*other);
  return datum;
}

void Registrations::remove(std::span<const Data> given, bool discard) {
  std::vector<Datum*> touched;  // In the order given: their numbers are used again.
  std::unordered_set<const Datum*> known;
  std::vector<Datum*> leaving;
  std::vector<Datum*> staying;  // Registered by others, too, who may remove them meanwhile.
  std::vector<TaskRef> tasks;
  {
    std::lock_guard lock(mutex_);
    for (const Data& each : given) {
      Datum* const datum = EngineAccess::datum(each);
      if (!datum) continue;
      require(datum->engine == parts_.engine && datum->holders > 0,
              "remove(): not data of this engine, or removed before");
    }
    for (const Data& each : given)
      if (Datum* const datum = EngineAccess::datum(each)) touched.push_back(datum);
    for (Datum* const each : touched) (each->holders == 1 ? leaving : staying).push_back(each);
    leaving = drop(leaving);
    std::erase_if(touched, [&](Datum* datum) { return !known.insert(datum).second; });
  }
  for (Datum* const datum : touched) {
    parts_.reductions.end(*datum, current_task(parts_.graph));
    if (!discard) parts_.renaming.bring_home(*datum);
    parts_.graph.collect(*datum, tasks);
    parts_.renaming.collect(*datum, tasks);
  }
  parts_.waits.until_ended(tasks, never);
  if (!discard) parts_.waits.until_home(touched, never);
  forget(leaving);
  unpin(staying);
}

/// One of each; those that nobody holds any more aren't found by their memory from here on.
std::vector<Datum*> Registrations::drop(std::span<Datum* const> given) {
  std::vector<Datum*> leaving;
  for (Datum* const datum : given) {
    if (datum->holders == 0) continue;
    --datum->holders;
    // Which of the registrations goes isn't known: that of a lender, which is always safe.
    if (datum->lenders > 0) --datum->lenders;
    datum->resident = datum->lenders == datum->holders;
    if (datum->holders > 0) continue;
    leaving.push_back(datum);
    if (!datum->is_private) parts_.sharing.leave(*datum);
  }
  return leaving;
}

std::vector<Datum*> Registrations::pin(const std::function<void(std::vector<Datum*>&)>& find,
                                       Nanoseconds deadline) {
  constexpr std::chrono::microseconds a_while{50};
  for (;; std::this_thread::sleep_for(a_while)) {
    std::vector<Datum*> found;
    std::vector<TaskRef> tasks;
    {
      std::lock_guard lock(mutex_);
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
        if (goes(each)) parts_.graph.collect(*each, tasks);
    }
    parts_.waits.until_ended(tasks, deadline);
    if (parts_.executor.now() >= deadline)
      parts_.waits.fail_late("the removal of the data by another thread");
  }
}

std::vector<Datum*> Registrations::pin_aliases(const Datum& datum, bool await,
                                               Nanoseconds deadline) {
  if (!parts_.sharing.any()) return {};
  const auto find = [&](std::vector<Datum*>& found) {
    std::lock_guard lock(parts_.graph.submission());
    found = datum.aliases;
    if (!await) std::erase_if(found, [](const Datum* each) { return each->holders == 0; });
  };
  return pin(find, deadline);
}

void Registrations::unpin(std::span<Datum* const> given) {
  std::vector<Datum*> leaving;
  {
    std::lock_guard lock(mutex_);
    leaving = drop(given);
  }
  std::vector<TaskRef> tasks;
  for (Datum* const datum : leaving) parts_.graph.collect(*datum, tasks);
  if (leaving.empty()) return;
  parts_.waits.until_ended(tasks, never);
  parts_.waits.until_home(leaving, never);
  forget(leaving);
}

/// Aliases may have followed them once more meanwhile, and a wait() have sent content home; from
/// the first statement on none does.
void Registrations::forget(std::span<Datum* const> leaving) {
  parts_.renaming.forget(leaving);
  for (Datum* const datum : leaving) {
    if (datum->is_private) continue;
    const auto try_remove = [&] {
      std::lock_guard lock(mutex_);
      return parts_.sharing.remove(*datum);
    };
    while (!try_remove()) {
      std::vector<TaskRef> tasks;
      parts_.graph.collect(*datum, tasks);
      parts_.waits.until_ended(tasks, never);
    }
  }
  parts_.renaming.trim();
  std::vector<Datum*> partials;
  std::vector<std::shared_ptr<Reduction>> kept;
  for (Datum* const datum : leaving) parts_.reductions.collect(*datum, partials, kept);
  parts_.executor.remove(leaving);
  if (!partials.empty()) parts_.executor.remove(partials);
  std::lock_guard lock(mutex_);
  for (Datum* const datum : leaving) give_back(*datum);
}

Datum& Registrations::add_sequence() {
  const std::lock_guard lock(mutex_);
  return take();
}

void Registrations::remove_sequence(Datum& datum) {
  std::vector<TaskRef> tasks;
  parts_.graph.collect(datum, tasks);
  parts_.waits.until_ended(tasks, never);
  const std::lock_guard lock(mutex_);
  give_back(datum);
}

void Registrations::look(const Region& region,
                         const std::function<void(std::span<Datum* const>)>& at) {
  std::vector<Datum*> found;
  const std::lock_guard lock(mutex_);
  parts_.sharing.overlapping(region, found);
  at(found);
}

void Registrations::close() {
  for (Datum& datum : data_)
    if (Datum* const leaving = &datum; datum.engine == parts_.engine)
      parts_.executor.remove(std::span(&leaving, 1));
}

}  // namespace quadriga
