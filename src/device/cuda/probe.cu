// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/probe.cu: a kernel that is there to be asked for; all are compiled for the same
// architectures.
#include "device/cuda/probe.h"

namespace quadriga::cuda {
namespace {

__global__ void nothing() {}

constexpr int compiled_for[] = {__CUDA_ARCH_LIST__};

}  // namespace

cudaError_t probe_kernels() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, nothing);
}

std::string kernel_architectures() {
  std::string text;
  for (const int architecture : compiled_for) {
    if (!text.empty()) text += ", ";
    text += std::to_string(architecture / 100) + "." + std::to_string(architecture % 100 / 10);
  }
  return text;
}

}  // namespace quadriga::cuda
