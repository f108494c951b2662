// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_multi.cpp: Cholesky by cuSOLVERMg with the matrix on the devices.
#include <cusolverMg.h>

#include <numeric>

#include "device/cuda/copies.h"
#include "gpu.h"
#include "gpu_buffer.h"
#include "linalg/kernels/handles_cuda.h"

namespace quadriga::bench {
namespace {

using cuda::check;
using kernels::cuda::check;

/// A matrix whose blocks of columns are dealt out to devices in turn.
class DealtMatrix {
 public:
  DealtMatrix(int gpus, int block, std::int64_t order)
      : gpus_(gpus), block_(block), order_(order), devices_(static_cast<std::size_t>(gpus)) {
    std::iota(devices_.begin(), devices_.end(), 0);
    cuda::enable_peer_access(devices_);
    check(cusolverMgCreate(&handle_), "making a handle of cuSOLVERMg");
    check(cusolverMgDeviceSelect(handle_, gpus, devices_.data()), "choosing cuSOLVERMg's devices");
    check(cusolverMgCreateDeviceGrid(&grid_, 1, gpus, devices_.data(),
                                     CUDALIBMG_GRID_MAPPING_COL_MAJOR),
          "making cuSOLVERMg's grid");
    check(cusolverMgCreateMatrixDesc(&matrix_, order, order, order, block, CUDA_R_64F, grid_),
          "describing a matrix to cuSOLVERMg");
    const std::int64_t local = (blocks() + gpus - 1) / gpus;
    parts_ = allocate(static_cast<std::size_t>(local * block * order) * sizeof(double));
    check(cusolverMgPotrf_bufferSize(handle_, CUBLAS_FILL_MODE_LOWER, static_cast<int>(order),
                                     parts_.data(), 1, 1, matrix_, CUDA_R_64F, &work_elements_),
          "asking for cuSOLVERMg's workspace");
    works_ = allocate(static_cast<std::size_t>(work_elements_) * sizeof(double));
  }
  ~DealtMatrix() {
    for (void* const part : parts_) cudaFree(part);
    for (void* const work : works_) cudaFree(work);
    cusolverMgDestroyMatrixDesc(matrix_);
    cusolverMgDestroyGrid(grid_);
    cusolverMgDestroy(handle_);
  }
  DealtMatrix(const DealtMatrix&) = delete;
  DealtMatrix& operator=(const DealtMatrix&) = delete;

  void fill() {
    for (std::int64_t b = 0; b < blocks(); ++b) {
      const auto d = static_cast<std::size_t>(b % gpus_);
      check(cudaSetDevice(devices_[d]), "choosing a device");
      const auto first = static_cast<int>(b * block_);
      const auto rows = static_cast<int>(order_);
      fill_on_device(static_cast<double*>(parts_[d]) + b / gpus_ * block_ * order_, rows,
                     std::min(block_, rows - first), first, true);
    }
    synchronize();
  }
  void factorize() {
    int info = 0;
    check(cusolverMgPotrf(handle_, CUBLAS_FILL_MODE_LOWER, static_cast<int>(order_), parts_.data(),
                          1, 1, matrix_, CUDA_R_64F, works_.data(), work_elements_, &info),
          "potrf by cuSOLVERMg");
    synchronize();
  }

 private:
  std::int64_t blocks() const { return (order_ + block_ - 1) / block_; }
  std::vector<void*> allocate(std::size_t bytes) const {
    std::vector<void*> memory(devices_.size());
    for (std::size_t d = 0; d < memory.size(); ++d) {
      check(cudaSetDevice(devices_[d]), "choosing a device");
      check(cudaMalloc(&memory[d], bytes), "allocating device memory");
    }
    return memory;
  }
  void synchronize() const {
    for (const int device : devices_) {
      check(cudaSetDevice(device), "choosing a device");
      check(cudaDeviceSynchronize(), "work by cuSOLVERMg");
    }
  }

  int gpus_;
  int block_;
  std::int64_t order_;
  std::vector<int> devices_;
  cusolverMgHandle_t handle_ = nullptr;
  cudaLibMgGrid_t grid_ = nullptr;
  cudaLibMgMatrixDesc_t matrix_ = nullptr;
  std::vector<void*> parts_;
  std::vector<void*> works_;
  std::int64_t work_elements_ = 0;
};

}  // namespace

double mg_potrf(int gpus, int block, std::int64_t order, int repeat) {
  DealtMatrix matrix(gpus, block, order);
  return best_of(
      repeat + 1, [&] { matrix.fill(); }, [&] { matrix.factorize(); });
}

}  // namespace quadriga::bench
