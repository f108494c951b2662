// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/task_state_test.cpp: the states of a task: what may follow what, what events
// lead to them, and that anything else is refused.
#include "schedule/task_state.h"

#include <optional>
#include <set>
#include <string>

#include "graph/device_side.h"
#include "schedule/scheduler.h"
#include "scheduler_parts.h"

namespace quadriga {
namespace {

std::vector<TaskState> all_states() {
  std::vector<TaskState> all;
  for (std::size_t i = 0; i < task_states; ++i) all.push_back(static_cast<TaskState>(i));
  return all;
}

/// A way from the first state to another.
std::vector<TaskState> way_to(TaskState state) {
  using enum TaskState;
  switch (state) {
    case submitted:
      return {};
    case gathering:
      return {placed, gathering};
    case ready:
      return {placed, ready};
    case head:
    case skipped:
    case issued:
      return {placed, ready, state};
    case detached:
    case going_on:
      return {placed, ready, issued, state};
    default:
      return {state};
  }
}

/// Written down apart from the table, so that a change of it is meant.
std::set<TaskState> legal_after(TaskState state) {
  using enum TaskState;
  switch (state) {
    case submitted:
      return {deferred, waiting, placed, ended};
    case placed:
      return {submitted, gathering, ready};
    case gathering:
      return {submitted, ready};
    case ready:
      return {submitted, head, skipped, issued, ended};
    case head:
      return {ready};
    case issued:
      return {detached, going_on, ended};
    case deferred:
    case waiting:
      return {submitted};
    case ended:
      return {};
    default:
      return {ended};
  }
}

TEST(TaskStateTest, OnlyWhatIsListedFollowsAState) {
  int refused = 0;
  for (const TaskState before : all_states())
    for (const TaskState after : all_states()) {
      SCOPED_TRACE(std::string(name(before)) + " to " + std::string(name(after)));
      PlannedTask planned;
      for (const TaskState step : way_to(before)) planned.enter(step);
      ASSERT_EQ(planned.state(), before);
      if (legal_after(before).contains(after)) {
        planned.enter(after);
        EXPECT_EQ(planned.state(), after);
        continue;
      }
      ++refused;
      try {
        planned.enter(after);
        ADD_FAILURE() << "it wasn't refused";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::internal);
        EXPECT_NE(std::string(error.what()).find(name(after)), std::string::npos) << error.what();
      }
      EXPECT_EQ(planned.state(), before) << "a refused step changes nothing";
    }
  EXPECT_EQ(refused, 144 - 23);
}

TEST(TaskStateTest, EachHasAName) {
  std::set<std::string_view> names;
  for (const TaskState state : all_states()) EXPECT_TRUE(names.insert(name(state)).second);
}

/// Its first operand's content is where a device is, or it can't run yet.
class LateSide final : public DeviceSide {
 public:
  std::optional<DeviceId> choose(const TaskRef&, std::span<const OperandPlace>) noexcept override {
    return is_late ? std::nullopt : std::optional<DeviceId>(0);
  }
  bool moves_to_host() noexcept override { return false; }
  bool goes_on() const noexcept override { return true; }
  void go_on(const Promise&) noexcept override {}

  bool is_late = true;
};

/// A scheduler of two devices; after each event all that it holds is checked.
class TaskStatesTest : public SchedulerPartsTest {
 protected:
  explicit TaskStatesTest(const char* policy = "affinity")
      : scheduler_(machine_, scheduled_, told_, runner_,
                   {.policy = make_policy(policy, {machine_, 1}),
                    .memory = {},
                    .spaces = spaces_,
                    .kernel_streams = streams_}) {}

  Datum& added(std::size_t tiles = 1) {
    Datum& made = data_.emplace_back();
    made.home = homes_.emplace_back(std::make_unique<std::byte[]>(tiles * tile_bytes)).get();
    made.rows = made.ld = static_cast<std::int64_t>(tiles * tile_bytes);
    made.cols = 1;
    scheduler_.add(made);
    return made;
  }
  Task& task(std::vector<Operand> operands) {
    Task& made = tasks_.emplace_back();
    made.id = tasks_.size();
    made.codelet = &codelet_;
    made.take_slots(operands.size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      OperandSlot& slot = made.slots()[i];
      slot.datum = operands[i].datum;
      slot.access = operands[i].access;
      slot.version = slot.datum->versions;
      if (writes(slot.access)) ++slot.datum->versions;
    }
    return made;
  }
  Task& submitted(std::vector<Operand> operands) { return submitted(task(std::move(operands))); }
  Task& submitted(Task& made) {
    scheduler_.submitted(made, {});
    check();
    return made;
  }
  void ready(Task& each) {
    scheduler_.ready(each, Predecessors::done);
    check();
  }
  /// One is issued, and the other waits for room.
  std::pair<Task&, Task&> two_where_one_has_room() {
    Task& first = task({{&added(3), Access::update}});
    Task& second = task({{&added(3), Access::update}});
    first.device = second.device = 0;
    ready(submitted(first));
    ready(submitted(second));
    steps();
    return {first, second};
  }
  void steps() {
    scheduler_.begin_steps();
    while (scheduler_.step()) check();
    check();
  }
  /// All instructions so far.
  void end_all() {
    std::vector<Event> events;
    for (const Instruction& each : scheduled_.pending())
      if (!std::holds_alternative<Event>(each.operation))
        events.push_back({each.stream, each.ticket});
    scheduled_.clear();
    for (const Event& event : events) {
      scheduler_.ended({.event = event, .begin = 0, .end = 1, .error = nullptr});
      check();
    }
  }
  void check() {
    ASSERT_NO_THROW(scheduler_.validate());
    // What people are told names the states, too.
    for (const Task& each : tasks_)
      EXPECT_TRUE(!each.planned || text().find(name(state_of(each))) != std::string::npos)
          << text();
  }
  static TaskState state_of(const Task& each) {
    return each.planned ? each.planned->state() : TaskState::ended;
  }
  std::string text() const { return scheduler_.status(); }

  std::vector<SpaceResources> spaces_ = resources();
  std::vector<std::vector<StreamId>> streams_ = {{compute}, {5 + compute}};
  Instructions scheduled_;
  ToldListener told_;
  Scheduler scheduler_;
};

TEST_F(TaskStatesTest, OfATaskThatRuns) {
  Task& each = submitted({{&added(), Access::update}});
  EXPECT_EQ(state_of(each), TaskState::submitted);
  ready(each);
  EXPECT_EQ(state_of(each), TaskState::ready);
  steps();
  EXPECT_EQ(state_of(each), TaskState::issued);
  end_all();
  EXPECT_EQ(state_of(each), TaskState::ended);
}

TEST_F(TaskStatesTest, OfATaskWhoseDeviceIsKnownBefore) {
  Task& each = task({{&added(), Access::read}});
  each.device = 1;
  EXPECT_EQ(state_of(submitted(each)), TaskState::placed);
  EXPECT_NE(text().find("task 1 'task' is placed, waits for"), std::string::npos) << text();
}

TEST_F(TaskStatesTest, OfATaskThatFindsNoRoom) {
  const auto [first, second] = two_where_one_has_room();
  EXPECT_EQ(state_of(first), TaskState::issued);
  EXPECT_EQ(state_of(second), TaskState::head);
  EXPECT_NE(text().find("task 2 'task' is head, waits for room"), std::string::npos) << text();
  while (state_of(second) == TaskState::head) {
    ASSERT_FALSE(scheduled_.pending().empty());
    end_all();
    steps();
  }
  EXPECT_EQ(state_of(first), TaskState::ended);
  EXPECT_EQ(state_of(second), TaskState::issued);
}

TEST_F(TaskStatesTest, OfAHeadThatIsCancelled) {
  const auto [first, second] = two_where_one_has_room();
  scheduler_.cancel(true);
  steps();
  EXPECT_EQ(state_of(first), TaskState::issued);
  EXPECT_EQ(state_of(second), TaskState::ended);
}

class PulledTaskStatesTest : public TaskStatesTest {
 protected:
  PulledTaskStatesTest() : TaskStatesTest("data-first") {}
};

TEST_F(PulledTaskStatesTest, OfATaskThatADevicePulls) {
  Task& each = submitted({{&added(), Access::read}});
  ready(each);
  EXPECT_EQ(state_of(each), TaskState::waiting);
  EXPECT_NE(text().find("without a device: 1 waiting"), std::string::npos) << text();
  ready(each);  // once more: they are done now
  EXPECT_EQ(state_of(each), TaskState::waiting);
  steps();
  EXPECT_EQ(state_of(each), TaskState::issued);
}

TEST_F(TaskStatesTest, OfTasksThatStartTogether) {
  const auto gang = std::make_shared<Gang>(2, 1);
  for (DeviceId device = 0; device < 2; ++device) {
    Task& each = task({{&added(), Access::read}});
    each.device = device;
    each.has_extra = true;
    each.extra.gang = gang;
    submitted(each);
    EXPECT_EQ(state_of(each), TaskState::placed);
  }
  ready(tasks_[0]);
  steps();
  EXPECT_EQ(state_of(tasks_[0]), TaskState::gathering);
  ready(tasks_[0]);
  EXPECT_EQ(state_of(tasks_[0]), TaskState::gathering);
  ready(tasks_[1]);
  for (const Task& each : tasks_) EXPECT_EQ(state_of(each), TaskState::ready);
  steps();
  for (const Task& each : tasks_) EXPECT_EQ(state_of(each), TaskState::issued);
}

TEST_F(TaskStatesTest, OfATaskThatAPromiseEnds) {
  codelet_.detaches = true;
  Task& each = submitted({{&added(), Access::update}});
  each.has_extra = true;
  LateSide side;
  each.extra.side = &side;
  ready(each);
  EXPECT_EQ(state_of(each), TaskState::deferred);
  EXPECT_TRUE(scheduler_.awaits_promises());
  side.is_late = false;
  ready(each);
  EXPECT_EQ(state_of(each), TaskState::ready);
  EXPECT_FALSE(scheduler_.awaits_promises());
  steps();
  end_all();
  EXPECT_EQ(state_of(each), TaskState::going_on);
  EXPECT_TRUE(scheduler_.awaits_promises());
  scheduler_.kept(each, nullptr);
  check();
  EXPECT_EQ(state_of(each), TaskState::ended);
}

TEST_F(TaskStatesTest, OfATaskWithNothingToCombine) {
  Task& each = submitted({{&added(), Access::update}, {&added(), Access::read}});
  each.slots()[1].datum->partial = true;
  ready(each);
  steps();
  EXPECT_EQ(state_of(each), TaskState::ended);
  EXPECT_EQ(std::ranges::count(told_.told, "ran"), 1);
  EXPECT_EQ(std::ranges::count(told_.told, "failed"), 0);
  EXPECT_TRUE(scheduled_.pending().empty());
}

TEST_F(TaskStatesTest, AStateThatNothingElseTellsOfIsFound) {
  Task& each = submitted({{&added(), Access::update}});
  ready(each);
  each.planned->enter(TaskState::head);  // of no device
  EXPECT_THROW(scheduler_.validate(), Error);
}

TEST_F(TaskStatesTest, APromiseThatNobodyCountsIsFound) {
  Task& each = submitted({{&added(), Access::update}});
  each.planned->enter(TaskState::deferred);
  EXPECT_THROW(scheduler_.validate(), Error);
}

}  // namespace
}  // namespace quadriga
