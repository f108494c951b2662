// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/cuda_libraries_absent.cpp: stands in for CUDA's libraries in builds without.
#include "linalg/kernels/cuda_libraries.h"

namespace quadriga::kernels {

std::vector<CudaLibrary> cuda_libraries() { return {}; }

}  // namespace quadriga::kernels
