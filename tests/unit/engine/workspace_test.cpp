// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/engine/workspace_test.cpp: codelets state what their variants need beside the
// operands, and get it, wherever they run.
#include <quadriga/division.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <set>

#include "memory/arena.h"
#include "unit/engine/engines.h"

namespace quadriga {
namespace {

class WorkspaceTest : public EngineTest {
 protected:
  static constexpr std::size_t bytes = 5000;
  static std::size_t some(const Arguments&, DeviceKind) { return bytes; }
  Future submit(const Codelet& codelet, const Data& data) {
    return engine().submit(codelet, {{data, Access::update}});
  }
};
INSTANTIATE_TEST_SUITE_P(, WorkspaceTest, every_engine(), where_name);

TEST_P(WorkspaceTest, IsTheTasksAloneWhileItRuns) {
  Codelet& works = codelet(Access::update, [](const Arguments& call) {
    ASSERT_EQ(call.workspace.size(), bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(call.workspace.data()) % Arena::usual_alignment, 0u);
    const auto mark = static_cast<std::byte>(first(call));
    std::ranges::fill(call.workspace, mark);
    first(call) += static_cast<double>(std::ranges::count(call.workspace, mark));
  });
  works.workspace = some;
  constexpr int tasks = 300;  // All at once need more than a device has.
  for (int i = 0; i < tasks; ++i) submit(works, tile(i % 100));
  wait();
  for (std::size_t i = 0; i < tasks; ++i)
    EXPECT_EQ(home(i), static_cast<double>(i % 100) + bytes) << i;
}

TEST_P(WorkspaceTest, FollowsFromParametersShapesAndKind) {
  std::mutex mutex;
  std::set<DeviceKind> asked;
  Codelet& works = codelet(Access::update, [](const Arguments& call) {
    first(call) = static_cast<double>(call.workspace.size());
  });
  works.workspace = [&](const Arguments& call, DeviceKind kind) {
    EXPECT_EQ(call.operands[0].data, nullptr);
    const std::lock_guard lock(mutex);
    asked.insert(kind);
    return kind == DeviceKind::cpu ? 0 : bytes_of(call.operands[0]) * call.param<std::size_t>();
  };
  const Data data = tile();
  const std::size_t times = 3;
  const Operand operand{data, Access::update};
  engine().submit(works, {&operand, 1}, std::as_bytes(std::span(&times, 1)), {.device = 0});
  wait();
  std::set<DeviceKind> kinds;
  for (const Device& device : engine().machine().devices) kinds.insert(device.kind);
  EXPECT_EQ(asked, kinds);
  EXPECT_EQ(home(0), GetParam() == Where::host ? 0 : 8 * sizeof(double) * times);
}

TEST_P(WorkspaceTest, WhoStatesNoneOrNoBytesGetsNone) {
  Codelet& works = codelet(Access::update, [](const Arguments& call) {
    first(call) = call.workspace.empty() && !call.workspace.data() ? 1 : 0;
  });
  submit(works, tile());
  works.workspace = [](const Arguments&, DeviceKind) { return std::size_t{0}; };
  submit(works, tile());
  wait();
  EXPECT_EQ(home(0), 1);
  EXPECT_EQ(home(1), 1);
}

TEST_P(WorkspaceTest, WhatItsFunctionThrowsIsThrownBySubmit) {
  Codelet& works = codelet(Access::update, [](const Arguments& call) { first(call) = 1; });
  const Data data = tile();
  works.workspace = [](const Arguments&, DeviceKind) -> std::size_t {
    fail(Errc::invalid_argument, "no such order");
  };
  EXPECT_EQ(failure_of([&] { submit(works, data); }), "no such order");
  works.workspace = some;
  submit(works, data);
  wait();
  EXPECT_EQ(home(0), 1);
}

TEST_P(WorkspaceTest, MoreThanThereIsIsRefused) {
  if (GetParam() == Where::host) GTEST_SKIP() << "the host has no arena";
  Codelet& works = codelet(Access::update, [](const Arguments&) {});
  const Data data = tile();
  works.workspace = [](const Arguments&, DeviceKind) { return std::size_t{1} << 50; };
  const std::string why = failure_of([&] { submit(works, data); });
  EXPECT_NE(why.find("device memory at once"), std::string::npos) << why;
}

TEST_P(WorkspaceTest, WhoDetachesAndWhoCombinesHasNone) {
  Codelet& detaches = host_codelet("detaches", {Access::update}, [](const Arguments&) {});
  detaches.detaches = true;
  detaches.workspace = some;
  const Data data = tile();
  const std::string why = failure_of([&] { submit(detaches, data); });
  EXPECT_NE(why.find("workspace"), std::string::npos) << why;
  Codelet& init = codelet(Access::write, [](const Arguments&) {});
  Codelet& combine = codelet("combine", {Access::update, Access::read}, [](const Arguments&) {});
  Codelet& adds = codelet(Access::reduce, [](const Arguments&) {});
  adds.init = &init;
  adds.combine = &combine;
  combine.workspace = some;
  const std::string other = failure_of([&] { engine().submit(adds, {{data, Access::reduce}}); });
  EXPECT_NE(other.find("workspace"), std::string::npos) << other;
}

TEST(DivisionTest, FineTasksHaveNoWorkspace) {
  Codelet fine{.name = "fine", .access = {Access::update}, .cpu = [](const Arguments&) {}};
  bool on_cores = false;
  fine.workspace = [&](const Arguments&, DeviceKind kind) {
    return std::size_t{kind != DeviceKind::cpu || on_cores ? 8U : 0U};
  };
  Codelet whole{.name = "whole", .access = {Access::update}, .cpu = [](const Arguments&) {}};
  set_division(
      whole,
      [&](const Arguments& call, Division& division) { division.add(fine, {call.operands[0]}); },
      Divided::always);
  double value = 0;
  const View view{&value, 1, 1, 1, DType::float64};
  EXPECT_NO_THROW(whole.cpu({{&view, 1}, {}, nullptr}));
  on_cores = true;
  const std::string why = failure_of([&] { whole.cpu({{&view, 1}, {}, nullptr}); });
  EXPECT_NE(why.find("workspace"), std::string::npos) << why;
}

}  // namespace
}  // namespace quadriga
