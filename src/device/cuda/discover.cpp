// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/discover.cpp: the CUDA devices of this machine, and the links that join them.
//
// Rates of links follow from generation, lanes and number of links, as NVML and the kernel tell
// them; how long kernels take was measured on such hardware. Both are for policies and plans to
// begin with: `quadriga bench copies -o FILE` measures the links.
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cstdlib>

#include "base/config.h"
#include "base/log.h"
#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda/cuda_memory.h"
#include "device/cuda/probe.h"
#include "device/cuda/scaled_times.h"
#include "device/nvml.h"
#include "device/reference_machine.h"
#include "device/topology.h"
#include "device/wiring.h"

namespace quadriga {
namespace {

using cuda::check;

// Not all: libraries keep workspaces, and other processes live beside us.
constexpr double share_of_memory = 0.9;

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal), "asking for an attribute of a device");
  return value;
}

std::size_t free_of(int ordinal) {
  try {
    return cuda::free_bytes(ordinal, Config::global().flag("cuda_pool"));
  } catch (const Error& error) {
    if (error.code() == Errc::device_lost) throw;
    fail(error.code(), fmt::format("device {}: {} (quadriga doctor says who has its memory, and "
                                   "CUDA_VISIBLE_DEVICES can leave it out)",
                                   ordinal, error.what()));
  }
}

std::string model_of(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "asking for a device's name");
  return properties.name;
}

// Others may be of use here: one that nothing was compiled for is left out, and said so.
bool has_kernels(int ordinal) {
  const cuda::DeviceGuard guard(ordinal);
  const cudaError_t error = cuda::probe_kernels();
  cudaGetLastError();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction)
    return true;
  log(LogLevel::warning,
      fmt::format("device {}, {}, is left out: it has compute capability {}.{}, and this build has "
                  "kernels for {}",
                  ordinal, model_of(ordinal), attribute(cudaDevAttrComputeCapabilityMajor, ordinal),
                  attribute(cudaDevAttrComputeCapabilityMinor, ordinal),
                  cuda::kernel_architectures()));
  return false;
}

Device describe(int ordinal) {
  const cuda::DeviceGuard guard(ordinal);
  Device device;
  device.name = fmt::format("gpu{}", ordinal);
  device.model = model_of(ordinal);
  device.kind = DeviceKind::cuda;
  constexpr std::size_t page = std::size_t{2} << 20;
  device.memory_bytes =
      static_cast<std::size_t>(static_cast<double>(free_of(ordinal)) * share_of_memory) / page *
      page;
  device.compute_streams = 4;
  device.copy_engines = attribute(cudaDevAttrAsyncEngineCount, ordinal);
  // What a warp reads at once: kernels read columns that begin elsewhere more slowly.
  device.pitch_alignment = 128;
  device.rates = "gpu";
  device.sums = reference_machine().devices.front().sums;
  return device;
}

DeviceSpeed speed_of(int ordinal) {
  constexpr double hertz_a_unit = 1000, transfers_a_clock = 2, bits_a_byte = 8;
  return {attribute(cudaDevAttrComputeCapabilityMajor, ordinal),
          attribute(cudaDevAttrComputeCapabilityMinor, ordinal),
          attribute(cudaDevAttrMultiProcessorCount, ordinal),
          hertz_a_unit * attribute(cudaDevAttrClockRate, ordinal),
          hertz_a_unit * attribute(cudaDevAttrMemoryClockRate, ordinal) * transfers_a_clock *
              attribute(cudaDevAttrGlobalMemoryBusWidth, ordinal) / bits_a_byte};
}

// One column of the table for all devices if they are equal.
void add_rates(Machine& machine, const std::vector<int>& ordinals) {
  const DeviceSpeed first = speed_of(ordinals.front());
  const bool equal =
      std::ranges::all_of(ordinals, [&](int each) { return speed_of(each) == first; });
  for (std::size_t i = 0; i < ordinals.size(); ++i) {
    if (!equal) machine.devices[i].rates = machine.devices[i].name;
    if (!equal || i == 0) cuda::add_rates(machine, machine.devices[i].rates, speed_of(ordinals[i]));
  }
}

// What NVML says of a device, or as much as CUDA and the kernel know.
GpuReading reading_of(const NvmlReading& nvml, int ordinal) {
  char address[32] = {};
  check(cudaDeviceGetPCIBusId(address, sizeof(address), ordinal), "asking for an address");
  const std::string wanted = kernel_address(address);
  const auto found = std::ranges::find(nvml.gpus, wanted, &GpuReading::pci_address);
  GpuReading reading = found == nvml.gpus.end() ? GpuReading{} : *found;
  const PciPlace place = pci_place(wanted);
  reading.pci_address = wanted;
  if (reading.pcie_generation == 0) reading.pcie_generation = place.generation;
  if (reading.pcie_lanes == 0) reading.pcie_lanes = place.lanes;
  reading.major = attribute(cudaDevAttrComputeCapabilityMajor, ordinal);
  reading.minor = attribute(cudaDevAttrComputeCapabilityMinor, ordinal);
  return reading;
}

void add_place(Device& device, const GpuReading& reading) {
  device.pci_address = reading.pci_address;
  device.pcie_generation = reading.pcie_generation;
  device.pcie_lanes = reading.pcie_lanes;
  device.node = pci_place(reading.pci_address).node;
}

// NVLink alone has atomics across.
PeerPath reach(int from, int to) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, to, from), "asking for peer access");
  if (can == 0) return PeerPath::host;
  int atomics = 0;
  check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, to, from),
        "asking what joins two devices");
  return atomics == 0 ? PeerPath::pcie : PeerPath::nvlink;
}

Machine describe_all(int count) {
  // Slots and NVLinks stay what they are, and NVML takes a while to start.
  static const NvmlReading nvml = read_nvml();
  Machine machine;
  machine.name = "cuda";
  machine.launch_seconds = reference_machine().launch_seconds;
  machine.message = reference_machine().message;
  machine.nodes = Machine::host_nodes();
  std::vector<GpuReading> readings;
  std::vector<int> ordinals;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (!has_kernels(ordinal)) continue;
    ordinals.push_back(ordinal);
    readings.push_back(reading_of(nvml, ordinal));
    machine.devices.push_back(describe(ordinal));
    machine.devices.back().space = static_cast<SpaceId>(machine.devices.size());
    add_place(machine.devices.back(), readings.back());
  }
  if (ordinals.empty())
    fail(Errc::unavailable, fmt::format("this build has kernels for CUDA devices of compute "
                                        "capability {} and later, and none is here",
                                        cuda::kernel_architectures()));
  add_rates(machine, ordinals);
  add_links(machine, readings, [&](int from, int to) {
    return reach(ordinals[static_cast<std::size_t>(from)], ordinals[static_cast<std::size_t>(to)]);
  });
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
  if (cuda::is_fatal(error)) return cuda::error_of(error, "counting devices").what();
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
  return cuda::begin_or_refuse([&] { return describe_all(count); });
}

}  // namespace quadriga
