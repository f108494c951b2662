// SPDX-License-Identifier: BSD-3-Clause
// tests/gpu/library_test.cpp: CUDA's libraries are opened when they are called, and what they lack
// is said. No GPU is needed.
#include "linalg/kernels/library_cuda.h"

#include <gtest/gtest.h>
#include <quadriga/error.h>

#include <string>

#include "linalg/kernels/cuda_libraries.h"
#include "linalg/kernels/handles_cuda.h"

namespace quadriga::kernels {
namespace {

constinit auto version = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasGetCudartVersion);

std::string complaint(const SharedLibrary& library, const char* function) {
  try {
    cuda::find_function(library, function);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::unavailable);
    return error.what();
  }
  return "nothing";
}

TEST(CudaLibraries, AreCalledByTheirOwnNames) {
  for (const CudaLibrary& library : cuda_libraries())
    if (!library.absence.empty()) GTEST_SKIP() << library.name << ": " << library.absence;
  EXPECT_GE(version(), 13000u);
  EXPECT_THROW(cuda::check(CUBLAS_STATUS_ALLOC_FAILED, "a call"), Error);
  EXPECT_NE(cuda::cusolver_library().find("cusolverDnXpotrf"), nullptr);
  EXPECT_NE(complaint(cuda::cublas_library(), "cublasNothing").find("cublasNothing"),
            std::string::npos);
}

TEST(CudaLibraries, SayWhatIsMissing) {
  const std::string said = complaint(SharedLibrary("libnowhere.so.9"), "cublasCreate_v2");
  EXPECT_NE(said.find("libnowhere.so.9"), std::string::npos) << said;
  EXPECT_NE(said.find("quadriga[cuda]"), std::string::npos) << said;
}

}  // namespace
}  // namespace quadriga::kernels
