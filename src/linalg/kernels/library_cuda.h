// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/library_cuda.h: functions of cuBLAS and cuSOLVER, which aren't linked to.
//
// They are hundreds of megabytes and absent where there is no GPU: a program with the
// CUDA part starts without them, and opens them when a tile is first computed on a
// GPU (docs/decisions/0030-the-package-and-cuda.md).
#pragma once

#include "base/shared_library.h"

#include <cublas_v2.h>
#include <cusolverDn.h>

#include <atomic>

namespace quadriga::kernels::cuda {

/// Opened at the first call; thread-safe.
const SharedLibrary& cublas_library();
const SharedLibrary& cublaslt_library();
const SharedLibrary& cusolver_library();

/// A function's address.
///
/// Errors:  unavailable naming what is missing, and where to get it.
void* find_function(const SharedLibrary& library, const char* name);

template <class Pointer>
class LibraryFunction;

/// Called as the function itself; looked for at the first call.
template <class Result, class... Parameters>
class LibraryFunction<Result (*)(Parameters...)> {
 public:
  using Library = const SharedLibrary& (*)();
  constexpr LibraryFunction(Library library, const char* name) noexcept
      : library_(library), name_(name) {}

  Result operator()(Parameters... parameters) {
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) [[unlikely]] {
      found = find_function(library_(), name_);
      found_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Result (*)(Parameters...)>(found)(parameters...);
  }

 private:
  Library library_;
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

}  // namespace quadriga::kernels::cuda

#define QUADRIGA_TEXT_OF(name) #name
#define QUADRIGA_TEXT(name) QUADRIGA_TEXT_OF(name)
/// One word for type and name, for the headers rename functions by macros.
#define QUADRIGA_LIBRARY_FUNCTION(library, function)                                              \
  quadriga::kernels::cuda::LibraryFunction<decltype(&function)>(quadriga::kernels::cuda::library, \
                                                                QUADRIGA_TEXT(function))
