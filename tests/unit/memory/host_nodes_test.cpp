// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/memory/host_nodes_test.cpp: buffers near the device that fills them, on hosts of two
// nodes: where they lie, what copies of them take, and one eviction for all.
#include "memory/host_nodes.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "memory/memory.h"

namespace quadriga {
namespace {

constexpr std::size_t page = 4096;

std::vector<Node> two_nodes(std::size_t first_bytes, std::size_t second_bytes) {
  return {{.index = 2, .memory_bytes = first_bytes}, {.index = 5, .memory_bytes = second_bytes}};
}

TEST(HostNodesTest, OneNodeIsAnyNode) {
  const std::vector<Node> one{{.index = 0, .memory_bytes = page}};
  HostNodes nodes(one);
  EXPECT_FALSE(nodes.are_several());
  EXPECT_EQ(nodes.choose(page, 0), any_node);
  nodes.take(any_node, page);
  EXPECT_EQ(nodes.used(any_node), 0u);
}

TEST(HostNodesTest, TheNearOneWhileItHasRoom) {
  HostNodes nodes(two_nodes(3 * page, 4 * page));
  EXPECT_EQ(nodes.choose(page, 2), 2);
  EXPECT_EQ(nodes.choose(page, any_node), 5) << "it has most room";
  nodes.take(2, 3 * page);
  EXPECT_EQ(nodes.choose(page, 2), 5);
  nodes.give_back(2, page);
  EXPECT_EQ(nodes.used(2), 2 * page);
  EXPECT_EQ(nodes.choose(page, 2), 2);
  EXPECT_EQ(nodes.choose(2 * page, 2), 5);
}

TEST(HostNodesTest, TheNearOneWhereNoneHasRoom) {
  HostNodes nodes(two_nodes(page, page));
  EXPECT_EQ(nodes.choose(2 * page, 5), 5) << "the system takes the rest from elsewhere";
  nodes.take(5, 2 * page);
  EXPECT_EQ(nodes.choose(page, 5), 2);
  EXPECT_EQ(nodes.choose(page, 7), 2) << "no such node";
}

TEST(HostNodesTest, BuffersAreReusedOnTheirNode) {
  Spill spill(8 * page, "", two_nodes(4 * page, 4 * page));
  std::byte* const near = spill.allocate(page, 2);
  std::byte* const far = spill.allocate(page, 5);
  EXPECT_EQ(spill.node(near), 2);
  EXPECT_EQ(spill.node(far), 5);
  spill.deallocate(near, page);
  spill.deallocate(far, page);
  EXPECT_EQ(spill.nodes().used(2), 0u);
  EXPECT_EQ(spill.allocate(page, 5), far);
  EXPECT_EQ(spill.allocate(page, 2), near);
}

TEST(HostNodesTest, KeptBuffersOfANodeLeaveTheirMemoryToAnother) {
  Spill spill(2 * page, "", two_nodes(2 * page, 2 * page));
  for (const int node : {2, 5, 2}) {
    std::array<std::byte*, 2> buffers{spill.allocate(page, node), spill.allocate(page, node)};
    for (std::byte* const buffer : buffers) {
      ASSERT_TRUE(buffer) << spill.refusal();
      EXPECT_EQ(spill.node(buffer), node);
    }
    EXPECT_LE(spill.held(), spill.limit());
    for (std::byte* const buffer : buffers) spill.deallocate(buffer, page);
  }
}

/// This computer has a node 0 at least, whose pages the system is to prefer.
TEST(HostNodesTest, PagesComeFromTheNode) {
  const std::vector<Node> nodes{{.index = 0, .memory_bytes = page},
                                {.index = 1, .memory_bytes = page}};
  Spill spill(page, "", nodes);
  std::byte* const buffer = spill.allocate(page, 0);
  ASSERT_TRUE(buffer);
  std::memset(buffer, 1, page);
  int policy = -1;
  std::array<unsigned long, 16> mask{};
  if (syscall(SYS_get_mempolicy, &policy, mask.data(), 1024UL, buffer, MPOL_F_ADDR) != 0)
    GTEST_SKIP() << "this system tells nothing about its nodes";
  if (policy == MPOL_DEFAULT) GTEST_SKIP() << "this system takes no wishes";
  EXPECT_EQ(policy, MPOL_PREFERRED);
  EXPECT_EQ(mask[0], 1u);
}

/// Two devices, each near a node of its own; what crosses to the other node takes ten times as
/// long. Buffers on the host for four tiles, two on each node.
class NearBuffersTest : public ::testing::Test, public TileForecast, public MemoryListener {
 protected:
  std::uint64_t next_use(TileId tile, SpaceId) const override {
    const auto found = next_uses_.find(tile);
    return found == next_uses_.end() ? no_next_use : found->second;
  }
  void copy_ended(StreamId, Reason, TileId, SpaceId, SpaceId, std::size_t,
                  const Completion&) override {}
  void evicted(TileId tile, SpaceId) override { evicted_.push_back(tile); }
  void probed(SpaceId, const Completion&) override {}

  static Machine machine() {
    Machine machine = Machine::parse("emulated:2,memory=1MiB,h2d=10GB/s,d2h=10GB/s,latency=0");
    machine.nodes = two_nodes(2 * page, 2 * page);
    machine.devices[0].node = 2;
    machine.devices[1].node = 5;
    const int between = static_cast<int>(machine.links.size());
    machine.links.push_back({.name = "between", .bytes_per_second = 1e9});
    for (const Device& device : machine.devices)
      for (const auto& [from, to] :
           {std::pair(host_space, device.space), std::pair(device.space, host_space)}) {
        Route route = *machine.route(from, to);
        route.links.push_back(between);
        route.node = device.node == 2 ? 5 : 2;
        machine.routes.push_back(route);
      }
    return machine;
  }
  static std::vector<SpaceResources> resources() {
    static std::array<std::array<std::byte, 8 * page>, 2> memory;
    std::vector<SpaceResources> spaces(3);
    for (SpaceId space = 1; space < 3; ++space) {
      SpaceResources& each = spaces[space];
      each.device = static_cast<DeviceId>(space - 1);
      each.base = memory[space - 1].data();
      each.bytes = memory[space - 1].size();
      each.in = 2 * each.device;
      each.out = each.in + 1;
      each.peers.resize(3);
      each.node = space == 1 ? 2 : 5;
    }
    return spaces;
  }
  /// A tile without a home that a task on a device has written.
  TileId written_on(SpaceId space) {
    const TileId tile = memory_.replicas().add({.width_bytes = page, .columns = 1});
    const Need need{tile, Access::write};
    EXPECT_TRUE(is_done(memory_.staging().stage({&need, 1}, space)));
    memory_.used(tile, space, Access::write, {6, ++kernels_});
    memory_.transfers().confirm(tile);
    memory_.residency().unpin(tile, space);
    return tile;
  }
  /// Copies that were queued end; their nodes.
  std::vector<int> end_copies() {
    std::vector<int> nodes;
    std::vector<Event> ended;
    for (const Instruction& each : instructions_.pending()) {
      if (each.ticket == 0) continue;
      ended.push_back({each.stream, each.ticket});
      if (const Copy* const copy = std::get_if<Copy>(&each.operation)) nodes.push_back(copy->node);
    }
    instructions_.clear();
    for (const Event event : ended) {
      Completion completion;
      completion.event = event;
      memory_.completed(completion);
    }
    return nodes;
  }
  int node(TileId tile) { return memory_.replicas().at(tile, host_space).node; }
  void spill(TileId tile, Reason reason = Reason::evict) {
    EXPECT_TRUE(memory_.evictor().send_home(tile, reason));
  }

  std::map<TileId, std::uint64_t> next_uses_;
  std::vector<TileId> evicted_;
  std::uint64_t kernels_ = 0;
  Machine machine_ = machine();
  Instructions instructions_;
  Memory memory_{instructions_, machine_, resources(), *this, *this, {.spill_bytes = 4 * page}};
};

TEST_F(NearBuffersTest, WhatLeavesADeviceGoesToItsNode) {
  const TileId first = written_on(1), second = written_on(2);
  spill(first);
  spill(second);
  EXPECT_EQ(node(first), 2);
  EXPECT_EQ(node(second), 5);
  EXPECT_EQ(end_copies(), (std::vector<int>{2, 5}));
  memory_.validate();
}

TEST_F(NearBuffersTest, AFullNodeLeavesTheRestToTheOther) {
  std::vector<TileId> tiles;
  for (int i = 0; i < 4; ++i) spill(tiles.emplace_back(written_on(1)));
  EXPECT_EQ(end_copies(), (std::vector<int>{2, 2, 5, 5}));
  const auto seconds = [&](TileId tile) {
    return memory_.transfers().copy_seconds(tile, host_space, 1);
  };
  EXPECT_NEAR(seconds(tiles[2]) / seconds(tiles[0]), 10, 1e-9);
  memory_.validate();
}

TEST_F(NearBuffersTest, TheFarthestUseLeavesFromWhicheverNode) {
  std::vector<TileId> tiles;
  for (std::uint64_t i = 0; i < 4; ++i) {
    tiles.push_back(written_on(static_cast<SpaceId>(1 + i % 2)));
    spill(tiles.back(), Reason::write_back);
    next_uses_[tiles.back()] = 10 + i % 3;
  }
  end_copies();
  EXPECT_EQ(memory_.evictor().make_room(page, host_space), Awaits::nothing);
  EXPECT_EQ(evicted_, (std::vector<TileId>{tiles[2]})) << "the device still has it";
  spill(written_on(2));
  EXPECT_EQ(end_copies(), (std::vector<int>{2})) << "where one has left";
  memory_.validate();
}

}  // namespace
}  // namespace quadriga
