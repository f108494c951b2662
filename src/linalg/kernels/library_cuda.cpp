// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/library_cuda.cpp: opens cuBLAS and cuSOLVER, and says what is missing.
#include "linalg/kernels/library_cuda.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include "linalg/kernels/cuda_libraries.h"

namespace quadriga::kernels {
namespace cuda {

const SharedLibrary& cublas_library() {
  static const SharedLibrary library("libcublas.so." QUADRIGA_TEXT(CUBLAS_VER_MAJOR));
  return library;
}

// A part of cuBLAS, and of its version.
const SharedLibrary& cublaslt_library() {
  static const SharedLibrary library("libcublasLt.so." QUADRIGA_TEXT(CUBLAS_VER_MAJOR));
  return library;
}

const SharedLibrary& cusolver_library() {
  static const SharedLibrary library("libcusolver.so." QUADRIGA_TEXT(CUSOLVER_VER_MAJOR));
  return library;
}

void* find_function(const SharedLibrary& library, const char* name) {
  void* const found = library.find(name);
  if (found) return found;
  if (library.absence().empty())
    fail(Errc::unavailable, fmt::format("CUDA's library has no function {}", name));
  fail(Errc::unavailable,
       fmt::format("computing on a GPU needs CUDA's libraries: {}; expected them where the loader "
                   "looks, or from pip install 'quadriga[cuda]'",
                   library.absence()));
}

}  // namespace cuda

std::vector<CudaLibrary> cuda_libraries() {
  return {{"cuBLAS", cuda::cublas_library().absence()},
          {"cuSOLVER", cuda::cusolver_library().absence()}};
}

}  // namespace quadriga::kernels
