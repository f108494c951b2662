// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/inspect.cpp: asks device by device, and keeps what is refused.
#include "device/cuda_reading.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "device/cuda/cuda_backend.h"
#include "device/cuda/probe.h"
#include "device/nvml.h"

namespace quadriga {
namespace {

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, ordinal) != cudaSuccess) cudaGetLastError();
  return value;
}

std::string text_of(cudaError_t error) {
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

// What needs a context: memory and kernels.
void try_context(int ordinal, CudaGpuReading& gpu) {
  cudaError_t error = cudaSetDevice(ordinal);
  if (error == cudaSuccess) error = cudaMemGetInfo(&gpu.free_bytes, &gpu.memory_bytes);
  if (error == cudaSuccess) {
    error = cuda::probe_kernels();
    gpu.has_kernels =
        error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction;
    if (!gpu.has_kernels) error = cudaSuccess;
  }
  if (error != cudaSuccess) gpu.error = text_of(error);
  cudaGetLastError();
}

CudaGpuReading read_gpu(int ordinal, int count) {
  CudaGpuReading gpu;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, ordinal) == cudaSuccess) gpu.model = properties.name;
  char address[32] = {};
  if (cudaDeviceGetPCIBusId(address, sizeof(address), ordinal) == cudaSuccess)
    gpu.pci_address = kernel_address(address);
  gpu.major = attribute(cudaDevAttrComputeCapabilityMajor, ordinal);
  gpu.minor = attribute(cudaDevAttrComputeCapabilityMinor, ordinal);
  for (int other = 0; other < count; ++other) {
    int can = 0;
    if (other == ordinal) continue;
    const bool told = cudaDeviceCanAccessPeer(&can, ordinal, other) == cudaSuccess;
    if (told && can == 0) gpu.unreachable.push_back(other);
  }
  cudaGetLastError();
  try_context(ordinal, gpu);
  return gpu;
}

}  // namespace

CudaReading read_cuda() {
  CudaReading reading;
  reading.absence = cuda_absence();
  reading.architectures = cuda::kernel_architectures();
  cudaDriverGetVersion(&reading.driver_version);
  cudaRuntimeGetVersion(&reading.runtime_version);
  int count = 0;
  int before = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  if (count > 0 && cudaGetDevice(&before) != cudaSuccess) before = 0;
  for (int ordinal = 0; ordinal < count; ++ordinal)
    reading.gpus.push_back(read_gpu(ordinal, count));
  if (count > 0) cudaSetDevice(before);
  cudaGetLastError();
  return reading;
}

}  // namespace quadriga
