// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/absent.cpp: stands in for the CUDA backend in builds without CUDA.
#include <quadriga/error.h>

#include "device/cuda/cuda_backend.h"
#include "device/cuda_reading.h"

namespace quadriga {

Machine discover_cuda() { return {}; }

std::string cuda_absence() { return "this build of Quadriga has no CUDA backend"; }

int cuda_ordinal_of(const void*) { return -1; }

CudaReading read_cuda() {
  CudaReading reading;
  reading.absence = cuda_absence();
  return reading;
}

std::unique_ptr<Backend> make_cuda_backend(Machine) { fail(Errc::unavailable, cuda_absence()); }

}  // namespace quadriga
