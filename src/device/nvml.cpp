// SPDX-License-Identifier: BSD-3-Clause
// src/device/nvml.cpp: asks NVML by declarations of our own, so that its header isn't needed.
//
// Layouts and numbers are those of NVML's interface, which stay as they are by its promise: what
// changes gets a new name, as nvmlDeviceGetPciInfo_v3.
#include "device/nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/shared_library.h"

namespace quadriga {
namespace {

using Handle = struct Opaque*;

constexpr int success = 0;
constexpr int too_small = 7;
constexpr unsigned most_links = 36;
constexpr unsigned field_link_speed = 90;  // Megabytes a second that all active links have.
constexpr int type_of_gpu = 0;

struct PciInfo {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char address[32];
};
struct MemoryInfo {
  unsigned long long total, free, used;
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, status;
  union {
    unsigned as_unsigned;
    double as_double;
  };
};
static_assert(sizeof(PciInfo) == 68 && sizeof(Process) == 24 && sizeof(FieldValue) == 40);

class Library {
 public:
  explicit Library(const std::string& name) : library_(name) {}
  const std::string& absence() const noexcept { return library_.absence(); }

  /// Calls a function that gives a status; -1 if the library has none of that name.
  template <class... Arguments>
  int operator()(const char* name, Arguments... arguments) const {
    using Function = int (*)(Arguments...);
    const auto function = reinterpret_cast<Function>(library_.find(name));
    return function == nullptr ? -1 : function(arguments...);
  }
  std::string error_text(int status) const {
    using Function = const char* (*)(int);
    const auto function = reinterpret_cast<Function>(library_.find("nvmlErrorString"));
    return function == nullptr ? fmt::format("status {}", status) : function(status);
  }

 private:
  SharedLibrary library_;
};

std::string read_text(const Library& nvml, const char* function, Handle gpu) {
  std::array<char, 96> text{};
  const auto size = static_cast<unsigned>(text.size());
  return nvml(function, gpu, text.data(), size) == success ? text.data() : "";
}

int read_count(const Library& nvml, const char* function, Handle gpu) {
  unsigned value = 0;
  return nvml(function, gpu, &value) == success ? static_cast<int>(value) : 0;
}

ComputeMode read_mode(const Library& nvml, Handle gpu) {
  constexpr int prohibited = 2;
  int mode = 0;
  if (nvml("nvmlDeviceGetComputeMode", gpu, &mode) != success || mode == 0)
    return ComputeMode::shared;
  return mode == prohibited ? ComputeMode::prohibited : ComputeMode::exclusive;
}

std::vector<NvlinkReading> read_links(const Library& nvml, Handle gpu) {
  std::vector<NvlinkReading> links;
  for (unsigned i = 0; i < most_links; ++i) {
    int active = 0;
    if (nvml("nvmlDeviceGetNvLinkState", gpu, i, &active) != success || active == 0) continue;
    NvlinkReading link;
    PciInfo remote{};
    int type = -1;
    if (nvml("nvmlDeviceGetNvLinkRemotePciInfo_v2", gpu, i, &remote) == success)
      link.remote = kernel_address(remote.address);
    // Virtual machines may hide the switch: what leads to no GPU that is named leads to one.
    const bool told = nvml("nvmlDeviceGetNvLinkRemoteDeviceType", gpu, i, &type) == success;
    link.to_switch = told ? type != type_of_gpu : link.remote.empty();
    links.push_back(std::move(link));
  }
  return links;
}

double read_link_rate(const Library& nvml, Handle gpu) {
  constexpr double megabyte = 1e6;
  FieldValue value{};
  value.field = field_link_speed;
  const bool read = nvml("nvmlDeviceGetFieldValues", gpu, 1, &value) == success;
  return read && value.status == success ? value.as_unsigned * megabyte : 0;
}

std::vector<GpuProcess> read_processes(const Library& nvml, Handle gpu) {
  constexpr unsigned long long unknown = ~0ULL;
  std::vector<Process> found(64);
  int status = too_small;
  for (int i = 0; i < 3 && status == too_small; ++i) {
    auto count = static_cast<unsigned>(found.size());
    status = nvml("nvmlDeviceGetComputeRunningProcesses_v3", gpu, &count, found.data());
    // More may start until the next call.
    found.resize(status == too_small ? count + 16 : status == success ? count : 0);
  }
  std::vector<GpuProcess> processes;
  if (status != success) return processes;
  for (const Process& process : found) {
    const std::size_t bytes = process.used == unknown ? 0 : process.used;
    processes.push_back({static_cast<int>(process.pid), bytes});
  }
  return processes;
}

GpuReading read_gpu(const Library& nvml, unsigned index) {
  GpuReading reading;
  reading.index = static_cast<int>(index);
  Handle gpu = nullptr;
  if (nvml("nvmlDeviceGetHandleByIndex_v2", index, &gpu) != success) return reading;
  reading.model = read_text(nvml, "nvmlDeviceGetName", gpu);
  reading.uuid = read_text(nvml, "nvmlDeviceGetUUID", gpu);
  PciInfo pci{};
  if (nvml("nvmlDeviceGetPciInfo_v3", gpu, &pci) == success)
    reading.pci_address = kernel_address(pci.address);
  MemoryInfo memory{};
  if (nvml("nvmlDeviceGetMemoryInfo", gpu, &memory) == success) {
    reading.memory_bytes = memory.total;
    reading.used_bytes = memory.used;
  }
  nvml("nvmlDeviceGetCudaComputeCapability", gpu, &reading.major, &reading.minor);
  reading.pcie_generation = read_count(nvml, "nvmlDeviceGetMaxPcieLinkGeneration", gpu);
  reading.pcie_lanes = read_count(nvml, "nvmlDeviceGetMaxPcieLinkWidth", gpu);
  reading.compute_mode = read_mode(nvml, gpu);
  unsigned mig = 0;
  unsigned pending = 0;
  reading.mig = nvml("nvmlDeviceGetMigMode", gpu, &mig, &pending) == success && mig != 0;
  reading.nvlinks = read_links(nvml, gpu);
  if (!reading.nvlinks.empty()) reading.nvlink_bytes_per_second = read_link_rate(nvml, gpu);
  reading.processes = read_processes(nvml, gpu);
  return reading;
}

int links_to(const GpuReading& gpu, const std::string& address) {
  return static_cast<int>(std::ranges::count(gpu.nvlinks, address, &NvlinkReading::remote));
}

int links_to_switches(const GpuReading& gpu) {
  return static_cast<int>(std::ranges::count(gpu.nvlinks, true, &NvlinkReading::to_switch));
}

}  // namespace

std::string_view name(ComputeMode mode) noexcept {
  constexpr std::array<std::string_view, 3> names{"shared", "exclusive", "prohibited"};
  return names[static_cast<std::size_t>(mode)];
}

std::string kernel_address(std::string_view address) {
  constexpr std::size_t digits_of_domain = 4;
  const std::size_t colon = address.find(':');
  if (colon != std::string_view::npos && colon > digits_of_domain)
    address.remove_prefix(colon - digits_of_domain);
  std::string text(address);
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

int nvlinks_between(const GpuReading& one, const GpuReading& other) {
  const int direct = links_to(one, other.pci_address);
  return direct > 0 ? direct : std::min(links_to_switches(one), links_to_switches(other));
}

NvmlReading read_nvml(const std::string& library) {
  NvmlReading reading;
  const Library nvml(library);
  reading.absence = nvml.absence();
  if (!reading.absence.empty()) return reading;
  const int status = nvml("nvmlInit_v2");
  if (status != success) {
    reading.absence = fmt::format("{} doesn't start: {}", library, nvml.error_text(status));
    return reading;
  }
  std::array<char, 96> driver{};
  const auto size = static_cast<unsigned>(driver.size());
  if (nvml("nvmlSystemGetDriverVersion", driver.data(), size) == success)
    reading.driver = driver.data();
  nvml("nvmlSystemGetCudaDriverVersion_v2", &reading.cuda_version);
  unsigned count = 0;
  if (nvml("nvmlDeviceGetCount_v2", &count) != success) count = 0;
  for (unsigned i = 0; i < count; ++i) reading.gpus.push_back(read_gpu(nvml, i));
  nvml("nvmlShutdown");
  return reading;
}

}  // namespace quadriga
