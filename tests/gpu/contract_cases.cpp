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
  gpu.absence = cuda_absence();
  return {gpu};
}

std::vector<BackendCase> all_backends() { return memory_backends(); }

}  // namespace quadriga
