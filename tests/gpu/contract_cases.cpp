// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/contract_cases.cpp: the CUDA backend under the contract of all backends.
#include "contract/backend/backend_contract.h"
#include "device/cuda/cuda_backend.h"
#include "gpu/host_body.h"
#include "gpu/sleep.h"

namespace quadriga {

std::vector<BackendCase> memory_backends() {
  BackendCase gpu{"cuda", DeviceKind::cuda,
                  [](Machine machine) { return make_cuda_backend(std::move(machine)); }};
  gpu.adapt = on_stream;
  gpu.sleep = [](int milliseconds) {
    return [milliseconds](const Arguments& call) { queue_sleep(call.stream, milliseconds); };
  };
  gpu.emulates = false;
  gpu.make_sharing = gpu.make;
  gpu.absence = cuda_absence();
  return {gpu};
}

// Variants run on cores where they get no stream.
std::vector<BackendCase> all_backends() {
  std::vector<BackendCase> cases = memory_backends();
  BackendCase joined = cases.front();
  joined.name = "joined";
  joined.make = [](const Machine& machine) { return make_backend(mixed_machine(machine)); };
  joined.adapt = [](Kernel body) {
    return [body, queued = on_stream(body)](const Arguments& call) {
      call.stream == nullptr ? body(call) : queued(call);
    };
  };
  joined.sleep = [](int milliseconds) {
    return [milliseconds](const Arguments& call) {
      if (call.stream != nullptr) return queue_sleep(call.stream, milliseconds);
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    };
  };
  cases.push_back(joined);
  return cases;
}

}  // namespace quadriga
