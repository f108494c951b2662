// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/driver_calls.cpp: looks them up, once.
#include "device/cuda/driver_calls.h"

#include <type_traits>

namespace quadriga::cuda {

const MemoryCalls& MemoryCalls::get() {
  static const MemoryCalls all = [] {
    MemoryCalls found{};
    const auto find = [](auto& call, const char* name) {
      call = find_driver_call<std::remove_pointer_t<std::remove_reference_t<decltype(call)>>>(name);
    };
    find(found.attribute, "cuPointerGetAttribute");
    find(found.range, "cuMemGetAddressRange");
    find(found.retain, "cuMemRetainAllocationHandle");
    find(found.release, "cuMemRelease");
    find(found.export_handle, "cuMemExportToShareableHandle");
    find(found.import_handle, "cuMemImportFromShareableHandle");
    find(found.reserve, "cuMemAddressReserve");
    find(found.unreserve, "cuMemAddressFree");
    find(found.map, "cuMemMap");
    find(found.unmap, "cuMemUnmap");
    find(found.set_access, "cuMemSetAccess");
    return found;
  }();
  return all;
}

}  // namespace quadriga::cuda
