// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/device_memory_test.cpp: memory of devices, of their own and from their pools.
#include "device/cuda/cuda_memory.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_check.h"

namespace quadriga::cuda {
namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20;

class DeviceMemoryTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
  }
};

TEST_P(DeviceMemoryTest, CountsAndGivesBack) {
  CudaMemory memory({-1, 0}, GetParam());
  std::byte* const first = memory.allocate(1, megabyte);
  std::byte* const second = memory.allocate(1, 2 * megabyte);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(memory.used(1), 3 * megabyte);
  memory.deallocate(1, first, false);
  memory.deallocate(1, first, false);
  EXPECT_EQ(memory.used(1), 2 * megabyte);
  memory.deallocate_all(1, false);
  EXPECT_EQ(memory.used(1), 0);
  EXPECT_EQ(memory.used(0), 0);
}

TEST_P(DeviceMemoryTest, IsADevicesOwn) {
  CudaMemory memory({0}, GetParam());
  std::byte* const block = memory.allocate(0, megabyte);
  ASSERT_NE(block, nullptr);
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, block), "asking where memory is");
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  memory.deallocate_all(0, false);
}

TEST_F(DeviceMemoryTest, WhatOthersGaveBackToThePoolIsFree) {
  const DeviceGuard guard(0);
  void* others = nullptr;
  cudaMemPool_t pool = nullptr;
  check(cudaDeviceGetDefaultMemPool(&pool, 0), "the pool");
  check(cudaMallocAsync(&others, 64 * megabyte, cudaStreamPerThread), "memory from the pool");
  check(cudaFreeAsync(others, cudaStreamPerThread), "giving it back");
  EXPECT_GT(free_bytes(0, true), free_bytes(0, false));
  check(cudaStreamSynchronize(cudaStreamPerThread), "waiting");
}

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceMemoryTest, testing::Bool(),
                         [](const auto& of) { return of.param ? "Pooled" : "Plain"; });

}  // namespace
}  // namespace quadriga::cuda
