// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/topology_test.cpp: NUMA nodes and PCIe slots, by made-up files and by hwloc.
#include "device/topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace quadriga {
namespace {

namespace fs = std::filesystem;

using List = std::vector<int>;

TEST(Processors, AreListsOfRanges) {
  EXPECT_EQ(parse_processors("0-2,8,10-11"), (List{0, 1, 2, 8, 10, 11}));
  EXPECT_EQ(parse_processors(""), List{});
  for (const char* const wrong : {"a", "3-1", "1-", "-1", "1;2", "0-99999999"})
    EXPECT_EQ(parse_processors(wrong), std::nullopt) << wrong;
  EXPECT_EQ(format_processors({0, 1, 2, 8, 10, 11}), "0-2,8,10-11");
  EXPECT_EQ(format_processors({}), "");
}

class Files : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("quadriga-sys-" + std::to_string(::getpid()));
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& content) {
    const fs::path file = root_ / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << content << "\n";
  }
  std::string root() const { return root_.string(); }

 private:
  fs::path root_;
};

TEST_F(Files, TellNodesAndTheirCores) {
  const std::string system = "devices/system/";
  write(system + "node/online", "0-1");
  write(system + "node/node0/cpulist", "0-1,4-5");
  write(system + "node/node0/meminfo", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB");
  write(system + "node/node1/cpulist", "2-3,6-7");
  for (int i = 0; i < 8; ++i) {
    write(system + "cpu/cpu" + std::to_string(i) + "/topology/thread_siblings_list",
          std::to_string(i % 4) + "," + std::to_string(i % 4 + 4));
  }
  const std::vector<Node> nodes = nodes_by_files(root());
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].processors, (List{0, 1, 4, 5}));
  EXPECT_EQ(nodes[0].cores, 2);
  EXPECT_EQ(nodes[0].memory_bytes, std::size_t{1} << 20);
  EXPECT_EQ(nodes[1].index, 1);
  EXPECT_EQ(nodes[1].memory_bytes, 0u);
}

TEST_F(Files, WithoutNodesTheHostIsOne) {
  write("devices/system/cpu/online", "0-2");
  const std::vector<Node> nodes = nodes_by_files(root());
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].cores, 3);
  EXPECT_GT(nodes[0].memory_bytes, 0u);
}

TEST_F(Files, TellSlots) {
  const std::string device = "bus/pci/devices/0000:17:00.0/";
  write(device + "max_link_speed", "32.0 GT/s PCIe");
  write(device + "max_link_width", "16");
  write(device + "numa_node", "1");
  const PciPlace place = pci_place("0000:17:00.0", root());
  EXPECT_EQ(place.generation, 5);
  EXPECT_EQ(place.lanes, 16);
  EXPECT_EQ(place.node, 1);
  write(device + "max_link_speed", "2.5 GT/s PCIe");
  EXPECT_EQ(pci_place("0000:17:00.0", root()).generation, 1);
  write(device + "max_link_speed", "Unknown");
  EXPECT_EQ(pci_place("0000:17:00.0", root()).generation, 0);
  EXPECT_EQ(pci_place("0000:99:00.0", root()).node, -1);
}

TEST(Hwloc, SeesWhatTheKernelSays) {
  const std::vector<Node> nodes = nodes_by_hwloc();
  if (nodes.empty()) GTEST_SKIP() << "libhwloc.so.15 is not installed";
  if (!std::filesystem::exists("/sys/devices/system/cpu/cpu0"))
    GTEST_SKIP() << "the kernel's files aren't there";
  const std::vector<Node> files = nodes_by_files();
  ASSERT_EQ(nodes.size(), files.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i].index, files[i].index);
    EXPECT_GT(nodes[i].memory_bytes, 0u);
    // A control group may take processors away, which hwloc leaves out.
    EXPECT_LE(nodes[i].processors.size(), files[i].processors.size());
  }
  EXPECT_TRUE(nodes_by_hwloc("libnowhere.so.15").empty());
  EXPECT_TRUE(nodes_by_hwloc("libm.so.6").empty());
}

TEST(Hosts, CoresAreCountedWithoutTheKernelsFiles) {
  const std::vector<Node> nodes = nodes_by_files("/nowhere");
  ASSERT_EQ(nodes.size(), 1);
  EXPECT_GT(nodes.front().cores, 0);
  EXPECT_GT(nodes.front().memory_bytes, 0U);
}

TEST(Hosts, NodesAreFound) {
  const std::vector<Node> nodes = Machine::host_nodes();
  ASSERT_FALSE(nodes.empty());
  EXPECT_GT(nodes.front().cores, 0);
}

}  // namespace
}  // namespace quadriga
