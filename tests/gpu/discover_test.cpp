// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/discover_test.cpp: what discovery says of real GPUs, and whether its rates hold.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <quadriga/machine.h>

#include <algorithm>
#include <set>

#include "device/cuda/cuda_backend.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda_reading.h"
#include "device/description.h"
#include "device/nvml.h"

namespace quadriga {
namespace {

class Discovery : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string absence = cuda_absence(); !absence.empty()) GTEST_SKIP() << absence;
    machine_ = discover_cuda();
  }
  Machine machine_;
};

TEST_F(Discovery, NamesDevicesAndTheirPlaces) {
  std::set<std::string> addresses;
  for (const Device& device : machine_.devices) {
    EXPECT_FALSE(device.model.empty());
    EXPECT_EQ(device.pci_address.size(), std::string("0000:17:00.0").size()) << device.pci_address;
    addresses.insert(device.pci_address);
  }
  EXPECT_EQ(addresses.size(), machine_.devices.size());
  EXPECT_FALSE(machine_.nodes.empty());
}

TEST_F(Discovery, NvmlKnowsTheDevicesOfCuda) {
  const NvmlReading nvml = read_nvml();
  if (!nvml.absence.empty()) GTEST_SKIP() << nvml.absence;
  EXPECT_FALSE(nvml.driver.empty());
  EXPECT_GE(nvml.cuda_version, 12000);
  for (const Device& device : machine_.devices) {
    const auto found = std::ranges::find(nvml.gpus, device.pci_address, &GpuReading::pci_address);
    ASSERT_NE(found, nvml.gpus.end()) << device.pci_address;
    EXPECT_EQ(found->model, device.model);
    EXPECT_GE(found->memory_bytes, device.memory_bytes);
    EXPECT_GT(found->major, 0);
    EXPECT_LE(found->nvlinks.size(), 36u);
    RecordProperty("nvlinks", static_cast<int>(found->nvlinks.size()));
  }
}

TEST_F(Discovery, EveryDeviceOfGoodMachinesCanBeUsed) {
  const CudaReading cuda = read_cuda();
  ASSERT_EQ(cuda.gpus.size(), machine_.devices.size());
  EXPECT_GE(cuda.driver_version, cuda.runtime_version / 1000 * 1000);
  EXPECT_FALSE(cuda.architectures.empty());
  for (std::size_t i = 0; i < cuda.gpus.size(); ++i) {
    EXPECT_EQ(cuda.gpus[i].error, "");
    EXPECT_TRUE(cuda.gpus[i].has_kernels);
    EXPECT_EQ(cuda.gpus[i].pci_address, machine_.devices[i].pci_address);
  }
}

// Seconds of pinned copies of 64 MiB to the first device.
double pinned_rate() {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  constexpr int count = 8;
  void* host = nullptr;
  void* device = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  cuda::check(cudaSetDevice(0), "choosing a device");
  cuda::check(cudaHostAlloc(&host, bytes, cudaHostAllocPortable), "pinned memory");
  cuda::check(cudaMalloc(&device, bytes), "device memory");
  cuda::check(cudaEventCreate(&begin), "an event");
  cuda::check(cudaEventCreate(&end), "an event");
  cuda::check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, nullptr), "a copy");
  cuda::check(cudaEventRecord(begin, nullptr), "an event");
  for (int i = 0; i < count; ++i)
    cuda::check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, nullptr), "a copy");
  cuda::check(cudaEventRecord(end, nullptr), "an event");
  cuda::check(cudaEventSynchronize(end), "copies");
  float milliseconds = 0;
  cuda::check(cudaEventElapsedTime(&milliseconds, begin, end), "times");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaFree(device);
  cudaFreeHost(host);
  return count * static_cast<double>(bytes) / (1e-3 * static_cast<double>(milliseconds));
}

TEST_F(Discovery, SupposedRatesOfPcieAreNearTheMeasuredOnes) {
  const double supposed = 1e12 / machine_.copy_seconds(host_space, 1, 1e12);
  const double measured = pinned_rate();
  // Slots may share a switch, and virtual machines name slots that aren't there: half and twice.
  EXPECT_GT(supposed, measured / 2) << machine_.to_json();
  EXPECT_LT(supposed, measured * 2) << machine_.to_json();
}

TEST_F(Discovery, ItsOwnDescriptionIsAccepted) {
  const Machine description = Machine::from_json(machine_.to_json());
  Machine again = machine_;
  use_description(again, description);
  EXPECT_EQ(again.routes.size(), machine_.routes.size());
  for (const Route& route : machine_.routes) {
    EXPECT_DOUBLE_EQ(again.copy_seconds(route.from, route.to, 1e9),
                     machine_.copy_seconds(route.from, route.to, 1e9));
  }
}

}  // namespace
}  // namespace quadriga
