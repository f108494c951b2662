// SPDX-License-Identifier: BSD-3-Clause
// src/device/inspection.cpp: readings as JSON.
#include "device/inspection.h"

#include <quadriga/machine.h>

#include <nlohmann/json.hpp>

namespace quadriga {
namespace {

using Json = nlohmann::ordered_json;

Json write(const GpuReading& gpu) {
  Json json{{"index", gpu.index},
            {"model", gpu.model},
            {"uuid", gpu.uuid},
            {"pci_address", gpu.pci_address},
            {"memory", gpu.memory_bytes},
            {"used", gpu.used_bytes},
            {"capability", {gpu.major, gpu.minor}},
            {"pcie_generation", gpu.pcie_generation},
            {"pcie_lanes", gpu.pcie_lanes},
            {"compute_mode", name(gpu.compute_mode)},
            {"mig", gpu.mig},
            {"nvlinks", gpu.nvlinks.size()},
            {"processes", Json::array()}};
  for (const GpuProcess& process : gpu.processes)
    json["processes"].push_back({{"pid", process.pid}, {"bytes", process.bytes}});
  return json;
}

Json write(const CudaGpuReading& gpu) {
  return {{"model", gpu.model},
          {"pci_address", gpu.pci_address},
          {"capability", {gpu.major, gpu.minor}},
          {"error", gpu.error},
          {"has_kernels", gpu.has_kernels},
          {"memory", gpu.memory_bytes},
          {"free", gpu.free_bytes},
          {"unreachable", gpu.unreachable}};
}

template <class Gpu>
Json write_all(const std::vector<Gpu>& gpus) {
  Json json = Json::array();
  for (const Gpu& gpu : gpus) json.push_back(write(gpu));
  return json;
}

}  // namespace

std::string inspection_json(const NvmlReading& nvml, const CudaReading& cuda) {
  const Json json{{"nvml",
                   {{"absence", nvml.absence},
                    {"driver", nvml.driver},
                    {"cuda_version", nvml.cuda_version},
                    {"gpus", write_all(nvml.gpus)}}},
                  {"cuda",
                   {{"absence", cuda.absence},
                    {"driver_version", cuda.driver_version},
                    {"runtime_version", cuda.runtime_version},
                    {"architectures", cuda.architectures},
                    {"gpus", write_all(cuda.gpus)}}}};
  return json.dump();
}

std::string inspection_json() {
  // NVML first: CUDA's contexts would be among its processes.
  const NvmlReading nvml = read_nvml();
  return inspection_json(nvml, read_cuda());
}

}  // namespace quadriga
