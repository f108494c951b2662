// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/cuda_variants.h: a kernel's variant for streams on CUDA's.
#pragma once

#include "linalg/kernels/kernel_spec.h"

namespace quadriga::kernels {

/// The CUDA variant of a kernel's codelet for a type. Empty in builds without CUDA.
Kernel cuda_variant(const KernelSpec& spec, DType type);

}  // namespace quadriga::kernels
