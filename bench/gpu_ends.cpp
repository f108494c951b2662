// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_ends.cpp: how long after its end on a GPU the engine knows of an operation.
//
// The end is what the runtime calls a function of the host at, behind which the stream goes on.
#include <cuda_runtime_api.h>

#include "device/cuda/cuda_check.h"
#include "ends.h"
#include "gpu_parts.h"

namespace quadriga::bench {

void gpu_ends(const Machine& machine, const Settings& settings) {
  EngineOptions options;
  options.machine = machine;
  Codelet codelet;
  codelet.name = "ends";
  codelet.access = {Access::update};
  codelet.cost = [](const Arguments&) { return Cost::of_seconds(1e-6); };
  codelet.cuda = [](const Arguments& arguments) {
    const auto end = [](void* task) { static_cast<EndedTask*>(task)->end_kernel(); };
    cuda::check(cudaLaunchHostFunc(static_cast<cudaStream_t>(arguments.stream), end,
                                   &ended_task(arguments)),
                "queueing a call of the host");
  };
  measure_ends(settings, options, codelet);
}

}  // namespace quadriga::bench
