// SPDX-License-Identifier: BSD-3-Clause
// tests/fakes/nvml.cpp: a library with NVML's functions, for a machine with three GPUs.
//
// 0 has NVLinks to switches; 1 two to GPU 2 and one that is down; 2 is cut into instances, belongs
// to one process alone, and tells little else.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

constexpr int success = 0;
constexpr int not_supported = 3;
constexpr int too_small = 7;
constexpr unsigned processes_of_0 = 70;

struct Gpu {
  const char* name;
  const char* address;
};
constexpr std::array gpus{Gpu{"NVIDIA H200", "00000000:17:00.0"},
                          Gpu{"NVIDIA A100", "00000000:3A:00.0"},
                          Gpu{"NVIDIA A100", "00000001:3B:00.0"}};

unsigned number(const void* gpu) { return static_cast<unsigned>(std::uintptr_t(gpu) - 1); }

struct Pci {
  char legacy[16];
  unsigned numbers[5];
  char address[32];
};
struct Process {
  unsigned pid;
  unsigned long long used;
  unsigned instances[2];
};
struct Field {
  unsigned field, scope;
  long long times[2];
  int type, status;
  unsigned value;
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int nvmlInit_v2() { return success; }
EXPORT int nvmlShutdown() { return success; }
EXPORT int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.65.06");
  return success;
}
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13000;
  return success;
}
EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = gpus.size();
  return success;
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  *gpu = reinterpret_cast<void*>(std::uintptr_t(index) + 1);
  return success;
}
EXPORT int nvmlDeviceGetName(void* gpu, char* text, unsigned size) {
  std::snprintf(text, size, "%s", gpus[number(gpu)].name);
  return success;
}
EXPORT int nvmlDeviceGetPciInfo_v3(void* gpu, Pci* pci) {
  std::snprintf(pci->address, sizeof(pci->address), "%s", gpus[number(gpu)].address);
  return success;
}
EXPORT int nvmlDeviceGetMemoryInfo(void* gpu, unsigned long long* sizes) {
  if (number(gpu) == 2) return not_supported;
  sizes[0] = 150'000'000'000;
  sizes[1] = 110'000'000'000;
  sizes[2] = 40'000'000'000;
  return success;
}
EXPORT int nvmlDeviceGetCudaComputeCapability(void* gpu, int* major, int* minor) {
  *major = number(gpu) == 0 ? 9 : 8;
  *minor = 0;
  return success;
}
EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void* gpu, unsigned* generation) {
  *generation = number(gpu) == 0 ? 5 : 4;
  return success;
}
EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void* gpu, unsigned* lanes) {
  *lanes = number(gpu) == 1 ? 8 : 16;
  return success;
}
EXPORT int nvmlDeviceGetComputeMode(void* gpu, int* mode) {
  *mode = number(gpu) == 2 ? 3 : number(gpu) == 1 ? 2 : 0;
  return success;
}
EXPORT int nvmlDeviceGetMigMode(void* gpu, unsigned* now, unsigned* pending) {
  *now = *pending = number(gpu) == 2;
  return success;
}
EXPORT int nvmlDeviceGetNvLinkState(void* gpu, unsigned link, int* active) {
  const unsigned links = number(gpu) == 0 ? 18 : number(gpu) == 1 ? 3 : 2;
  *active = number(gpu) != 1 || link != 1;
  return link < links ? success : not_supported;
}
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* gpu, unsigned, Pci* pci) {
  const char* const to = number(gpu) == 0   ? "00000000:C0:00.0"
                         : number(gpu) == 1 ? gpus[2].address
                                            : gpus[1].address;
  std::snprintf(pci->address, sizeof(pci->address), "%s", to);
  return success;
}
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void* gpu, unsigned, int* type) {
  *type = number(gpu) == 0 ? 2 : 0;
  return success;
}
EXPORT int nvmlDeviceGetFieldValues(void* gpu, int, Field* field) {
  field->status = field->field == 90 ? success : not_supported;
  field->value = number(gpu) == 0 ? 26562 : 25781;
  return success;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void* gpu, unsigned* count, Process* found) {
  const unsigned there = number(gpu) == 0 ? processes_of_0 : 0;
  const bool fits = *count >= there;
  *count = there;
  for (unsigned i = 0; fits && i < there; ++i)
    found[i] = {1000 + i, i == 0 ? ~0ULL : 1'000'000'000ULL, {0, 0}};
  return fits ? success : too_small;
}
