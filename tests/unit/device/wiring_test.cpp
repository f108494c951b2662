// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/wiring_test.cpp: links and routes from readings, and descriptions that replace
// them.
#include "device/wiring.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include "device/description.h"

namespace quadriga {
namespace {

Machine two_gpus(const char* model = "NVIDIA H200") {
  Machine machine;
  machine.name = "cuda";
  for (int i = 0; i < 2; ++i) {
    Device gpu;
    gpu.name = "gpu" + std::to_string(i);
    gpu.kind = DeviceKind::cuda;
    gpu.space = static_cast<SpaceId>(1 + i);
    gpu.memory_bytes = 1000;
    gpu.model = model;
    machine.devices.push_back(gpu);
  }
  return machine;
}

GpuReading reading(int links, bool to_switch) {
  GpuReading gpu;
  gpu.major = 9;
  gpu.pcie_generation = 5;
  gpu.pcie_lanes = 16;
  gpu.nvlink_bytes_per_second = 26.562e9;
  gpu.nvlinks.assign(static_cast<std::size_t>(links), {to_switch, to_switch ? "switch" : ""});
  return gpu;
}

double rate(const Machine& machine, SpaceId from, SpaceId to) {
  constexpr double bytes = 1e15;
  return bytes / machine.copy_seconds(from, to, bytes);
}

TEST(Rates, FollowGenerationAndLanes) {
  EXPECT_NEAR(pcie_bytes_per_second(5, 16), 55.5e9, 0.5e9);  // Measured.
  EXPECT_NEAR(pcie_bytes_per_second(5, 8), 27.7e9, 0.3e9);
  EXPECT_NEAR(pcie_bytes_per_second(4, 16), 25e9, 1e9);
  EXPECT_NEAR(pcie_bytes_per_second(1, 1), 0.2e9, 0.01e9);
  EXPECT_EQ(pcie_bytes_per_second(0, 16), 0);
  EXPECT_EQ(pcie_bytes_per_second(5, 0), 0);
  EXPECT_NEAR(nvlink_bytes_per_second(18, 26.562e9), 396e9, 2e9);
}

TEST(Wiring, SwitchesShareTheLinksOfADevice) {
  Machine machine = two_gpus();
  const GpuReading gpus[] = {reading(18, true), reading(18, true)};
  add_links(machine, gpus, [](int, int) { return PeerPath::nvlink; });
  EXPECT_EQ(machine.route(1, 2)->nvlinks, 18);
  EXPECT_NEAR(rate(machine, 1, 2), 396e9, 4e9);
  EXPECT_NEAR(rate(machine, host_space, 1), 55.5e9, 0.5e9);
  EXPECT_EQ(Machine::from_json(machine.to_json()).route(1, 2)->nvlinks, 18);
}

TEST(Wiring, ShortRunsLoseOnTheHostsLinks) {
  Machine machine = two_gpus();
  const GpuReading gpus[] = {reading(18, true), reading(18, true)};
  add_links(machine, gpus, [](int, int) { return PeerPath::nvlink; });
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(2, 0)}) {
    const Route& route = *machine.route(static_cast<SpaceId>(from), static_cast<SpaceId>(to));
    const double all = machine.copy_rate(route, 1e9);
    EXPECT_NEAR(all, 55.5e9, 0.5e9);
    EXPECT_NEAR(machine.copy_rate(route, 8192), 0.59 * all, 1);  // Measured, as the next.
    EXPECT_NEAR(machine.copy_rate(route, 16384), 0.59 * all, 1);
    EXPECT_EQ(machine.copy_rate(route, 65536), all);
  }
  const Route& peers = *machine.route(1, 2);
  EXPECT_EQ(machine.copy_rate(peers, 8192), machine.copy_rate(peers, 1e9)) << "not measured";
}

TEST(Wiring, LinksThatJoinTwoAreTheirOwn) {
  Machine machine = two_gpus();
  GpuReading gpus[] = {reading(4, false), reading(4, false)};
  gpus[0].pci_address = "0000:01:00.0";
  gpus[1].pci_address = "0000:02:00.0";
  for (NvlinkReading& link : gpus[0].nvlinks) link.remote = gpus[1].pci_address;
  for (NvlinkReading& link : gpus[1].nvlinks) link.remote = gpus[0].pci_address;
  add_links(machine, gpus, [](int, int) { return PeerPath::nvlink; });
  EXPECT_EQ(machine.route(1, 2)->nvlinks, 4);
  EXPECT_EQ(machine.links[machine.route(1, 2)->links.front()].name, "nvlink0-1");
  EXPECT_NEAR(rate(machine, 1, 2), 4 * 26.562e9 * 0.83, 1e9);
}

TEST(Wiring, WithoutReadingsRatesAreTheUsualOnes) {
  Machine machine = two_gpus();
  GpuReading gpus[2];
  for (GpuReading& gpu : gpus) gpu.major = 9;
  add_links(machine, gpus, [](int, int to) { return to == 1 ? PeerPath::pcie : PeerPath::host; });
  EXPECT_NEAR(rate(machine, host_space, 1), 55e9, 1e9);
  EXPECT_EQ(machine.route(1, 2)->links.size(), 2u);
  EXPECT_EQ(machine.route(2, 1)->links.size(), 4u);
  EXPECT_EQ(machine.route(2, 1)->nvlinks, 0);
}

TEST(Wiring, SlotsOfVirtualMachinesAreNotBelieved) {
  Machine machine = two_gpus();
  GpuReading gpus[] = {reading(0, false), reading(0, false)};
  gpus[0].pcie_generation = 1;
  gpus[1].pcie_generation = 3;
  add_links(machine, gpus, [](int, int) { return PeerPath::pcie; });
  EXPECT_NEAR(rate(machine, host_space, 1), 55e9, 1e9);
  EXPECT_NEAR(rate(machine, host_space, 2), 12.6e9, 0.5e9);
}

Machine wired(const char* model) {
  Machine machine = two_gpus(model);
  const GpuReading gpus[] = {reading(18, true), reading(18, true)};
  add_links(machine, gpus, [](int, int) { return PeerPath::nvlink; });
  return machine;
}

TEST(Description, ReplacesRatesAndKeepsMemory) {
  Machine machine = wired("NVIDIA H200");
  Machine measured = wired("NVIDIA H200");
  for (Link& link : measured.links) link.bytes_per_second /= 2;
  for (Route& route : measured.routes) route.nvlinks = 0;
  measured.devices[0].memory_bytes = 5;
  use_description(machine, Machine::from_json(measured.to_json()));
  EXPECT_NEAR(rate(machine, host_space, 1), 27.7e9, 0.3e9);
  EXPECT_EQ(machine.devices[0].memory_bytes, 1000u);
  EXPECT_EQ(machine.route(1, 2)->nvlinks, 18);
}

TEST(Description, ThatIsSilentOnShortRunsLeavesWhatIsSupposed) {
  Machine machine = wired("NVIDIA H200");
  Machine measured = wired("NVIDIA H200");
  // As `quadriga bench copies` names them; the host's memory is wider than the device's link.
  for (Link& link : measured.links) link.runs.clear();
  use_description(machine, measured);
  const Route& way = *machine.route(host_space, 1);
  EXPECT_NEAR(machine.copy_rate(way, 8192), 0.59 * machine.copy_rate(way, 1e9), 1);
  EXPECT_TRUE(machine.links[static_cast<std::size_t>(way.links.front())].runs.empty());
  const Route& peers = *machine.route(1, 2);
  EXPECT_EQ(machine.copy_rate(peers, 8192), machine.copy_rate(peers, 1e9));
}

TEST(Description, ThatTellsOfShortRunsIsBelieved) {
  Machine machine = wired("NVIDIA H200");
  Machine measured = wired("NVIDIA H200");
  for (Link& link : measured.links) link.runs.clear();
  const Route& way_in = *measured.route(host_space, 1);
  measured.links[static_cast<std::size_t>(way_in.links.back())].runs = {{4096, 1}};
  use_description(machine, measured);
  const Route& told = *machine.route(host_space, 1);
  EXPECT_EQ(machine.copy_rate(told, 8192), machine.copy_rate(told, 1e9));
  const Route& silent = *machine.route(1, host_space);
  EXPECT_NEAR(machine.copy_rate(silent, 8192), 0.59 * machine.copy_rate(silent, 1e9), 1);
}

TEST(Description, OfMoreDevicesServesTheFirst) {
  Machine machine = wired("NVIDIA H200");
  machine.devices.pop_back();
  std::erase_if(machine.routes, [](const Route& r) { return r.from == 2 || r.to == 2; });
  use_description(machine, wired("NVIDIA H200"));
  EXPECT_EQ(machine.devices.size(), 1u);
  EXPECT_EQ(machine.routes.size(), 2u);
}

TEST(Description, OfOtherDevicesIsRefusedWithBothNamed) {
  Machine machine = wired("NVIDIA H200");
  const std::string before = machine.to_json();
  Machine few = wired("NVIDIA H200");
  few.devices.pop_back();
  for (const Machine& other : {wired("NVIDIA A100"), few}) {
    try {
      use_description(machine, other);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(text.find("gpu1 (NVIDIA H200)"), std::string::npos) << text;
      EXPECT_NE(text.find("describes gpu0"), std::string::npos) << text;
    }
  }
  Machine routeless = wired("NVIDIA H200");
  routeless.routes.clear();
  EXPECT_THROW(use_description(machine, routeless), Error);
  EXPECT_EQ(machine.to_json(), before);
}

}  // namespace
}  // namespace quadriga
