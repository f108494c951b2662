// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/schedule/workspace_test.cpp: what a task needs beside its operands is reserved with
// them, all or nothing, and free again when it has ended. A device holds four tiles.
#include "scheduler_parts.h"

namespace quadriga {
namespace {

class WorkspaceTest : public SchedulerPartsTest {
 protected:
  /// Each device's.
  PlannedTask& ready_with(std::array<std::size_t, 2> bytes, std::vector<Operand> operands,
                          DeviceId device = 0) {
    PlannedTask& planned = ready(std::move(operands), device);
    Task& task = *planned.task;
    task.has_extra = true;
    task.extra.workspaces = std::make_unique<std::size_t[]>(2);
    std::ranges::copy(bytes, task.extra.workspaces.get());
    return planned;
  }
  Verdict issue(PlannedTask& planned) {
    return launcher_.issue(state_.devices[planned.device], planned);
  }
  std::size_t used(DeviceId device = 0) const {
    return memory_.pool(static_cast<SpaceId>(device + 1)).used();
  }
  /// That of the last instruction, which is a launch.
  std::span<std::byte> workspace() const {
    return std::get<Launch>(instructions_.pending().back().operation).arguments.workspace;
  }
  bool waits_for_room(PlannedTask& planned) {
    const Verdict verdict = issue(planned);
    return verdict.kind == Verdict::Kind::waits && verdict.awaits == Awaits::room;
  }
};

TEST_F(WorkspaceTest, IsReservedWithTheOperandsAndFreeAgainAtTheEnd) {
  Datum& a = datum();
  PlannedTask& planned = ready_with({1000, 0}, {{&a, Access::read}});
  EXPECT_EQ(issue(planned).kind, Verdict::Kind::issued);
  EXPECT_EQ(used(), tile_bytes + 1024);
  EXPECT_EQ(workspace().size(), 1000u);
  const std::byte* const tile = memory_.replicas().address(a.tile, 1);
  EXPECT_GE(workspace().data(), arenas_[0].data());
  EXPECT_LE(workspace().data() + 1000, arenas_[0].data() + arenas_[0].size());
  EXPECT_TRUE(workspace().data() >= tile + tile_bytes || workspace().data() + 1000 <= tile);
  end_copies(in);
  std::size_t at_the_end = 0;
  listener_.on_end = [&] { at_the_end = used(); };
  end_kernel();
  EXPECT_EQ(at_the_end, tile_bytes) << "before anybody is told";
  memory_.validate();
}

TEST_F(WorkspaceTest, WhoFindsNoRoomForItHoldsNothing) {
  issued({{&datum(), Access::read}, {&datum(), Access::read}});
  Datum& a = datum();
  PlannedTask& planned = ready_with({2 * tile_bytes, 0}, {{&a, Access::read}});
  EXPECT_TRUE(waits_for_room(planned));
  EXPECT_EQ(used(), 2 * tile_bytes);
  EXPECT_EQ(pins(a), 0u);
  end_copies(in);
  end_kernel();
  EXPECT_EQ(issue(planned).kind, Verdict::Kind::issued) << "what is clean and unused leaves";
  EXPECT_EQ(pins(a), 1u);
  end_copies(in);
  end_kernel();
  memory_.validate();
}

TEST_F(WorkspaceTest, ATaskThatNeverRanLeavesNone) {
  issued({{&datum(), Access::read}, {&datum(), Access::read}});
  PlannedTask& planned = ready_with({3 * tile_bytes, 0}, {{&datum(), Access::read}});
  EXPECT_TRUE(waits_for_room(planned));
  const std::size_t before = used();
  endings_.end(planned, error(Errc::cancelled));
  EXPECT_EQ(used(), before);
  memory_.validate();
}

TEST_F(WorkspaceTest, IsAsLargeAsItsDeviceNeedsIt) {
  issued({{&datum(), Access::read}, {&datum(), Access::read}});
  PlannedTask& planned = ready_with({3 * tile_bytes, 256}, {{&datum(), Access::read}});
  EXPECT_TRUE(waits_for_room(planned));
  placement_.move(planned, 1);
  EXPECT_EQ(issue(planned).kind, Verdict::Kind::issued);
  EXPECT_EQ(workspace().size(), 256u);
  EXPECT_EQ(used(1), tile_bytes + 256);
  EXPECT_EQ(used(0), 2 * tile_bytes);
}

TEST_F(WorkspaceTest, IsElsewhereWhenItsDeviceIsLost) {
  Datum& a = datum();
  PlannedTask& planned = ready_with({512, 1024}, {{&a, Access::read}});
  EXPECT_EQ(issue(planned).kind, Verdict::Kind::issued);
  end_copies(in);
  DeviceState& lost = state_.devices[0];
  Launcher::ended(lost, lost.streams.front(), planned);
  recovery_.set_aside(lost, error(Errc::device_lost), &planned);
  EXPECT_TRUE(recovery_.run_again(planned));
  EXPECT_EQ(workspace().size(), 1024u);
  EXPECT_EQ(used(1), tile_bytes + 1024);
  end_copies(5 + in);
  end_kernel(1);
  EXPECT_EQ(used(1), tile_bytes);
  memory_.validate();
}

TEST_F(WorkspaceTest, ATaskThatNeedsMoreThanADeviceHasIsRefused) {
  PlannedTask& planned = ready_with({room * tile_bytes, 0}, {{&datum(), Access::read}});
  const Feasibility& feasibility = placement_.feasibility();
  EXPECT_FALSE(feasibility.can_run(state_.devices[0], *planned.task));
  EXPECT_TRUE(feasibility.can_run(state_.devices[1], *planned.task));
}

}  // namespace
}  // namespace quadriga
