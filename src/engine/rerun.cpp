// SPDX-License-Identifier: BSD-3-Clause
// src/engine/rerun.cpp: pretended data, and codelets that only have a cost and a workspace.
#include "engine/rerun.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <set>
#include <utility>

#include "engine/engine_access.h"
#include "graph/pulled.h"

namespace quadriga {
namespace {

/// What a codelet's cost and workspace are told. The kernel's name is in `kernels`, for good.
struct RerunParams {
  const std::string* kernel;
  double order;
  double volume;
  std::uint64_t workspace;
};

/// Names are kept: a Cost refers to its kernel's.
const std::string& kept(const std::string& kernel) {
  static std::mutex mutex;
  static std::set<std::string> kernels;
  const std::lock_guard lock(mutex);
  return *kernels.insert(kernel).first;
}

}  // namespace

Rerun::Rerun(Engine& engine, std::vector<RecordedData> data)
    : engine_(engine), kinds_(std::move(data)), data_(kinds_.size()) {
  const EngineOptions& options = engine.options();
  require(options.virtual_clock && !options.compute,
          "a trace runs again on an engine under the virtual clock that doesn't compute");
  // Memory that nothing touches: an address is all that a task without data needs.
  constexpr std::uintptr_t first = std::uintptr_t{1} << 44;
  constexpr std::uintptr_t apart = 4096;
  std::uintptr_t next = first;
  for (const RecordedData& each : kinds_) {
    require(each.rows >= 0 && each.cols >= 0 && each.ld >= 0, "data of a negative size");
    homes_.push_back(next);
    const auto bytes = static_cast<std::uintptr_t>(std::max(each.rows, each.ld)) *
                       static_cast<std::uintptr_t>(each.cols) * size_of(each.dtype);
    next += (bytes / apart + 1) * apart;
  }
}

Rerun::~Rerun() {
  std::erase_if(data_, [](const Data& each) { return !each; });
  try {
    engine_.wait();
    engine_.remove(data_);
  } catch (...) {  // NOLINT: who waited was told
  }
}

Data Rerun::data_of(std::uint32_t number) {
  if (number >= kinds_.size())
    fail(Errc::invalid_argument,
         fmt::format("data {} of the trace: it has {}", number, kinds_.size()));
  Data& found = data_[number];
  if (found) return found;
  const RecordedData& kind = kinds_[number];
  found = kind.homed ? engine_.data(reinterpret_cast<void*>(homes_[number]), kind.rows, kind.cols,
                                    std::max({std::int64_t{1}, kind.rows, kind.ld}), kind.dtype)
                     : engine_.temporary(kind.rows, kind.cols, kind.dtype);
  return found;
}

const Codelet& Rerun::codelet_of(const RecordedTask& task) {
  std::string key = task.name;
  for (const Submission::Operand& each : task.submission.operands)
    key += fmt::format("\n{}", name(each.access));
  if (task.submission.host_only) key += "\nhost";
  if (task.submission.workspace > 0) key += "\nworkspace";
  std::unique_ptr<Codelet>& found = codelets_[key];
  if (found) return *found;
  found = std::make_unique<Codelet>();
  found->name = task.name;
  found->host_only = task.submission.host_only;
  for (const Submission::Operand& each : task.submission.operands)
    found->access.push_back(each.access);
  found->cpu = [](const Arguments&) {};
  found->cost = [](const Arguments& arguments) {
    const auto params = arguments.param<RerunParams>();
    return Cost{*params.kernel, params.order, params.volume};
  };
  if (task.submission.workspace > 0)
    found->workspace = [](const Arguments& arguments, DeviceKind kind) -> std::size_t {
      return kind == DeviceKind::cpu ? 0 : arguments.param<RerunParams>().workspace;
    };
  return *found;
}

void Rerun::submit(std::span<const RecordedTask> tasks) {
  for (const RecordedTask& task : tasks) {
    const Submission& given = task.submission;
    std::vector<Operand> operands;
    for (const Submission::Operand& each : given.operands)
      operands.push_back({data_of(each.data), each.access});
    RerunParams params{&kept(given.kernel), given.order, given.volume, given.workspace};
    if (given.kernel.empty()) {
      const Cost measured = Cost::of_seconds(task.seconds);
      params = {&kept(std::string(measured.kernel)), measured.order, measured.volume,
                given.workspace};
    }
    std::vector<Future> after;
    for (const std::uint64_t each : given.after) {
      const auto found = submitted_.find(each);
      if (found == submitted_.end())
        fail(Errc::invalid_argument,
             fmt::format("task {} of the trace follows {}, which doesn't come before it",
                         given.task, each));
      after.push_back(found->second);
    }
    SubmitOptions options;
    options.priority = given.priority;
    const bool is_owned = given.owner < engine_.machine().devices.size();
    options.owner = is_owned || given.owner == pulled_owner ? given.owner : no_device;
    options.after = after;
    submitted_[given.task] =
        EngineAccess::submit(engine_, codelet_of(task), operands,
                             std::as_bytes(std::span(&params, 1)), options, nullptr);
    for (const std::uint32_t each : given.final) engine_.final(data_of(each));
  }
}

}  // namespace quadriga
