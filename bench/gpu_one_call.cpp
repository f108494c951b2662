// SPDX-License-Identifier: BSD-3-Clause
// bench/gpu_one_call.cpp: what a program does that knows no tiles: copy, call, copy.
#include <cuda_runtime_api.h>

#include "device/cuda/copies.h"
#include "device/cuda/cuda_check.h"
#include "gpu.h"
#include "gpu_buffer.h"
#include "linalg/kernels/handles_cuda.h"

namespace quadriga::bench {
namespace {

using cuda::check;
using kernels::cuda::check;

std::size_t bytes_of(const HostMatrix& matrix) {
  return static_cast<std::size_t>(matrix.order() * matrix.order()) * sizeof(double);
}

void bring(const HostMatrix& from, const DeviceBuffer& to, cudaStream_t stream) {
  check(cudaMemcpyAsync(to.data(), from.data(), bytes_of(from), cudaMemcpyHostToDevice, stream),
        "a copy in");
}

void take_home(const DeviceBuffer& from, const HostMatrix& to, cudaStream_t stream) {
  check(cudaMemcpyAsync(to.data(), from.data(), bytes_of(to), cudaMemcpyDeviceToHost, stream),
        "a copy out");
  check(cudaStreamSynchronize(stream), "a call and its copies");
}

cudaStream_t new_stream() {
  check(cudaSetDevice(0), "choosing a device");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
  return stream;
}

}  // namespace

double plain_peer_copy(std::size_t bytes, int repeat) {
  cuda::enable_peer_access({0, 1});
  const cudaStream_t stream = new_stream();
  const DeviceBuffer source(bytes);
  check(cudaSetDevice(1), "choosing a device");
  const DeviceBuffer target(bytes);
  check(cudaSetDevice(0), "choosing a device");
  const double begin = now();
  for (int i = 0; i < repeat; ++i)
    check(cudaMemcpyPeerAsync(target.data(), 1, source.data(), 0, bytes, stream), "a copy");
  check(cudaStreamSynchronize(stream), "a copy");
  const double seconds = (now() - begin) / repeat;
  cudaStreamDestroy(stream);
  return seconds;
}

double one_call_gemm(const HostMatrix& a, const HostMatrix& b, const HostMatrix& c, int repeat) {
  const cudaStream_t stream = new_stream();
  const DeviceBuffer da(bytes_of(a));
  const DeviceBuffer db(bytes_of(b));
  const DeviceBuffer dc(bytes_of(c));
  cublasHandle_t handle = nullptr;
  check(cublasCreate(&handle), "making a handle");
  check(cublasSetStream(handle, stream), "setting the stream");
  const double one = 1;
  const double zero = 0;
  const auto n = static_cast<int>(a.order());
  const double best = best_of(
      repeat + 1, [] {},
      [&] {
        bring(a, da, stream);
        bring(b, db, stream);
        check(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, da.doubles(), n,
                          db.doubles(), n, &zero, dc.doubles(), n),
              "gemm");
        take_home(dc, c, stream);
      });
  cublasDestroy(handle);
  cudaStreamDestroy(stream);
  return best;
}

double one_call_potrf(const HostMatrix& a, const HostMatrix& c, int repeat) {
  const cudaStream_t stream = new_stream();
  const DeviceBuffer factor(bytes_of(a));
  cusolverDnHandle_t handle = nullptr;
  check(cusolverDnCreate(&handle), "making a handle");
  check(cusolverDnSetStream(handle, stream), "setting the stream");
  const auto n = static_cast<int>(a.order());
  int elements = 0;
  check(cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, n, factor.doubles(), n,
                                    &elements),
        "asking for potrf's workspace");
  const DeviceBuffer work(static_cast<std::size_t>(elements) * sizeof(double));
  const DeviceBuffer info(sizeof(int));
  const double best = best_of(
      repeat + 1, [] {},
      [&] {
        bring(a, factor, stream);
        check(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, n, factor.doubles(), n,
                               work.doubles(), elements, static_cast<int*>(info.data())),
              "potrf");
        take_home(factor, c, stream);
      });
  cusolverDnDestroy(handle);
  cudaStreamDestroy(stream);
  return best;
}

}  // namespace quadriga::bench
