// SPDX-License-Identifier: BSD-3-Clause
// src/device/device_kernel_absent.cpp: stands in for compiled kernels in builds without CUDA.
#include <quadriga/error.h>

#include "device/device_kernel.h"

namespace quadriga {

struct DeviceKernel::Loaded {};

DeviceKernel::DeviceKernel(std::string title, std::map<int, Image> images)
    : title_(std::move(title)), images_(std::move(images)) {}
DeviceKernel::~DeviceKernel() = default;

void* DeviceKernel::kernel_for(int) {
  fail(Errc::unavailable, title_ + ": this build of Quadriga has no CUDA backend");
}

void DeviceKernel::launch(void*, const Shape&, std::span<void*>) { kernel_for(0); }

std::vector<int> cuda_architectures() { return {}; }

int current_cuda_device() { fail(Errc::unavailable, "this build of Quadriga has no CUDA backend"); }

}  // namespace quadriga
