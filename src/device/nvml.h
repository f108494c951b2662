// SPDX-License-Identifier: BSD-3-Clause
// src/device/nvml.h: reads this computer's GPUs through NVIDIA's management library.
//
// It sees all GPUs, including those that CUDA_VISIBLE_DEVICES, compute modes or other processes
// hide from CUDA. The library comes with the driver and is opened on use.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga {

/// An NVLink that is up.
struct NvlinkReading {
  bool to_switch = false;
  std::string remote;  ///< PCIe address of the other end; empty: unknown.
};

/// A process that computes on a GPU.
struct GpuProcess {
  int pid = 0;
  std::size_t bytes = 0;  ///< 0: unknown.
};

enum class ComputeMode { shared, exclusive, prohibited };

std::string_view name(ComputeMode mode) noexcept;

/// A GPU; what the library doesn't tell is empty, 0 or false.
struct GpuReading {
  int index = 0;  ///< NVML's, in the order of addresses.
  std::string model;
  std::string uuid;
  std::string pci_address;  ///< As the kernel writes it: "0000:17:00.0".
  std::size_t memory_bytes = 0;
  std::size_t used_bytes = 0;
  int major = 0;  ///< Compute capability.
  int minor = 0;
  int pcie_generation = 0;  ///< The best that device and slot can do together.
  int pcie_lanes = 0;
  ComputeMode compute_mode = ComputeMode::shared;
  bool mig = false;                    ///< Cut into instances.
  double nvlink_bytes_per_second = 0;  ///< Of one link, each way, by its signals.
  std::vector<NvlinkReading> nvlinks;
  std::vector<GpuProcess> processes;
};

struct NvmlReading {
  std::string absence;   ///< Why there are no readings; empty if there are.
  std::string driver;    ///< "580.65.06".
  int cuda_version = 0;  ///< That the driver serves: 13000 is 13.0.
  std::vector<GpuReading> gpus;
};

/// Asks the library. Never throws for what is missing: parts that fail stay empty.
NvmlReading read_nvml(const std::string& library = "libnvidia-ml.so.1");

/// An address as the kernel writes it: "00000000:17:00.0" becomes "0000:17:00.0".
std::string kernel_address(std::string_view address);

/// NVLinks between two GPUs: those that join them, or what each has to the switches.
int nvlinks_between(const GpuReading& one, const GpuReading& other);

}  // namespace quadriga
