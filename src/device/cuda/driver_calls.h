// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/driver_calls.h: functions that only the driver's own interface has, found at run
// time: its library isn't linked to, and is absent where there is no driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string_view>

namespace quadriga::cuda {

/// A function of the driver; null where it has none of that name. Its errors have the runtime's
/// numbers.
template <class Function>
Function* find_driver_call(const char* name) noexcept {
  constexpr unsigned int since = 12000;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &function, since, cudaEnableDefault, &found);
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess ? reinterpret_cast<Function*>(function) : nullptr;
}

/// Where memory is, which allocation it is, and what other processes may open.
struct MemoryCalls {
  decltype(&::cuPointerGetAttribute) attribute;
  decltype(&::cuMemGetAddressRange) range;
  decltype(&::cuMemRetainAllocationHandle) retain;
  decltype(&::cuMemRelease) release;
  decltype(&::cuMemExportToShareableHandle) export_handle;
  decltype(&::cuMemImportFromShareableHandle) import_handle;
  decltype(&::cuMemAddressReserve) reserve;
  decltype(&::cuMemAddressFree) unreserve;
  decltype(&::cuMemMap) map;
  decltype(&::cuMemUnmap) unmap;
  decltype(&::cuMemSetAccess) set_access;

  /// Of the driver that is there; functions it lacks are null.
  static const MemoryCalls& get();
  bool has_ranges() const noexcept { return attribute != nullptr && range != nullptr; }
  bool has_mappings() const noexcept {
    return retain && release && export_handle && import_handle && reserve && unreserve && map &&
           unmap && set_access;
  }
};

}  // namespace quadriga::cuda
