// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/cuda_variants.h: which codelets have a CUDA variant.
#pragma once

#include <quadriga/codelet.h>

#include <string_view>

namespace quadriga::kernels {

/// The CUDA variant of a family's codelet for a type: "gemm", DType::float64. Empty if there is
/// none, as in builds without CUDA.
Kernel cuda_variant(std::string_view family, DType type);

}  // namespace quadriga::kernels
