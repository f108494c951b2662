// SPDX-License-Identifier: BSD-3-Clause
// src/engine/waits.cpp: waits through the executor, which runs or drives tasks meanwhile.
#include "engine/waits.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>

namespace quadriga {

Nanoseconds Waits::deadline_after(double timeout) const {
  return timeout < 0 ? never : executor_.now() + static_cast<Nanoseconds>(timeout * 1e9);
}

void Waits::until(const std::function<bool()>& condition, Nanoseconds deadline,
                  const std::string& what) const {
  if (!executor_.wait(condition, deadline, Checked::by_anybody)) fail_late(what);
}

void Waits::until_ended(std::span<const TaskRef> tasks, Nanoseconds deadline) const {
  for (const TaskRef& ref : tasks) holds_.refuse_own(&ref);
  const auto has_ended = [&](const TaskRef& ref) { return graph_.ended(ref); };
  until([&] { return std::ranges::all_of(tasks, has_ended); }, deadline,
        "the tasks that touch the data");
}

void Waits::until_home(std::span<Datum* const> written, Nanoseconds deadline) const {
  if (!executor_.bring_home(written, {}, deadline)) fail_late("writing results back");
}

void Waits::fail_late(const std::string& what) const {
  fail(Errc::deadline,
       fmt::format("{} did not end in time; it goes on\n{}", what, executor_.status()));
}

}  // namespace quadriga
