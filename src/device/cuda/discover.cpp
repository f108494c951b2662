// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/discover.cpp: the CUDA devices of this machine, and the links that join them.
//
// The runtime tells neither the rate of PCIe nor that of NVLink, nor how long kernels take: what is
// here was measured on such hardware, for policies and plans to begin with.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>

#include "device/cuda/check.h"
#include "device/cuda/cuda_backend.h"
#include "device/cuda/rates.h"

namespace quadriga {
namespace {

using cuda::check;

constexpr double issue_seconds = 1.3e-6;
constexpr double host_memory_rate = 205e9;
// Not all: libraries keep workspaces, and other processes live beside us.
constexpr double share_of_memory = 0.9;

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal), "asking for an attribute of a device");
  return value;
}

// Pinned copies of generations 3, 4 and 5 of PCIe, 16 lanes; newer ones are at least as fast.
double pcie_rate(int major) {
  if (major >= 9) return 55e9;
  return major == 8 ? 25e9 : 12.5e9;
}

double nvlink_rate(int major) { return major >= 9 ? 390e9 : 230e9; }

Device describe(int ordinal) {
  const cuda::DeviceGuard guard(ordinal);
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), fmt::format("asking for the memory of device {}", ordinal));
  Device device;
  device.name = fmt::format("gpu{}", ordinal);
  device.kind = DeviceKind::cuda;
  device.space = static_cast<SpaceId>(1 + ordinal);
  constexpr std::size_t page = std::size_t{2} << 20;
  device.memory_bytes =
      static_cast<std::size_t>(static_cast<double>(free) * share_of_memory) / page * page;
  device.compute_streams = 4;
  device.copy_engines = attribute(cudaDevAttrAsyncEngineCount, ordinal);
  device.rates = "gpu";
  return device;
}

cuda::Speed speed_of(int ordinal) {
  constexpr double hertz_a_unit = 1000;
  return {attribute(cudaDevAttrComputeCapabilityMajor, ordinal),
          attribute(cudaDevAttrComputeCapabilityMinor, ordinal),
          attribute(cudaDevAttrMultiProcessorCount, ordinal),
          hertz_a_unit * attribute(cudaDevAttrClockRate, ordinal)};
}

// One column of the table for all devices if they are equal.
void add_rates(Machine& machine) {
  const cuda::Speed first = speed_of(0);
  bool equal = true;
  for (int i = 1; i < static_cast<int>(machine.devices.size()); ++i)
    equal = equal && speed_of(i) == first;
  for (std::size_t i = 0; i < machine.devices.size(); ++i) {
    if (!equal) machine.devices[i].rates = machine.devices[i].name;
    if (!equal || i == 0)
      cuda::add_rates(machine, machine.devices[i].rates, speed_of(static_cast<int>(i)));
  }
}

int add_link(Machine& machine, std::string name, double rate, double latency) {
  machine.links.push_back({std::move(name), rate, latency});
  return static_cast<int>(machine.links.size()) - 1;
}

struct Ends {
  int down = 0;  // PCIe, to the device.
  int up = 0;
  int out = 0;  // NVLink.
  int in = 0;
};

Ends add_ends(Machine& machine, int ordinal) {
  const int major = attribute(cudaDevAttrComputeCapabilityMajor, ordinal);
  const auto name = [ordinal](const char* link, const char* way) {
    return fmt::format("{}{} {}", link, ordinal, way);
  };
  Ends ends;
  ends.down = add_link(machine, name("pcie", "down"), pcie_rate(major), issue_seconds);
  ends.up = add_link(machine, name("pcie", "up"), pcie_rate(major), issue_seconds);
  ends.out = add_link(machine, name("nvlink", "out"), nvlink_rate(major), issue_seconds);
  ends.in = add_link(machine, name("nvlink", "in"), nvlink_rate(major), 0);
  return ends;
}

// Peers by NVLink (which alone has atomics across), by PCIe, or by way of the host's memory.
std::vector<int> peer_links(int from, const Ends& source, int to, const Ends& target, int memory) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, to, from), "asking for peer access");
  if (can == 0) return {source.up, memory, memory, target.down};
  int atomics = 0;
  check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, to, from),
        "asking what joins two devices");
  if (atomics == 0) return {source.up, target.down};
  return {source.out, target.in};
}

Machine describe_all(int count) {
  Machine machine;
  machine.name = "cuda";
  machine.launch_seconds = 2.7e-6;
  const int memory = add_link(machine, "host-memory", host_memory_rate, 0);
  std::vector<Ends> ends;
  for (int i = 0; i < count; ++i) {
    machine.devices.push_back(describe(i));
    ends.push_back(add_ends(machine, i));
    const SpaceId space = machine.devices.back().space;
    machine.routes.push_back({host_space, space, {memory, ends.back().down}});
    machine.routes.push_back({space, host_space, {ends.back().up, memory}});
  }
  add_rates(machine);
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      machine.routes.push_back({machine.devices[from].space, machine.devices[to].space,
                                peer_links(from, ends[from], to, ends[to], memory)});
    }
  }
  return machine;
}

// Before the first call of the runtime: else streams share hardware queues, and wait for others.
cudaError_t count_devices(int& count) {
  static const int set = ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  static_cast<void>(set);
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) count = 0;
  cudaGetLastError();
  return error;
}

}  // namespace

std::string cuda_absence() {
  int count = 0;
  const cudaError_t error = count_devices(count);
  if (error == cudaSuccess && count > 0) return {};
  if (error == cudaSuccess || error == cudaErrorNoDevice) return "no CUDA device is visible";
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return "there is no CUDA driver";
  return fmt::format("{}; the driver is for CUDA {}.{}, this build needs {}.{}",
                     cudaGetErrorString(error), driver / 1000, driver % 1000 / 10, runtime / 1000,
                     runtime % 1000 / 10);
}

Machine discover_cuda() {
  int count = 0;
  if (count_devices(count) != cudaSuccess || count == 0) return {};
  return describe_all(count);
}

}  // namespace quadriga
