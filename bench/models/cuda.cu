// SPDX-License-Identifier: BSD-3-Clause
// bench/models/cuda.cu: conjugate gradients by CUDA.
// Two streams per device, joined by events. p goes by way of the host (pinned or pageable memory),
// or from device to device, with peer access or without.
#include <cuda_runtime.h>

#include <numeric>

#include "model.h"

namespace {

using namespace models;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s failed: %s\n", what, cudaGetErrorString(status));
  std::exit(status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver ? 3 : 1);
}

constexpr int threads = 256;
constexpr int sum_blocks = 256;

__global__ void multiply(int rows, bool adds, const int* lengths, const int* columns,
                         const double* values, const double* p, double* q) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= rows) return;
  double sum = adds ? q[i] : 0;
  const int length = lengths[i];
  for (int j = 0; j < length; ++j) {
    const std::size_t at = static_cast<std::size_t>(j) * rows + i;
    sum += values[at] * p[columns[at]];
  }
  q[i] = sum;
}

__global__ void add_step(int rows, double alpha, double* x, double* r, const double* p,
                         const double* q) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i >= rows) return;
  x[i] += alpha * p[i];
  r[i] -= alpha * q[i];
}

__global__ void turn_direction(int rows, double beta, const double* r, double* p) {
  const int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x);
  if (i < rows) p[i] = r[i] + beta * p[i];
}

__global__ void dot_parts(int rows, const double* one, const double* other, double* sums) {
  __shared__ double all[threads];
  double sum = 0;
  for (int i = static_cast<int>(blockIdx.x) * threads + static_cast<int>(threadIdx.x); i < rows;
       i += threads * sum_blocks)
    sum += one[i] * other[i];
  all[threadIdx.x] = sum;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) all[threadIdx.x] += all[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = all[0];
}

int blocks_for(int rows) { return (rows + threads - 1) / threads; }

/// Arrays, streams and events of one half.
struct OnDevice {
  int device = 0;
  int rows = 0;
  struct Matrix {
    int *lengths = nullptr, *columns = nullptr;
    double* values = nullptr;
  } local, remote;
  double *x = nullptr, *r = nullptr, *p = nullptr, *q = nullptr, *other_p = nullptr;
  double* sums = nullptr;
  double* staged = nullptr;  ///< On the host: the half of p on its way.
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t made = nullptr;  ///< This half of p,
  cudaEvent_t came = nullptr;  ///< the other half on the host,
  cudaEvent_t here = nullptr;  ///< and on this device,
  cudaEvent_t used = nullptr;  ///< and that a product has read it.
};

template <class T>
T* put(const std::vector<T>& from) {
  T* to = nullptr;
  check(cudaMalloc(&to, (from.size() + 1) * sizeof(T)), "an allocation");
  check(cudaMemcpy(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice), "a copy");
  return to;
}

class Cuda {
 public:
  Cuda(const std::vector<Half>& halves, const Options& options)
      : goes_by_host_(options.exchange == "host" || options.exchange == "pageable"),
        on_(halves.size()) {
    check(cudaGetDeviceCount(&devices_), "looking for devices");
    for (std::size_t d = 0; d < halves.size(); ++d) {
      on_[d].device = static_cast<int>(d) % devices_;
      const Half& half = halves[d];
      OnDevice& on = select(static_cast<int>(d));
      on.rows = half.rows;
      on.local = {put(half.local.lengths), put(half.local.columns), put(half.local.values)};
      on.remote = {put(half.remote.lengths), put(half.remote.columns), put(half.remote.values)};
      const std::vector<double> zeros(static_cast<std::size_t>(half.rows));
      const std::vector<double> others(static_cast<std::size_t>(half.other_rows));
      for (double** each : {&on.x, &on.r, &on.p, &on.q}) *each = put(zeros);
      on.other_p = put(others);
      on.sums = put(std::vector<double>(sum_blocks));
      if (options.exchange == "pageable")
        on.staged = static_cast<double*>(std::malloc((others.size() + 1) * sizeof(double)));
      else
        check(cudaMallocHost(&on.staged, (others.size() + 1) * sizeof(double)), "pinned memory");
      for (cudaStream_t* each : {&on.first, &on.second})
        check(cudaStreamCreateWithFlags(each, cudaStreamNonBlocking), "a stream");
      for (cudaEvent_t* each : {&on.made, &on.came, &on.here, &on.used})
        check(cudaEventCreateWithFlags(each, cudaEventDisableTiming), "an event");
      if (options.exchange == "peer" && devices_ > 1)
        check(cudaDeviceEnablePeerAccess((on.device + 1) % devices_, 0), "peer access");
    }
  }

  std::string where() const {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "the name of a device");
    return std::to_string(devices_) + " x " + properties.name;
  }

  void set_vectors(int d, const double* x, const double* r, const double* p) {
    OnDevice& on = select(d);
    const std::size_t bytes = static_cast<std::size_t>(on.rows) * sizeof(double);
    check(cudaMemcpy(on.x, x, bytes, cudaMemcpyHostToDevice), "a copy");
    check(cudaMemcpy(on.r, r, bytes, cudaMemcpyHostToDevice), "a copy");
    check(cudaMemcpy(on.p, p, bytes, cudaMemcpyHostToDevice), "a copy");
    check(cudaEventRecord(on.made, on.first), "an event");
    check(cudaEventRecord(on.used, on.first), "an event");
  }

  void send(int d) {
    if (!goes_by_host_) return;
    OnDevice& from = select(d);
    OnDevice& to = on_[static_cast<std::size_t>(1 - d)];
    const std::size_t bytes = static_cast<std::size_t>(from.rows) * sizeof(double);
    check(cudaStreamWaitEvent(from.second, from.made, 0), "a wait");
    // What was staged last has left the host.
    check(cudaStreamWaitEvent(from.second, to.here, 0), "a wait");
    check(cudaMemcpyAsync(to.staged, from.p, bytes, cudaMemcpyDeviceToHost, from.second),
          "a copy to the host");
    check(cudaEventRecord(from.came, from.second), "an event");
  }
  void fetch(int d) {
    OnDevice& from = on_[static_cast<std::size_t>(1 - d)];
    OnDevice& to = select(d);
    const std::size_t bytes = static_cast<std::size_t>(from.rows) * sizeof(double);
    check(cudaStreamWaitEvent(to.second, goes_by_host_ ? from.came : from.made, 0), "a wait");
    check(cudaStreamWaitEvent(to.second, to.used, 0), "a wait");
    if (goes_by_host_)
      check(cudaMemcpyAsync(to.other_p, to.staged, bytes, cudaMemcpyHostToDevice, to.second),
            "a copy to a device");
    else
      check(cudaMemcpyPeerAsync(to.other_p, to.device, from.p, from.device, bytes, to.second),
            "a copy between devices");
    check(cudaEventRecord(to.here, to.second), "an event");
  }

  void multiply_local(int d) {
    OnDevice& on = select(d);
    launch(on, on.local, on.p, false);
  }
  void multiply_remote(int d) {
    OnDevice& on = select(d);
    check(cudaStreamWaitEvent(on.first, on.here, 0), "a wait");
    launch(on, on.remote, on.other_p, true);
    check(cudaEventRecord(on.used, on.first), "an event");
  }
  void step(int d, double alpha) {
    OnDevice& on = select(d);
    add_step<<<blocks_for(on.rows), threads, 0, on.first>>>(on.rows, alpha, on.x, on.r, on.p, on.q);
    check(cudaGetLastError(), "a step");
  }
  /// Waits until the other device has read p, too.
  void turn(int d, double beta) {
    OnDevice& on = select(d);
    if (on_.size() == 2)
      check(cudaStreamWaitEvent(on.first, on_[static_cast<std::size_t>(1 - d)].here, 0), "a wait");
    turn_direction<<<blocks_for(on.rows), threads, 0, on.first>>>(on.rows, beta, on.r, on.p);
    check(cudaGetLastError(), "a direction");
    check(cudaEventRecord(on.made, on.first), "an event");
  }
  double p_q(int d) { return dot(select(d), select(d).p, select(d).q); }
  double r_r(int d) { return dot(select(d), select(d).r, select(d).r); }
  void finish(int d) {
    check(cudaStreamSynchronize(select(d).second), "a stream");
    check(cudaStreamSynchronize(select(d).first), "a stream");
  }
  void get_x(int d, double* x) {
    const OnDevice& on = select(d);
    finish(d);
    check(cudaMemcpy(x, on.x, static_cast<std::size_t>(on.rows) * sizeof(double),
                     cudaMemcpyDeviceToHost),
          "a copy to the host");
  }

 private:
  /// Makes a half's device the current one.
  OnDevice& select(int d) {
    OnDevice& on = on_[static_cast<std::size_t>(d)];
    check(cudaSetDevice(on.device), "choosing a device");
    return on;
  }
  void launch(OnDevice& on, const OnDevice::Matrix& a, const double* p, bool adds) {
    multiply<<<blocks_for(on.rows), threads, 0, on.first>>>(on.rows, adds, a.lengths, a.columns,
                                                            a.values, p, on.q);
    check(cudaGetLastError(), "a product");
  }
  double dot(OnDevice& on, const double* one, const double* other) {
    double sums[sum_blocks];
    dot_parts<<<sum_blocks, threads, 0, on.first>>>(on.rows, one, other, on.sums);
    check(cudaMemcpyAsync(sums, on.sums, sizeof sums, cudaMemcpyDeviceToHost, on.first), "a copy");
    check(cudaStreamSynchronize(on.first), "a stream");
    return std::accumulate(sums, sums + sum_blocks, 0.0);
  }

  bool goes_by_host_;
  int devices_ = 0;
  std::vector<OnDevice> on_;
};

}  // namespace

int main(int count, char** words) {
  return models::run<Cuda>("CUDA", models::Options::read(count, words));
}
