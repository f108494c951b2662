// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/devices.cpp: what CUDA says of devices and of the driver, as tests would have it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "device/cuda/probe.h"
#include "fake_cuda/streams.h"

namespace {

using quadriga::fake_cuda::faults;
using quadriga::fake_cuda::Memory;
using quadriga::fake_cuda::state;

thread_local int current = 0;

bool is_lesser(int device) { return device == 1 && faults().are_mixed; }

std::size_t memory_of(int device) { return std::size_t{1} << (is_lesser(device) ? 29 : 31); }

}  // namespace

extern "C" {

// Not after a fault, of which counting says nothing.
cudaError_t cudaGetDeviceCount(int* count) {
  const cudaError_t error = faults().absence;
  return *count = error == cudaSuccess ? faults().devices.load() : 0, error;
}
cudaError_t cudaGetDevice(int* device) { return *device = current, state(); }
cudaError_t cudaSetDevice(int device) { return current = device, state(); }
cudaError_t cudaGetLastError() { return state(); }
const char* cudaGetErrorName(cudaError_t) { return "an error"; }
const char* cudaGetErrorString(cudaError_t) { return "of no GPU"; }
cudaError_t cudaDriverGetVersion(int* version) {
  return *version = faults().driver_version, cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  return *can = faults().without_peers ? 0 : 1, state();
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned int) { return state(); }
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr, int, int) {
  return *value = 1, state();
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int device) {
  const bool is_less = is_lesser(device);
  *value = which == cudaDevAttrComputeCapabilityMajor   ? (is_less ? 8 : 9)
           : which == cudaDevAttrComputeCapabilityMinor ? 0
           : which == cudaDevAttrMultiProcessorCount    ? (is_less ? 66 : 132)
           : which == cudaDevAttrClockRate              ? 1'980'000
           : which == cudaDevAttrMemoryClockRate        ? 3'201'000
           : which == cudaDevAttrGlobalMemoryBusWidth   ? (is_less ? 3072 : 6144)
                                                        : 2;
  return state();
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, static_cast<std::size_t>(bytes), "0000:%02x:00.0", 16 + device);
  return state();
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  for (*device = 0; *device < faults().devices; ++*device) {
    char own[32];
    cudaDeviceGetPCIBusId(own, sizeof(own), *device);
    if (std::strcmp(own, text) == 0) return state();
  }
  return cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "none");
  return state();
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = memory_of(current);
  const std::size_t used = Memory::instance().bytes_at(current) + faults().taken_bytes;
  *free = *total - std::min(used, *total);
  return state();
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = *greatest = 0, state();
}

}  // extern "C"

int quadriga::fake_cuda::current_device() { return current; }

namespace quadriga::cuda {

cudaError_t probe_kernels() {
  return current == faults().without_kernels ? cudaErrorNoKernelImageForDevice : state();
}
std::string kernel_architectures() { return "9.0"; }

}  // namespace quadriga::cuda
