// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/products_cuda.cpp: asks cuBLAS's planning interface, and keeps the answers.
#include "linalg/kernels/products_cuda.h"

#include <algorithm>
#include <bit>

#include "linalg/kernels/handles_cuda.h"
#include "linalg/kernels/library_cuda.h"

namespace quadriga::kernels::cuda {
namespace {

constinit auto create_desc = QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatmulDescCreate);
constinit auto set_desc =
    QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatmulDescSetAttribute);
constinit auto destroy_desc =
    QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatmulDescDestroy);
constinit auto create_layout =
    QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatrixLayoutCreate);
constinit auto destroy_layout =
    QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatrixLayoutDestroy);
constinit auto create_preference =
    QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatmulPreferenceCreate);
constinit auto set_preference =
    QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatmulPreferenceSetAttribute);
constinit auto destroy_preference =
    QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatmulPreferenceDestroy);
constinit auto choose = QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatmulAlgoGetHeuristic);
constinit auto queue = QUADRIGA_LIBRARY_FUNCTION(cublaslt_library, cublasLtMatmul);

cublasComputeType_t arithmetic(cudaDataType type, bool allows_tf32) noexcept {
  if (type == CUDA_R_64F || type == CUDA_C_64F) return CUBLAS_COMPUTE_64F;
  return allows_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

}  // namespace

void PlannedProducts::Free::operator()(cublasLtMatmulDescOpaque_t* desc) const noexcept {
  destroy_desc(desc);
}
void PlannedProducts::Free::operator()(cublasLtMatrixLayoutOpaque_t* layout) const noexcept {
  destroy_layout(layout);
}
void PlannedProducts::Free::operator()(
    cublasLtMatmulPreferenceOpaque_t* preference) const noexcept {
  destroy_preference(preference);
}

std::uint32_t alignment_of(const void* address) noexcept {
  constexpr std::uintptr_t most = 256;  // of allocations
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::uint32_t>(std::min(most, number & (~number + 1)));
}

bool PlannedProducts::multiply(const ProductShape& shape, const void* alpha, const void* a,
                               const void* b, const void* beta, void* c) {
  // Programs have few shapes; of one that has thousands some are planned anew.
  constexpr std::size_t most = 512;
  auto found = plans_.find(shape);
  if (found == plans_.end()) {
    if (plans_.size() == most) plans_.erase(plans_.begin());
    found = plans_.emplace(shape, plan(shape)).first;
  }
  const Plan& plan = found->second;
  if (!plan.is_known) return false;
  const cublasStatus_t status =
      queue(handle_, plan.desc.get(), alpha, a, plan.a.get(), b, plan.b.get(), beta, c,
            plan.c.get(), c, plan.c.get(), &plan.algorithm, workspace_, bytes_, stream_);
  // What is refused was not begun; after other failures C may be half computed.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return false;
  check(status, "gemm");
  return true;
}

/// Not known if any call fails: the product is then computed without a plan.
PlannedProducts::Plan PlannedProducts::plan(const ProductShape& shape) const {
  Plan made;
  cublasLtMatmulDesc_t desc = nullptr;
  if (create_desc(&desc, arithmetic(shape.type, shape.allows_tf32), shape.type)) return made;
  made.desc.reset(desc);
  const bool whole_a = shape.op_a == CUBLAS_OP_N;
  const bool whole_b = shape.op_b == CUBLAS_OP_N;
  made.a = layout(shape.type, whole_a ? shape.m : shape.k, whole_a ? shape.k : shape.m, shape.lda);
  made.b = layout(shape.type, whole_b ? shape.k : shape.n, whole_b ? shape.n : shape.k, shape.ldb);
  made.c = layout(shape.type, shape.m, shape.n, shape.ldc);
  cublasLtMatmulPreference_t asked = nullptr;
  if (create_preference(&asked)) return made;
  const Preference preference(asked);
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const auto set = [&](auto function, auto* object, auto name, auto value) {
    if (status == CUBLAS_STATUS_SUCCESS) status = (*function)(object, name, &value, sizeof(value));
  };
  set(&set_desc, desc, CUBLASLT_MATMUL_DESC_TRANSA, shape.op_a);
  set(&set_desc, desc, CUBLASLT_MATMUL_DESC_TRANSB, shape.op_b);
  set(&set_preference, asked, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes_);
  set(&set_preference, asked, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.align_a);
  set(&set_preference, asked, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.align_b);
  set(&set_preference, asked, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.align_c);
  set(&set_preference, asked, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.align_c);
  if (status != CUBLAS_STATUS_SUCCESS || !made.a || !made.b || !made.c) return made;
  cublasLtMatmulHeuristicResult_t best{};
  int count = 0;
  if (choose(handle_, desc, made.a.get(), made.b.get(), made.c.get(), made.c.get(), asked, 1, &best,
             &count) ||
      count == 0 || best.state != CUBLAS_STATUS_SUCCESS)
    return made;
  made.algorithm = best.algo;
  made.is_known = true;
  return made;
}

PlannedProducts::Layout PlannedProducts::layout(cudaDataType type, std::int64_t rows,
                                                std::int64_t cols, std::int64_t ld) {
  cublasLtMatrixLayout_t made = nullptr;
  const cublasStatus_t status = create_layout(&made, type, static_cast<std::uint64_t>(rows),
                                              static_cast<std::uint64_t>(cols), ld);
  return Layout(status == CUBLAS_STATUS_SUCCESS ? made : nullptr);
}

}  // namespace quadriga::kernels::cuda
