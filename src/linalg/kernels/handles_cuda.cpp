// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/handles_cuda.cpp: makes handles and workspaces, and lets go of them.
#include "linalg/kernels/handles_cuda.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include "base/units.h"
#include "device/cuda/cuda_check.h"
#include "device/cuda/stream_local.h"
#include "device/device_full.h"
#include "linalg/kernels/library_cuda.h"
#include "linalg/kernels/products_cuda.h"

namespace quadriga::kernels::cuda {
namespace {

using quadriga::cuda::check;

// What cuBLAS recommends for devices of compute capability 9; more than older ones ask for.
constexpr std::size_t blas_workspace_bytes = std::size_t{32} << 20;
constexpr std::size_t words_a_block = 1024;

constinit auto blas_status = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasGetStatusString);
constinit auto create_blas = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCreate);
constinit auto set_blas_stream = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasSetStream);
constinit auto set_blas_workspace = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasSetWorkspace);
constinit auto set_blas_math = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasSetMathMode);
constinit auto destroy_blas = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDestroy);
constinit auto create_solver_params =
    QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnCreateParams);
constinit auto destroy_solver_params =
    QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnDestroyParams);
constinit auto create_solver = QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnCreate);
constinit auto set_solver_stream = QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnSetStream);
constinit auto destroy_solver = QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnDestroy);

struct MemoryLeft {
  int ordinal = 0;
  std::size_t free = 0;
  std::size_t total = 0;
};

MemoryLeft memory_left() noexcept {
  MemoryLeft left;
  if (cudaGetDevice(&left.ordinal) != cudaSuccess ||
      cudaMemGetInfo(&left.free, &left.total) != cudaSuccess)
    cudaGetLastError();
  return left;
}

/// Others may have taken what an engine leaves free of a device for libraries.
std::string in_words(const MemoryLeft& left) {
  return fmt::format(
      "{} free of CUDA device {}'s {}; an engine can be told to take less of it, as in "
      "devices=\"cuda,memory=8GiB\"",
      format_bytes(static_cast<double>(left.free)), left.ordinal,
      format_bytes(static_cast<double>(left.total)));
}

[[noreturn]] void fail_full(std::size_t bytes, std::string_view what) {
  static_cast<void>(cudaGetLastError());  // it would fail the next launch
  throw DeviceFull(fmt::format("no device memory for {}: {} wanted, {}", what,
                               format_bytes(static_cast<double>(bytes)), in_words(memory_left())));
}

/// A library could not make what it keeps on a device. It doesn't say how much memory it wanted,
/// and reports that there is none in several ways, some as errors of its own: without as much as
/// cuBLAS's workspace left, that is why.
[[noreturn]] void fail_making(std::string_view what, bool lacks_memory, std::string_view why) {
  const MemoryLeft left = memory_left();
  static_cast<void>(cudaGetLastError());  // it would fail the next launch
  lacks_memory |= left.free < blas_workspace_bytes;
  const std::string message =
      fmt::format("{} {} ({}): it needs more than the {}",
                  lacks_memory ? "no device memory for" : "can't make", what, why, in_words(left));
  if (lacks_memory) throw DeviceFull(message);
  fail(Errc::task_failed, message);
}

std::string_view name(cusolverStatus_t status) noexcept {
  switch (status) {
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return "not initialized";
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return "an allocation failed";
    case CUSOLVER_STATUS_INVALID_VALUE:
      return "an invalid value";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
      return "not for devices of this architecture";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
      return "a kernel failed";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
      return "an internal error";
    default:
      return "an error";
  }
}

std::string in_words(cusolverStatus_t status) {
  return fmt::format("cuSOLVER reports {}", name(status));
}

void made(cublasStatus_t status, std::string_view what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail_making(what, status == CUBLAS_STATUS_ALLOC_FAILED,
                fmt::format("cuBLAS reports {}", blas_status(status)));
}

void made(cusolverStatus_t status, std::string_view what) {
  if (status != CUSOLVER_STATUS_SUCCESS)
    fail_making(what, status == CUSOLVER_STATUS_ALLOC_FAILED, in_words(status));
}

}  // namespace

void check(cublasStatus_t status, std::string_view call, std::source_location where) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    fail_making(fmt::format("cuBLAS's {}", call), true, blas_status(status));
  fail(Errc::task_failed, fmt::format("cuBLAS: {}: {}", call, blas_status(status)), where);
}

void check(cusolverStatus_t status, std::string_view call, std::source_location where) {
  if (status == CUSOLVER_STATUS_SUCCESS) [[likely]]
    return;
  if (status == CUSOLVER_STATUS_ALLOC_FAILED)
    fail_making(fmt::format("cuSOLVER's {}", call), true, in_words(status));
  fail(Errc::task_failed, fmt::format("{}: {}", call, in_words(status)), where);
}

Words::Words() = default;

Words::~Words() {
  for (int* const block : blocks_) cudaFreeHost(block);
}

int* Words::take() {
  if (unused_.empty()) {
    void* block = nullptr;
    check(cudaHostAlloc(&block, words_a_block * sizeof(int), cudaHostAllocPortable),
          "allocating words for results");
    blocks_.push_back(static_cast<int*>(block));
    for (std::size_t i = 0; i < words_a_block; ++i) unused_.push_back(blocks_.back() + i);
  }
  int* const word = unused_.back();
  unused_.pop_back();
  return word;
}

Handles::Handles(cudaStream_t stream) : stream_(stream) {
  try {
    open();
  } catch (...) {
    close();  // the next task tries again
    throw;
  }
}

Handles::~Handles() { close(); }

void Handles::open() {
  made(create_blas(&blas_), "a handle of cuBLAS");
  check(set_blas_stream(blas_, stream_), "setting the stream");
  const cudaError_t status = cudaMalloc(&blas_workspace_, blas_workspace_bytes);
  if (status == cudaErrorMemoryAllocation)
    fail_full(blas_workspace_bytes, "the workspace of cuBLAS");
  check(status, "allocating the workspace of cuBLAS");
  check(set_blas_workspace(blas_, blas_workspace_, blas_workspace_bytes), "setting the workspace");
  // A handle of cuBLAS is one of its planning interface as well.
  products_ = std::make_unique<PlannedProducts>(reinterpret_cast<cublasLtHandle_t>(blas_), stream_,
                                                blas_workspace_, blas_workspace_bytes);
}

void Handles::close() noexcept {
  products_.reset();
  if (solver_params_) destroy_solver_params(solver_params_);
  if (solver_) destroy_solver(solver_);
  if (blas_) destroy_blas(blas_);
  cudaFree(scratch_);
  cudaFree(blas_workspace_);
}

cublasHandle_t Handles::blas(bool allow_tf32) {
  if (allow_tf32 != allows_tf32_) {
    check(set_blas_math(blas_, allow_tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH),
          "setting the arithmetic of float32");
    allows_tf32_ = allow_tf32;
  }
  return blas_;
}

cusolverDnHandle_t Handles::solver() {
  if (!solver_params_) {
    if (!solver_) made(create_solver(&solver_), "a handle of cuSOLVER");
    check(set_solver_stream(solver_, stream_), "setting the stream");
    made(create_solver_params(&solver_params_), "cuSOLVER's parameters");
  }
  return solver_;
}

void* Handles::scratch(std::size_t bytes) {
  void* const memory = try_scratch(bytes);
  if (!memory) fail_full(bytes, "the workspace of a kernel");
  return memory;
}

void* Handles::solver_scratch(std::size_t bytes) {
  return bytes <= blas_workspace_bytes ? blas_workspace_ : scratch(bytes);
}

void* Handles::try_scratch(std::size_t bytes) {
  if (bytes <= scratch_bytes_) return scratch_;
  void* larger = nullptr;
  const cudaError_t status = cudaMallocAsync(&larger, bytes, stream_);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // it would fail the next launch
    return nullptr;
  }
  check(status, "allocating a workspace");
  if (scratch_) check(cudaFreeAsync(scratch_, stream_), "freeing a workspace");
  scratch_ = larger;
  scratch_bytes_ = bytes;
  return scratch_;
}

void* Handles::host_scratch(std::size_t bytes) {
  if (bytes > host_scratch_.size()) host_scratch_.resize(bytes);
  return host_scratch_.data();
}

std::shared_ptr<Handles> handles_of(const Arguments& arguments) {
  require(arguments.stream != nullptr, "a CUDA variant needs a stream");
  std::shared_ptr<void>& place = quadriga::cuda::stream_local(arguments.stream);
  if (!place) place = std::make_shared<Handles>(static_cast<cudaStream_t>(arguments.stream));
  return std::static_pointer_cast<Handles>(place);
}

void prepare(const Arguments& arguments) { static_cast<void>(handles_of(arguments)->solver()); }

}  // namespace quadriga::kernels::cuda
