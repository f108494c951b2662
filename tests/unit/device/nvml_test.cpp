// SPDX-License-Identifier: BSD-3-Clause
// tests/unit/device/nvml_test.cpp: readings of NVML's functions, and of machines that lack them.
#include "device/nvml.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "device/inspection.h"

namespace quadriga {
namespace {

// A machine of three GPUs (tests/fakes/nvml.cpp).
const NvmlReading& fake() {
  static const NvmlReading reading = read_nvml(QUADRIGA_FAKE_NVML);
  return reading;
}

TEST(Nvml, ReadsWhatTheLibraryTells) {
  EXPECT_EQ(fake().absence, "");
  EXPECT_EQ(fake().driver, "580.65.06");
  EXPECT_EQ(fake().cuda_version, 13000);
  ASSERT_EQ(fake().gpus.size(), 3u);
  const GpuReading& gpu = fake().gpus[0];
  EXPECT_EQ(gpu.model, "NVIDIA H200");
  EXPECT_EQ(gpu.pci_address, "0000:17:00.0");
  EXPECT_EQ(gpu.memory_bytes, 150'000'000'000u);
  EXPECT_EQ(gpu.used_bytes, 40'000'000'000u);
  EXPECT_EQ(gpu.major, 9);
  EXPECT_EQ(gpu.pcie_generation, 5);
  EXPECT_EQ(gpu.pcie_lanes, 16);
  EXPECT_EQ(gpu.compute_mode, ComputeMode::shared);
  EXPECT_FALSE(gpu.mig);
  EXPECT_EQ(gpu.nvlinks.size(), 18u);
  EXPECT_DOUBLE_EQ(gpu.nvlink_bytes_per_second, 26562e6);
}

TEST(Nvml, WhatAGpuDoesNotTellStaysEmpty) {
  const GpuReading& gpu = fake().gpus[2];
  EXPECT_EQ(gpu.uuid, "");  // The library has no such function.
  EXPECT_EQ(gpu.memory_bytes, 0u);
  EXPECT_EQ(gpu.compute_mode, ComputeMode::exclusive);
  EXPECT_EQ(fake().gpus[1].compute_mode, ComputeMode::prohibited);
  EXPECT_TRUE(gpu.mig);
  EXPECT_TRUE(gpu.processes.empty());
}

TEST(Nvml, MoreProcessesThanExpectedAreAllRead) {
  const auto& processes = fake().gpus[0].processes;
  ASSERT_EQ(processes.size(), 70u);
  EXPECT_EQ(processes[0].pid, 1000);
  EXPECT_EQ(processes[0].bytes, 0u);  // Unknown.
  EXPECT_EQ(processes[69].bytes, 1'000'000'000u);
}

TEST(Nvml, LinksBetweenTwoAreTheirOwnOrThoseToSwitches) {
  const auto& gpus = fake().gpus;
  EXPECT_EQ(gpus[1].nvlinks.size(), 2u);  // The third is down.
  EXPECT_EQ(nvlinks_between(gpus[1], gpus[2]), 2);
  EXPECT_EQ(nvlinks_between(gpus[0], gpus[1]), 0);
  EXPECT_EQ(nvlinks_between(gpus[0], gpus[0]), 18);
}

TEST(Nvml, SaysWhyThereIsNoReading) {
  const NvmlReading reading = read_nvml("libnowhere.so.7");
  EXPECT_NE(reading.absence.find("libnowhere.so.7"), std::string::npos) << reading.absence;
  EXPECT_TRUE(reading.gpus.empty());
}

TEST(Nvml, AddressesAreTheKernels) {
  EXPECT_EQ(kernel_address("00000001:3B:00.0"), "0001:3b:00.0");
  EXPECT_EQ(kernel_address("0000:17:00.0"), "0000:17:00.0");
  EXPECT_EQ(kernel_address(""), "");
}

TEST(Inspection, HoldsBothSidesReadings) {
  CudaReading cuda;
  cuda.absence = "no CUDA device is visible";
  CudaGpuReading gpu;
  gpu.error = "busy";
  gpu.unreachable = {1, 2};
  cuda.gpus.push_back(gpu);
  const auto json = nlohmann::json::parse(inspection_json(fake(), cuda));
  EXPECT_EQ(json["nvml"]["gpus"][2]["mig"], true);
  EXPECT_EQ(json["nvml"]["gpus"][1]["compute_mode"], "prohibited");
  EXPECT_EQ(json["nvml"]["gpus"][0]["processes"][1]["pid"], 1001);
  EXPECT_EQ(json["cuda"]["absence"], cuda.absence);
  EXPECT_EQ(json["cuda"]["gpus"][0]["unreachable"], nlohmann::json({1, 2}));
  // What python/quadriga/gpus.py asks for.
  for (const char* const key :
       {"index", "model", "pci_address", "compute_mode", "mig", "processes"})
    EXPECT_TRUE(json["nvml"]["gpus"][0].contains(key)) << key;
  for (const char* const key : {"model", "pci_address", "capability", "error", "has_kernels",
                                "free", "memory", "unreachable"})
    EXPECT_TRUE(json["cuda"]["gpus"][0].contains(key)) << key;
  for (const char* const key : {"absence", "driver_version", "runtime_version", "architectures"})
    EXPECT_TRUE(json["cuda"].contains(key)) << key;
}

}  // namespace
}  // namespace quadriga
