// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/cuda_variants_absent.cpp: stands in for CUDA's streams in builds without CUDA.
#include "linalg/kernels/cuda_variants.h"

namespace quadriga::kernels {

Kernel cuda_variant(const KernelSpec&, DType) { return {}; }

}  // namespace quadriga::kernels
