// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/queue_variant.cpp: calls a variant, and asks what it met.
#include "device/cuda/queue_variant.h"

#include <fmt/format.h>

#include <string>

#include "device/cuda/cuda_check.h"

namespace quadriga::cuda {

void queue_variant(const Launch& launch, cudaStream_t stream, std::function<void()>& on_end) {
  Arguments arguments = launch.arguments;
  arguments.stream = stream;
  arguments.on_end = &on_end;
  (*launch.kernel)(arguments);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess || error == cudaErrorNotReady) return;
  // A fault is mostly an earlier kernel's.
  check(error, is_fatal(error) ? fmt::format("found while '{}' was queued", launch.name)
                               : std::string(launch.name));
}

}  // namespace quadriga::cuda
