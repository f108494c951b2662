// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/products_cuda.h: products whose kernel cuBLAS chooses once for each shape.
//
// cublasDgemm() chooses anew in each call, which costs the thread that queues about as much as the
// launch. A program by tiles calls it with few shapes, thousands of times each.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace quadriga::kernels::cuda {

/// All that the choice of a kernel depends on.
struct ProductShape {
  cudaDataType type = CUDA_R_64F;
  bool allows_tf32 = false;
  cublasOperation_t op_a = CUBLAS_OP_N;
  cublasOperation_t op_b = CUBLAS_OP_N;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::uint32_t align_a = 0, align_b = 0, align_c = 0;  ///< Of the addresses, in bytes.
  auto operator<=>(const ProductShape&) const = default;
};

/// The alignment of an address as far as kernels ask for it.
std::uint32_t alignment_of(const void* address) noexcept;

/// Those of one stream, with its workspace. Used by the thread that queues on the stream.
class PlannedProducts {
 public:
  PlannedProducts(cublasLtHandle_t handle, cudaStream_t stream, void* workspace, std::size_t bytes)
      : handle_(handle), stream_(stream), workspace_(workspace), bytes_(bytes) {}

  /// Queues C = alpha op(A) op(B) + beta C. False if cuBLAS knows no kernel for that here, or
  /// refuses it: then nothing was queued. Errors: as check() of a call that failed otherwise.
  bool multiply(const ProductShape& shape, const void* alpha, const void* a, const void* b,
                const void* beta, void* c);

 private:
  struct Free {
    void operator()(cublasLtMatmulDescOpaque_t* desc) const noexcept;
    void operator()(cublasLtMatrixLayoutOpaque_t* layout) const noexcept;
    void operator()(cublasLtMatmulPreferenceOpaque_t* preference) const noexcept;
  };
  using Desc = std::unique_ptr<cublasLtMatmulDescOpaque_t, Free>;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, Free>;
  using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, Free>;
  struct Plan {
    Desc desc;
    Layout a, b, c;
    cublasLtMatmulAlgo_t algorithm{};
    bool is_known = false;
  };
  Plan plan(const ProductShape& shape) const;
  static Layout layout(cudaDataType type, std::int64_t rows, std::int64_t cols, std::int64_t ld);

  cublasLtHandle_t handle_;
  cudaStream_t stream_;
  void* workspace_;
  std::size_t bytes_;
  std::map<ProductShape, Plan> plans_;
};

}  // namespace quadriga::kernels::cuda
