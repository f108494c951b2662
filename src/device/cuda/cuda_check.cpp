// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/cuda_check.cpp: sorts the errors of the CUDA runtime by what follows from them.
#include "device/cuda/cuda_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/thread.h"

namespace quadriga::cuda {
namespace {

constexpr std::array fatal{
    cudaErrorECCUncorrectable,    cudaErrorNvlinkUncorrectable, cudaErrorContained,
    cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,       cudaErrorAssert,
    cudaErrorHardwareStackError,  cudaErrorIllegalInstruction,  cudaErrorMisalignedAddress,
    cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,           cudaErrorLaunchFailure,
    cudaErrorTensorMemoryLeak,    cudaErrorExternalDevice,
};
constexpr std::array absent{
    cudaErrorNoDevice,           cudaErrorInsufficientDriver,
    cudaErrorDevicesUnavailable, cudaErrorSystemDriverMismatch,
    cudaErrorStubLibrary,        cudaErrorInitializationError,
};

Errc code_of(cudaError_t error) noexcept {
  if (is_fatal(error)) return Errc::device_lost;
  return std::ranges::count(absent, error) ? Errc::unavailable : Errc::task_failed;
}

}  // namespace

bool is_fatal(cudaError_t error) noexcept { return std::ranges::count(fatal, error) > 0; }

Error error_of(cudaError_t error, std::string_view call, std::source_location where) {
  std::string text =
      fmt::format("CUDA: {}: {} ({})", call, cudaGetErrorString(error), cudaGetErrorName(error));
  if (is_fatal(error)) text += "; CUDA does no more work in this process: start a new one";
  return Error(code_of(error), text, where);
}

void check(cudaError_t error, std::string_view call, std::source_location where) {
  if (error == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // So that the next call isn't blamed for it.
  throw error_of(error, call, where);
}

DeviceGuard::DeviceGuard(int ordinal) {
  check(cudaGetDevice(&before_), "finding the current device");
  check(cudaSetDevice(ordinal), fmt::format("choosing device {}", ordinal));
}

DeviceGuard::~DeviceGuard() { cudaSetDevice(before_); }

CallDevice::CallDevice(int ordinal) {
  int before = ordinal;
  // A lost device isn't gone back to: calls for others may fail there as well.
  if (!is_own_thread() && cudaGetDevice(&before) != cudaSuccess) {
    cudaGetLastError();
    before = ordinal;
  }
  check(cudaSetDevice(ordinal), "choosing a device");
  if (before != ordinal) before_ = before;
}

CallDevice::~CallDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
}

KeptDevice::KeptDevice() noexcept {
  if (cudaGetDevice(&before_) != cudaSuccess) before_ = -1;
}

KeptDevice::~KeptDevice() {
  if (before_ >= 0) cudaSetDevice(before_);
  cudaGetLastError();
}

}  // namespace quadriga::cuda
