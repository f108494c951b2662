// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/host_nodes_test.cpp: descriptions of hosts with several NUMA nodes.
#include <gtest/gtest.h>
#include <quadriga/error.h>
#include <quadriga/machine.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "device/emulated/paced_links.h"
#include "device/factory.h"
#include "device/route_table.h"

namespace quadriga {
namespace {

constexpr const char* two_nodes = R"({
  "name": "two nodes",
  "nodes": [{"index": 0, "memory": 1e9, "cores": 4}, {"index": 1, "memory": 2e9, "cores": 4}],
  "devices": [{"name": "gpu0", "kind": "gpu", "memory": 1e6, "node": 0},
              {"name": "gpu1", "kind": "gpu", "memory": 1e6, "node": 1}],
  "links": {"slot0": {"bandwidth": 4e9}, "slot1": {"bandwidth": 4e9},
            "between": {"bandwidth": 1e9, "latency": 1e-6}},
  "routes": [{"from": "host", "to": "gpu0", "links": ["slot0"]},
             {"from": "host", "to": "gpu1", "links": ["slot1"]},
             {"from": "gpu1", "to": "host", "links": ["slot1"]},
             {"from": "host", "node": 0, "to": "gpu1", "links": ["between", "slot1"]}]})";

/// Of a description in which `part` is replaced.
std::string refused(const std::string& part, const std::string& other) {
  std::string text = two_nodes;
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  try {
    Machine::from_json(text.replace(at, part.size(), other));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

std::string file_of(const std::string& text, const std::string& name) {
  std::string path = testing::TempDir() + name + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << text;
  return path;
}

TEST(HostNodes, DeviceListsKeepThem) {
  const std::string path = file_of(two_nodes, "nodes-");
  const Machine machine = Machine::parse("cpu:1;machine=" + path + ":2");
  std::remove(path.c_str());
  ASSERT_EQ(machine.nodes.size(), 2u);
  EXPECT_EQ(machine.nodes[1].memory_bytes, 2000000000u);
  EXPECT_EQ(machine.devices[2].node, 1);
}

TEST(HostNodes, ItemsOfAListAgreeAboutThem) {
  const std::string one = file_of(two_nodes, "one-");
  const std::string other = file_of(R"({
    "name": "other", "nodes": [{"index": 1, "memory": 3e9}],
    "devices": [{"name": "other", "kind": "gpu", "memory": 1e6}]})",
                                    "other-");
  try {
    Machine::parse("machine=" + one + ";machine=" + other);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("NUMA node 1 differs"), std::string::npos)
        << error.what();
  }
  std::remove(one.c_str());
  std::remove(other.c_str());
}

TEST(HostNodes, HaveRoutesOfTheirOwn) {
  const Machine machine = Machine::from_json(two_nodes);
  ASSERT_EQ(machine.routes.size(), 4u);
  EXPECT_EQ(machine.route(0, 2), &machine.routes[1]);
  EXPECT_EQ(machine.route(0, 2, 1), &machine.routes[1]) << "near: as on any node";
  EXPECT_EQ(machine.route(0, 2, 0), &machine.routes[3]);
  EXPECT_EQ(machine.route(0, 1, 0), &machine.routes[0]);
  EXPECT_EQ(machine.route(1, 0, 0), nullptr);
  EXPECT_DOUBLE_EQ(machine.copy_seconds(0, 2, 4e9), 1);
  const Machine again = Machine::from_json(machine.to_json());
  EXPECT_EQ(again.to_json(), machine.to_json());
  EXPECT_EQ(again.routes[3].node, 0);
}

TEST(HostNodes, AreOneTableOfRoutes) {
  const Machine machine = Machine::from_json(two_nodes);
  const RouteTable table(machine);
  for (SpaceId from = 0; from < 3; ++from)
    for (SpaceId to = 0; to < 3; ++to)
      for (int node = any_node; node < 4; ++node) {
        const Route* const route = machine.route(from, to, node);
        const int found = table.find(from, to, node);
        EXPECT_EQ(found == RouteTable::none ? nullptr : &machine.routes[found], route)
            << from << " to " << to << " on " << node;
      }
  EXPECT_EQ(table.find(3, 0), RouteTable::none);
}

TEST(HostNodes, WithGreatNumbersTakeNoMoreMemory) {
  std::string text = two_nodes;
  const auto renumber = [&text](const std::string& part) {
    const std::string old = part + "0";
    for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; ++at)
      text.replace(at, old.size(), part + "100000");
  };
  renumber("\"index\": ");
  renumber("\"node\": ");
  const Machine machine = Machine::from_json(text);
  const RouteTable table(machine);
  EXPECT_EQ(table.all().size(), 2u * 3 * 3) << "any node's, and one node's own";
  EXPECT_EQ(table.find(0, 2, 100000), 3);
  EXPECT_EQ(table.find(0, 2, 99999), 1) << "it has none of its own";
  EXPECT_EQ(table.find(0, 1, 100000), 0) << "as on any node";
}

TEST(HostNodes, WrongOnesAreRefused) {
  const auto expect = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
  };
  expect(refused("\"node\": 0, \"to\"", "\"node\": 7, \"to\""), "routes[3].node");
  expect(refused("\"node\": 0, \"to\": \"gpu1\"", "\"to\": \"gpu1\""), "one route for each pair");
  expect(refused("{\"from\": \"host\", \"to\": \"gpu1\", \"links\": [\"slot1\"]},", ""),
         "the route for all nodes before one for a node");
  expect(refused("{\"from\": \"host\", \"node\": 0", "{\"from\": \"gpu0\", \"node\": 0"),
         "only where one end is the host");
  expect(refused("\"index\": 1", "\"index\": 0"), "nodes[1].index");
}

/// Seconds that the virtual clock gives 4 GB to the second device.
double seconds_from(int node) {
  const auto backend = make_virtual_backend(Machine::from_json(two_nodes), {.compute = false});
  const StreamId stream = backend->create_stream(1, StreamKind::copy_in);
  std::byte* const memory = backend->allocate(1, 1);
  Copy copy;
  copy.to = 2;
  copy.source = copy.target = memory;
  copy.width_bytes = 4'000'000'000;
  copy.node = node;
  backend->copy(stream, copy);
  Completion completion;
  EXPECT_EQ(backend->next_completion({&completion, 1}, never), 1u);
  return static_cast<double>(completion.end) * 1e-9;
}

TEST(HostNodes, FarOnesTakeLonger) {
  EXPECT_NEAR(seconds_from(any_node), 1, 1e-5);
  EXPECT_NEAR(seconds_from(1), 1, 1e-5);
  EXPECT_NEAR(seconds_from(0), 4, 1e-5);
}

TEST(HostNodes, FarOnesTakeLongerByTheRealClock) {
  const Machine machine = Machine::from_json(two_nodes);
  PacedLinks links(machine);
  const std::vector<std::byte> source(8'000'000);
  std::vector<std::byte> target(source.size());
  const std::atomic<bool> stopping = false;
  Copy copy;
  copy.to = 2;
  copy.source = source.data();
  copy.target = target.data();
  copy.width_bytes = source.size();
  copy.node = 0;
  const auto begin = std::chrono::steady_clock::now();
  links.copy(copy, stopping);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took.count(), 8e-3) << "a link of 1 GB/s, where the near one takes 2 ms";
}

}  // namespace
}  // namespace quadriga
