// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_references.cpp: what CUDA's own libraries need for the same work.
#include <cublasXt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <thread>

#include "device/cuda/cuda_check.h"
#include "gpu.h"
#include "gpu_buffer.h"
#include "linalg/kernels/elements_cuda.h"
#include "linalg/kernels/handles_cuda.h"

namespace quadriga::bench {
namespace {

using cuda::check;
using kernels::cuda::check;

/// Flops of products on one device until `seconds` have passed.
double multiply_for(int device, int tile, double seconds) {
  check(cudaSetDevice(device), "choosing a device");
  const std::size_t bytes = static_cast<std::size_t>(tile) * tile * sizeof(double);
  const DeviceBuffer a(bytes);
  const DeviceBuffer b(bytes);
  const DeviceBuffer c(bytes);
  for (const DeviceBuffer* each : {&a, &b, &c})
    fill_on_device(each->doubles(), tile, tile, 0, false);
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "making a handle");
  const double one = 1;
  const auto multiply = [&] {
    check(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, tile, tile, tile, &one, a.doubles(), tile,
                      b.doubles(), tile, &one, c.doubles(), tile),
          "gemm");
  };
  multiply();
  check(cudaDeviceSynchronize(), "a product");
  const double begin = now();
  double flops = 0;
  while (now() - begin < seconds) {
    for (int i = 0; i < 4; ++i) multiply();
    flops += 8.0 * tile * tile * tile;
    check(cudaDeviceSynchronize(), "a product");
  }
  const double rate = flops / (now() - begin);
  cublasDestroy(handle);
  return rate;
}

}  // namespace

double resident_gemm(int gpus, int tile, double seconds) {
  std::vector<double> rates(static_cast<std::size_t>(gpus));
  {
    std::vector<std::jthread> threads;
    for (int device = 0; device < gpus; ++device)
      threads.emplace_back([&, device] {
        rates[static_cast<std::size_t>(device)] = multiply_for(device, tile, seconds);
      });
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

double xt_gemm(int gpus, int block, const HostMatrix& a, const HostMatrix& b, const HostMatrix& c,
               int repeat) {
  cublasXtHandle_t handle = nullptr;
  check(cublasXtCreate(&handle), "making a handle of cuBLASXt");
  std::vector<int> devices(static_cast<std::size_t>(gpus));
  std::iota(devices.begin(), devices.end(), 0);
  check(cublasXtDeviceSelect(handle, gpus, devices.data()), "choosing devices of cuBLASXt");
  check(cublasXtSetBlockDim(handle, block), "choosing cuBLASXt's block");
  const double one = 1;
  const double zero = 0;
  const auto n = static_cast<std::size_t>(a.order());
  const double seconds = best_of(
      repeat + 1, [] {},
      [&] {
        check(cublasXtDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.data(), n, b.data(),
                            n, &zero, c.data(), n),
              "a product by cuBLASXt");
      });
  cublasXtDestroy(handle);
  return seconds;
}

double resident_potrf(std::int64_t order, int repeat) {
  check(cudaSetDevice(0), "choosing a device");
  cusolverDnHandle_t handle = nullptr;
  cusolverDnParams_t params = nullptr;
  check(cusolverDnCreate(&handle), "making a handle");
  check(cusolverDnCreateParams(&params), "making parameters");
  const auto n = static_cast<int>(order);
  const DeviceBuffer a(static_cast<std::size_t>(order * order) * sizeof(double));
  std::size_t bytes = 0;
  std::size_t host_bytes = 0;
  check(cusolverDnXpotrf_bufferSize(handle, params, CUBLAS_FILL_MODE_LOWER, order, CUDA_R_64F,
                                    a.data(), order, CUDA_R_64F, &bytes, &host_bytes),
        "asking for potrf's workspace");
  const DeviceBuffer work(bytes + sizeof(int));
  std::vector<std::byte> host_work(host_bytes);
  const DeviceBuffer info(sizeof(int));
  const auto prepare = [&] {
    fill_on_device(a.doubles(), n, n, 0, true);
    check(cudaDeviceSynchronize(), "filling a matrix");
  };
  const double best = best_of(repeat + 1, prepare, [&] {
    check(cusolverDnXpotrf(handle, params, CUBLAS_FILL_MODE_LOWER, order, CUDA_R_64F, a.data(),
                           order, CUDA_R_64F, work.data(), bytes, host_work.data(), host_bytes,
                           static_cast<int*>(info.data())),
          "potrf");
    check(cudaDeviceSynchronize(), "potrf");
  });
  cusolverDnDestroyParams(params);
  cusolverDnDestroy(handle);
  return best;
}

double plain_copy(bool in, std::size_t bytes, int repeat) {
  check(cudaSetDevice(0), "choosing a device");
  const DeviceBuffer device(bytes);
  void* host = nullptr;
  check(cudaHostAlloc(&host, bytes, cudaHostAllocPortable), "allocating pinned memory");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  const double begin = now();
  for (int i = 0; i < repeat; ++i)
    check(in ? cudaMemcpyAsync(device.data(), host, bytes, cudaMemcpyHostToDevice, stream)
             : cudaMemcpyAsync(host, device.data(), bytes, cudaMemcpyDeviceToHost, stream),
          "a copy");
  check(cudaStreamSynchronize(stream), "a copy");
  const double seconds = (now() - begin) / repeat;
  cudaStreamDestroy(stream);
  cudaFreeHost(host);
  return seconds;
}

double bare_launch(int count) {
  check(cudaSetDevice(0), "choosing a device");
  const DeviceBuffer one(sizeof(double));
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  const auto launch = [&] { kernels::cuda::scale<double>(stream, 1.5, {one.doubles(), 1, 1, 1}); };
  launch();
  check(cudaStreamSynchronize(stream), "a kernel");
  const double begin = now();
  for (int i = 0; i < count; ++i) launch();
  check(cudaStreamSynchronize(stream), "a kernel");
  const double seconds = now() - begin;
  cudaStreamDestroy(stream);
  return seconds / count * 1e9;
}

}  // namespace quadriga::bench
