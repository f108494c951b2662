// SPDX-License-Identifier: BSD-3-Clause
// src/schedule/replay.cpp: data, codelets and tasks made anew from a log, and the events of it.
#include "schedule/replay.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <istream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "device/kinds.h"
#include "graph/graph.h"
#include "graph/partials.h"
#include "graph/task_life.h"
#include "schedule/policy_registry.h"
#include "schedule/schedule_log.h"
#include "schedule/scheduler.h"

namespace quadriga {
namespace {

using Json = nlohmann::json;

template <class T>
T* address_of(const Json& number) {
  return reinterpret_cast<T*>(number.get<std::uintptr_t>());
}

/// Nobody carries anything out.
class NoListener final : public ScheduleListener, public TaskRunner {
 public:
  void issued(PlannedTask&) override {}
  void ended(const EndedTask&) override {}
  void failed(Task&, std::exception_ptr, DeviceId) override {}
  void content_lost(Datum&, std::exception_ptr) override {}
  void device_lost(DeviceId) override {}
  void noticed(std::string) override {}
  void marked(DeviceId, Mark, TileId, std::uint64_t) override {}
  void copied(const EndedCopy&, const Completion&) override {}
  void ran(const PlannedTask&, const Completion&) override {}
  void freed(SpaceId, std::byte*, std::size_t) override {}
  void run(const PlannedTask&, const Arguments&) override {}
};

class Replay {
 public:
  Replay(std::istream& log, std::uint64_t validate_every)
      : log_(log), validate_every_(validate_every) {}
  ~Replay() {
    for (Reduction& reduction : reductions_)
      for (std::unique_ptr<Datum>& partial : reduction.partials)
        static_cast<void>(partial.release());
  }
  ReplayResult run();

 private:
  void guard(const std::function<void()>& work);
  void take_line(const std::string& text);
  void take(const Json& line);
  void carry_out();
  void take_event(const std::string& kind, const Json& line);
  void make_scheduler(const Json& line);
  void add_codelet(const Json& line);
  void add_data(const Json& line);
  void submit(const Json& line);
  void set_operand(Task& task, int operand, const Json& logged);
  void end(const Json& line);
  void compare(const std::string& logged);
  void expect_nothing_more(const std::string& logged);
  Datum& datum(const Json& tile) { return *data_.at(tile.get<TileId>()); }
  TaskGroup* group(const Json& number);
  void join_gang(Task& task, const Json& line);
  void set_workspaces(Task& task, const Json& line);

  std::istream& log_;
  std::uint64_t validate_every_;
  ReplayResult result_;
  std::uint64_t line_ = 0;
  Json event_;                    ///< That is carried out once all that was refused is known.
  std::uint64_t event_line_ = 0;  ///< Where it stands.
  std::set<std::uint64_t> refusals_;
  Machine machine_;
  Json options_;
  std::vector<SpaceResources> spaces_;
  Instructions instructions_;
  NoListener listener_;
  std::ostringstream written_;
  ScheduleLog names_{written_};  ///< For the form of instructions.
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::unique_ptr<Codelet>> codelets_;
  std::set<std::string> kernels_;  ///< Names that costs refer to.
  std::deque<Datum> all_data_;
  std::map<TileId, Datum*> data_;  ///< Those that are not removed.
  std::map<std::uint64_t, std::unique_ptr<Task>> tasks_;
  std::map<std::uint64_t, std::unique_ptr<TaskGroup>> groups_;
  std::map<std::uint64_t, std::shared_ptr<Gang>> gangs_;
  std::deque<Reduction> reductions_;
  std::size_t compared_ = 0;  ///< Of the pending instructions.
};

TaskGroup* Replay::group(const Json& number) {
  const auto id = number.get<std::uint64_t>();
  if (id == 0) return nullptr;
  std::unique_ptr<TaskGroup>& group = groups_[id];
  if (!group) group = std::make_unique<TaskGroup>();
  return group.get();
}

void Replay::join_gang(Task& task, const Json& line) {
  const auto id = line[11].get<std::uint64_t>();
  if (id == 0) return;
  std::shared_ptr<Gang>& gang = gangs_[id];
  if (!gang) gang = std::make_shared<Gang>(line[12].get<std::uint32_t>(), id);
  task.has_extra = true;
  task.extra.gang = gang;
}

/// Logs of tasks that need none may lack them.
void Replay::set_workspaces(Task& task, const Json& line) {
  if (line.size() <= 13 || line[13].empty()) return;
  const auto bytes = line[13].get<std::vector<std::size_t>>();
  if (bytes.size() != machine_.devices.size())
    fail(Errc::io, fmt::format("line {} of the log: workspaces of {} devices; the machine has {}",
                               line_, bytes.size(), machine_.devices.size()));
  task.has_extra = true;
  task.extra.workspaces = std::make_unique<std::size_t[]>(bytes.size());
  std::ranges::copy(bytes, task.extra.workspaces.get());
}

void Replay::make_scheduler(const Json& line) {
  const auto kernel_streams = line[1].get<std::vector<std::vector<StreamId>>>();
  MemoryOptions memory;
  memory.spill_bytes = options_[4].get<std::size_t>();
  memory.answers.to_refuse = &refusals_;
  const auto policy = options_[1].get<std::string>();
  const auto seed = options_[2].get<std::uint64_t>();
  const int most_rounds = options_[3].get<int>();
  const auto eviction = options_.size() > 5 ? options_[5].get<std::string>() : std::string();
  names_.begin(machine_, policy, eviction, seed, most_rounds, memory, spaces_, kernel_streams);
  scheduler_ = std::make_unique<Scheduler>(
      machine_, instructions_, listener_, listener_,
      ScheduleOptions{.policy = make_policy(policy, {machine_, seed}, eviction),
                      .memory = memory,
                      .spaces = spaces_,
                      .kernel_streams = kernel_streams,
                      .most_rounds = most_rounds});
}

void Replay::add_codelet(const Json& line) {
  const auto number = line[1].get<std::size_t>();
  if (codelets_.size() <= number) codelets_.resize(number + 1);
  codelets_[number] = std::make_unique<Codelet>();
  Codelet& codelet = *codelets_[number];
  codelet.name = line[2].get<std::string>();
  const Kernel present = [](const Arguments&) {};
  for (const Json& kind : line[3])
    codelet.variant(device_kind(kind.get_ref<const std::string&>())) = present;
  if (line[4].get<bool>()) codelet.cost = [](const Arguments&) { return Cost{}; };
  codelet.host_only = line[5].get<bool>();
  codelet.submits = line[6].get<bool>();
  codelet.waits_to_queue = line[7].get<bool>();
  const auto part = [&](const Json& other) {
    return other.get<int>() < 0 ? nullptr : codelets_.at(other.get<std::size_t>()).get();
  };
  codelet.init = part(line[8]);
  codelet.combine = part(line[9]);
  codelet.detaches = line[10].get<bool>();
}

void Replay::add_data(const Json& line) {
  Datum& made = all_data_.emplace_back();
  made.rows = line[2].get<std::int64_t>();
  made.cols = line[3].get<std::int64_t>();
  made.ld = line[4].get<std::int64_t>();
  made.dtype = static_cast<DType>(line[5].get<int>());
  made.home = address_of<std::byte>(line[6]);
  made.home_space = line[7].get<SpaceId>();
  made.partial = line[8].get<bool>();
  scheduler_->add(made);
  if (made.tile != line[1].get<TileId>())
    fail(Errc::io, fmt::format("the log's tile {} is tile {} here", line[1].dump(), made.tile));
  data_[made.tile] = &made;
}

void Replay::set_operand(Task& task, int operand, const Json& logged) {
  OperandSlot& slot = task.operands[operand];
  slot.datum = &datum(logged[0]);
  slot.access = static_cast<Access>(logged[1].get<int>());
  slot.version = logged[2].get<std::uint32_t>();
  task.has_commute |= slot.access >= Access::commute;
  slot.behind_host = logged[4].get<bool>();
  if (slot.behind_host) task.behind_hold = true;
  if (logged[3].empty()) return;
  Reduction& reduction = reductions_.emplace_back();
  for (const Json& tile : logged[3]) {
    // Owned by all_data_: ~Replay() takes it back.
    reduction.partials.emplace_back(tile.get<std::int64_t>() < 0 ? nullptr : &datum(tile));
  }
  task.has_extra = true;
  if (!task.extra.reductions)
    task.extra.reductions = std::make_unique<Reduction*[]>(task.operand_count);
  task.extra.reductions[operand] = &reduction;
}

void Replay::submit(const Json& line) {
  const auto id = line[1].get<std::uint64_t>();
  std::unique_ptr<Task>& task = tasks_[id];
  task = std::make_unique<Task>();
  task->id = id;
  task->codelet = codelets_.at(line[2].get<std::size_t>()).get();
  task->priority = line[3].get<std::int32_t>();
  task->device = line[4].get<DeviceId>();
  task->owner = line[5].get<DeviceId>();
  task->group = group(line[6]);
  const Json& operands = line[10];
  task->operand_count = static_cast<std::uint16_t>(operands.size());
  task->extra.operands = std::make_unique<OperandSlot[]>(operands.size());
  task->operands = task->extra.operands.get();
  for (std::size_t i = 0; i < operands.size(); ++i)
    set_operand(*task, static_cast<int>(i), operands[i]);
  join_gang(*task, line);
  set_workspaces(*task, line);
  const std::string& kernel = *kernels_.insert(line[7].get<std::string>()).first;
  ++result_.tasks;
  scheduler_->submitted(*task, {kernel, line[8].get<double>(), line[9].get<double>()});
}

void Replay::end(const Json& line) {
  Completion completion;
  completion.event = {line[1].get<StreamId>(), line[2].get<std::uint64_t>()};
  completion.begin = line[3].get<Nanoseconds>();
  completion.end = line[4].get<Nanoseconds>();
  if (line.size() > 5)
    completion.error =
        std::make_exception_ptr(Error(static_cast<Errc>(line[5].get<int>()), "as logged"));
  scheduler_->ended(completion);
}

void Replay::take_event(const std::string& kind, const Json& line) {
  if (kind == "data") return add_data(line);
  if (kind == "task") return submit(line);
  if (kind == "ended") return end(line);
  if (kind == "ready") {
    const EndedTask by{.device = line[3].get<DeviceId>(), .path = line[4].get<Nanoseconds>()};
    Task& task = *tasks_.at(line[1].get<std::uint64_t>());
    return scheduler_->ready(task, static_cast<Predecessors>(line[2].get<int>()), &by);
  }
  if (kind == "kept")
    return scheduler_->kept(*tasks_.at(line[1].get<std::uint64_t>()),
                            line[2].get<bool>()
                                ? std::make_exception_ptr(Error(Errc::task_failed, "as logged"))
                                : nullptr);
  if (kind == "begin_steps") return scheduler_->begin_steps();
  if (kind == "step") return static_cast<void>(scheduler_->step());
  if (kind == "standstill") return static_cast<void>(scheduler_->resolve_standstill());
  if (kind == "cancel") return scheduler_->cancel(line[1].get<bool>());
  if (kind == "cancel_group") return scheduler_->cancel(*group(line[1]));
  if (kind == "final") return scheduler_->final(datum(line[1]));
  if (kind == "evict") return scheduler_->evict(datum(line[1]));
  if (kind == "bring_home") {
    if (line.size() > 2 && line[2].get<bool>()) lose(datum(line[1]));
    return static_cast<void>(scheduler_->bring_home(datum(line[1])));
  }
  if (kind == "give_back")
    return static_cast<void>(scheduler_->give_back(datum(line[1]), line[2].get<bool>()));
  if (kind == "host_wrote") return scheduler_->host_wrote(datum(line[1]));
  if (kind == "remove") {
    scheduler_->remove(datum(line[1]));
    data_.erase(line[1].get<TileId>());
    return;
  }
  fail(Errc::io, fmt::format("'{}' is not an event", kind));
}

void Replay::take(const Json& line) {
  const auto kind = line.at(0).get<std::string>();
  if (kind == "machine") {
    machine_ = Machine::from_json(line[1].dump());
  } else if (kind == "options") {
    options_ = line;
  } else if (kind == "space") {
    spaces_.push_back({line[1].get<DeviceId>(), address_of<std::byte>(line[2]),
                       line[3].get<std::size_t>(), line[4].get<StreamId>(), line[5].get<StreamId>(),
                       line[6].get<std::vector<StreamId>>()});
    SpaceResources& space = spaces_.back();
    if (space.device >= machine_.devices.size()) return;
    space.is_file = properties_of(machine_.devices[space.device].kind).only_stores;
    space.node = machine_.devices[space.device].node;
  } else if (kind == "kernel_streams") {
    make_scheduler(line);
  } else if (kind == "codelet") {
    add_codelet(line);
  } else {
    expect_nothing_more(line.dump());
    event_ = line;
    event_line_ = line_;
  }
}

void Replay::carry_out() {
  if (event_.is_null()) return;
  const Json event = std::exchange(event_, nullptr);
  const std::uint64_t here = std::exchange(line_, event_line_);
  ++result_.events;
  take_event(event[0].get<std::string>(), event);
  if (validate_every_ != 0 && result_.events % validate_every_ == 0) scheduler_->validate();
  line_ = here;
}

void Replay::compare(const std::string& logged) {
  ++result_.instructions;
  const std::span<const Instruction> pending = instructions_.pending();
  const std::string now =
      compared_ < pending.size() ? names_.line_of(pending[compared_]) : "no instruction";
  ++compared_;
  if (now != logged)
    result_.difference = fmt::format("line {}: logged {}\nnow {}", line_, logged, now);
}

/// All instructions of the event before were logged as well.
void Replay::expect_nothing_more(const std::string& logged) {
  const std::span<const Instruction> pending = instructions_.pending();
  if (compared_ < pending.size() && result_.difference.empty())
    result_.difference = fmt::format("line {}: logged {}\nnow {}", line_, logged,
                                     names_.line_of(pending[compared_]));
  instructions_.clear();
  compared_ = 0;
}

void Replay::take_line(const std::string& text) {
  const Json line = Json::parse(text);
  if (line.at(0) == "refused") {
    refusals_.insert(line.at(1).get<std::uint64_t>());
    return;
  }
  carry_out();
  if (line.at(0) == ">")
    compare(text);
  else
    take(line);
}

/// Errors: io naming the line.
void Replay::guard(const std::function<void()>& work) {
  try {
    work();
  } catch (const Json::exception& error) {
    fail(Errc::io, fmt::format("line {} of the log: {}", line_, error.what()));
  } catch (const std::out_of_range&) {
    fail(Errc::io, fmt::format("line {} of the log names what isn't there", line_));
  }
}

ReplayResult Replay::run() {
  std::string text;
  while (result_.difference.empty() && std::getline(log_, text)) {
    ++line_;
    guard([&] { take_line(text); });
  }
  if (!scheduler_) fail(Errc::io, "the log doesn't say what the scheduler was made of");
  if (result_.difference.empty()) guard([&] { carry_out(); });
  expect_nothing_more("the end");
  return result_;
}

}  // namespace

ReplayResult replay(std::istream& log, std::uint64_t validate_every) {
  return Replay(log, validate_every).run();
}

}  // namespace quadriga
