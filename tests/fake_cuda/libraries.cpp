// SPDX-License-Identifier: BSD-3-Clause
// tests/fake_cuda/libraries.cpp: handles of cuBLAS and cuSOLVER that take device memory and do
// nothing; where there is none they report what NVIDIA's do.
#include <cuda_runtime_api.h>

#include <cstring>
#include <map>
#include <string_view>

#include "linalg/kernels/library_cuda.h"

namespace quadriga::kernels::cuda {
namespace {

constexpr std::size_t bytes_a_handle = std::size_t{8} << 20;

template <class Handle>
bool make(Handle* handle) {
  void* block = nullptr;
  if (cudaMalloc(&block, bytes_a_handle) != cudaSuccess) return false;
  *handle = static_cast<Handle>(block);
  return true;
}

cublasStatus_t make_blas(cublasHandle_t* handle) {
  return make(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t destroy_blas(cublasHandle_t handle) {
  return cudaFree(handle), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_blas_stream(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t set_blas_workspace(cublasHandle_t, void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t set_blas_math(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
const char* blas_status(cublasStatus_t) { return "an error"; }

cusolverStatus_t make_solver(cusolverDnHandle_t* handle) {
  return make(handle) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INTERNAL_ERROR;
}
cusolverStatus_t destroy_solver(cusolverDnHandle_t handle) {
  return cudaFree(handle), CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t set_solver_stream(cusolverDnHandle_t, cudaStream_t) {
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t make_params(cusolverDnParams_t* params) {
  return make(params) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}
cusolverStatus_t destroy_params(cusolverDnParams_t params) {
  return cudaFree(params), CUSOLVER_STATUS_SUCCESS;
}

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

const SharedLibrary& cublas_library() {
  static const SharedLibrary none("no library");
  return none;
}
const SharedLibrary& cublaslt_library() { return cublas_library(); }
const SharedLibrary& cusolver_library() { return cublas_library(); }

void* find_function(const SharedLibrary&, const char* name) {
  static const std::map<std::string_view, void*> functions{
      {QUADRIGA_TEXT(cublasCreate), address(make_blas)},
      {QUADRIGA_TEXT(cublasDestroy), address(destroy_blas)},
      {QUADRIGA_TEXT(cublasSetStream), address(set_blas_stream)},
      {QUADRIGA_TEXT(cublasSetWorkspace), address(set_blas_workspace)},
      {QUADRIGA_TEXT(cublasSetMathMode), address(set_blas_math)},
      {QUADRIGA_TEXT(cublasGetStatusString), address(blas_status)},
      {"cusolverDnCreate", address(make_solver)},
      {"cusolverDnDestroy", address(destroy_solver)},
      {"cusolverDnSetStream", address(set_solver_stream)},
      {"cusolverDnCreateParams", address(make_params)},
      {"cusolverDnDestroyParams", address(destroy_params)},
  };
  return functions.at(name);
}

}  // namespace quadriga::kernels::cuda
