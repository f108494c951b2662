// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda_reading.h: what the CUDA runtime reports about each visible device.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace quadriga {

/// A device as CUDA numbers it.
struct CudaGpuReading {
  std::string model;
  std::string pci_address;
  int major = 0;  ///< Compute capability.
  int minor = 0;
  std::string error;        ///< Why this process can't use it; empty if it can.
  bool has_kernels = true;  ///< Whether this build's kernels run on its architecture.
  std::size_t memory_bytes = 0;
  std::size_t free_bytes = 0;
  std::vector<int> unreachable;  ///< Devices whose memory it can't access.
};

struct CudaReading {
  std::string absence;        ///< As cuda_absence().
  int driver_version = 0;     ///< Of CUDA that the driver serves: 13000 is 13.0; 0: no driver.
  int runtime_version = 0;    ///< That this build needs; 0: built without CUDA.
  std::string architectures;  ///< That kernels were compiled for: "8.0, 9.0".
  std::vector<CudaGpuReading> gpus;
};

/// Tries every device. Never throws for what CUDA refuses.
CudaReading read_cuda();

/// The runtime's number of the CUDA device that holds an address; -1: none does.
int cuda_ordinal_of(const void* memory);

}  // namespace quadriga
