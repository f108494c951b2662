// SPDX-License-Identifier: BSD-3-Clause
// src/mpi/cuda_buffers.cpp: memory of CUDA devices in MPI programs: known by the driver, reached by
// ports.
//
// The driver's library is opened, but nothing is initialized: a program that uses no GPU pays for
// none. One that does has initialized the driver before it can have a pointer.
#include <dlfcn.h>
#include <quadriga/error.h>
#include <unistd.h>

#include "message/ports.h"
#include "mpi/device_buffers.h"

namespace quadriga::mpi {
namespace {

#ifdef QUADRIGA_MPI_CUDA

/// Of the driver's interface (CUpointer_attribute, CUmemorytype in cuda.h).
constexpr int memory_type = 2;
constexpr int is_managed = 8;
constexpr int device_ordinal = 9;
constexpr unsigned int device_memory = 2;
using PointerAttribute = int (*)(void* value, int attribute, unsigned long long address);

class CudaBuffers final : public DeviceBuffers {
 public:
  explicit CudaBuffers(PointerAttribute attribute) : attribute_(attribute) {}

  /// Managed memory isn't: the host, and so MPI, may touch it.
  bool holds(const void* address) const noexcept override {
    const auto at = reinterpret_cast<unsigned long long>(address);
    unsigned int type = 0;
    if (at == 0 || attribute_(&type, memory_type, at) != 0 || type != device_memory) return false;
    int managed = 0;
    return attribute_(&managed, is_managed, at) != 0 || managed == 0;
  }
  message::MessageBuffer at(const void* address) const override {
    // Not by trying one device after the other: a rank opens its own GPU only.
    int ordinal = 0;
    if (attribute_(&ordinal, device_ordinal, reinterpret_cast<unsigned long long>(address)) != 0)
      fail(Errc::invalid_argument, "the driver doesn't know which device has a buffer");
    return {
        {}, static_cast<std::byte*>(const_cast<void*>(address)), message::ports::cuda(ordinal), 0};
  }

 private:
  PointerAttribute attribute_;
};

#endif

}  // namespace

bool find_cuda_memory() noexcept {
#ifdef QUADRIGA_MPI_CUDA
  if (access("/dev/nvidiactl", F_OK) != 0) return false;
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  void* const found = driver != nullptr ? dlsym(driver, "cuPointerGetAttribute") : nullptr;
  if (found == nullptr) return false;
  device_buffers.store(new CudaBuffers(reinterpret_cast<PointerAttribute>(found)));
  return true;
#else
  return false;
#endif
}

}  // namespace quadriga::mpi
