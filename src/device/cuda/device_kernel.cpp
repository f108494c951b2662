// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/device_kernel.cpp: loads compiled kernels and launches them.
//
// Invariant: `mutex` guards all that is loaded, which stays until the end.
#include "device/device_kernel.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_check.h"
#include "device/device_full.h"

namespace quadriga {
namespace {

using cuda::check;

/// A launch may load code, too.
void check_room(cudaError_t error, const std::string& what) {
  if (error != cudaErrorMemoryAllocation) return check(error, what);
  cudaGetLastError();  // it would fail the next launch
  throw DeviceFull(what + ": no device memory");
}

// Kernels may have so much shared memory without being asked for more.
constexpr unsigned usual_shared_bytes = 48 << 10;

int architecture_of(int ordinal) {
  int major = 0;
  int minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal),
        "asking for the architecture of a device");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal),
        "asking for the architecture of a device");
  return 10 * major + minor;
}

}  // namespace

struct DeviceKernel::Loaded {
  struct Kernel {
    cudaLibrary_t library = nullptr;
    cudaKernel_t kernel = nullptr;
  };
  struct OnDevice {
    void* kernel = nullptr;
    unsigned shared_bytes = usual_shared_bytes;  // That a block may have.
  };
  std::mutex mutex;
  std::map<int, Kernel> kernels;  // By architecture.
  std::map<int, OnDevice> on_device;
};

DeviceKernel::DeviceKernel(std::string title, std::map<int, Image> images)
    : title_(std::move(title)), images_(std::move(images)), loaded_(std::make_unique<Loaded>()) {}

DeviceKernel::~DeviceKernel() {
  for (const auto& [architecture, loaded] : loaded_->kernels) cudaLibraryUnload(loaded.library);
  cudaGetLastError();
}

void* DeviceKernel::kernel_for(int architecture) {
  if (const auto found = loaded_->kernels.find(architecture); found != loaded_->kernels.end())
    return found->second.kernel;
  const auto image = images_.find(architecture);
  if (image == images_.end())
    fail(Errc::unavailable,
         fmt::format("{}: not compiled for devices of architecture {}", title_, architecture));
  Loaded::Kernel made;
  check_room(cudaLibraryLoadData(&made.library, image->second.code.data(), nullptr, nullptr, 0,
                                 nullptr, nullptr, 0),
             title_ + ": loading its code");
  const cudaError_t error =
      cudaLibraryGetKernel(&made.kernel, made.library, image->second.name.c_str());
  if (error != cudaSuccess) cudaLibraryUnload(made.library);
  check(error, fmt::format("{}: looking for kernel {}", title_, image->second.name));
  loaded_->kernels.emplace(architecture, made);
  return made.kernel;
}

void DeviceKernel::launch(void* stream, const Shape& shape, std::span<void*> values) {
  if (std::ranges::count(shape.grid, 0u) > 0) return;
  const int device = current_cuda_device();
  void* kernel = nullptr;
  {
    const std::lock_guard lock(loaded_->mutex);
    Loaded::OnDevice& here = loaded_->on_device[device];
    if (!here.kernel) here.kernel = kernel_for(architecture_of(device));
    kernel = here.kernel;
    if (shape.shared_bytes > here.shared_bytes) {
      check_room(
          cudaKernelSetAttributeForDevice(static_cast<cudaKernel_t>(kernel),
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(shape.shared_bytes), device),
          fmt::format("{}: asking for {} bytes of shared memory", title_, shape.shared_bytes));
      here.shared_bytes = shape.shared_bytes;
    }
  }
  const auto& [gx, gy, gz] = shape.grid;
  const auto& [bx, by, bz] = shape.block;
  const cudaError_t error =
      cudaLaunchKernel(kernel, dim3(gx, gy, gz), dim3(bx, by, bz), values.data(),
                       shape.shared_bytes, static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess)
    check_room(error, fmt::format("{}: launching a grid of {}x{}x{} blocks of {}x{}x{} threads",
                                  title_, gx, gy, gz, bx, by, bz));
}

std::vector<int> cuda_architectures() {
  std::vector<int> found;
  if (!cuda_absence().empty()) return found;  // it also makes the runtime ready
  int count = 0;
  check(cudaGetDeviceCount(&count), "counting devices");
  for (int ordinal = 0; ordinal < count; ++ordinal) found.push_back(architecture_of(ordinal));
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

int current_cuda_device() {
  int device = 0;
  check(cudaGetDevice(&device), "asking for the current device");
  return device;
}

}  // namespace quadriga
