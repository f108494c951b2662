// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/cuda_libraries.h: which of CUDA's libraries the CUDA part of this build finds.
#pragma once

#include <string>
#include <vector>

namespace quadriga::kernels {

struct CudaLibrary {
  std::string name;
  std::string absence;  ///< Empty if it is there.
};

/// Those that products and factorizations on GPUs need, opened now; none in a build without CUDA.
std::vector<CudaLibrary> cuda_libraries();

}  // namespace quadriga::kernels
