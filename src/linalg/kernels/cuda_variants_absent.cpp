// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/cuda_variants_absent.cpp: stands in for the CUDA kernels in builds without
// CUDA.
#include "linalg/kernels/cuda_variants.h"

namespace quadriga::kernels {

Kernel cuda_variant(std::string_view, DType) { return {}; }

}  // namespace quadriga::kernels
