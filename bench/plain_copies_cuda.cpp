// SPDX-License-Identifier: BSD-3-Clause
// bench/plain_copies_cuda.cpp: copies by the CUDA runtime alone, on streams of their own.
#include <cuda_runtime_api.h>

#include <map>

#include "copy_flows.h"
#include "device/cuda/copies.h"
#include "device/cuda/cuda_check.h"
#include "line.h"

namespace quadriga::bench {
namespace {

using cuda::check;
using cuda::DeviceGuard;

class CudaCopies final : public PlainCopies {
 public:
  explicit CudaCopies(const Machine& machine)
      : ordinals_(cuda::ordinals_of(machine)),
        ordinal_at_(static_cast<std::size_t>(machine.spaces()), -1) {
    for (std::size_t i = 0; i < machine.devices.size(); ++i)
      if (machine.devices[i].space != host_space)
        ordinal_at_[machine.devices[i].space] = ordinals_[i];
  }
  ~CudaCopies() override {
    for (const auto& [key, stream] : streams_) cudaStreamDestroy(stream);
  }

  double seconds(std::span<const Flow> flows, const Shape& shape, std::size_t rounds) override {
    std::vector<cudaStream_t> streams;
    for (std::size_t i = 0; i < flows.size(); ++i) streams.push_back(stream_of(flows[i], i));
    const double begin = now();
    for (std::size_t round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < flows.size(); ++i) queue(flows[i], shape, streams[i]);
    for (const cudaStream_t stream : streams) check(cudaStreamSynchronize(stream), "copies");
    return now() - begin;
  }

  bool set_peer_access(bool on) override {
    if (on) cuda::enable_peer_access(ordinals_);
    bool any = false;
    for (const int user : ordinals_) {
      for (const int owner : ordinals_) {
        int can = 0;
        if (user < 0 || owner < 0 || user == owner) continue;
        check(cudaDeviceCanAccessPeer(&can, user, owner), "asking for peer access");
        any = any || can != 0;
        if (!on && can != 0) forbid(user, owner);
      }
    }
    return any;
  }

 private:
  static void forbid(int user, int owner) {
    const DeviceGuard guard(user);
    const cudaError_t error = cudaDeviceDisablePeerAccess(owner);
    if (error == cudaErrorPeerAccessNotEnabled)
      cudaGetLastError();
    else
      check(error, "disabling peer access");
  }

  // On the device that the copy goes to, or comes from if it goes to the host.
  cudaStream_t stream_of(const Flow& flow, std::size_t number) {
    const int ordinal = ordinal_at_[flow.to == host_space ? flow.from : flow.to];
    cudaStream_t& stream = streams_[{ordinal, number}];
    if (stream == nullptr) {
      const DeviceGuard guard(ordinal);
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
    }
    return stream;
  }

  void queue(const Flow& flow, const Shape& shape, cudaStream_t stream) const {
    const int from = flow.from == host_space ? -1 : ordinal_at_[flow.from];
    const int to = flow.to == host_space ? -1 : ordinal_at_[flow.to];
    check(cuda::queue_copy(copy_of(flow, shape), from, to, stream), "a copy");
  }

  std::vector<int> ordinals_;    // By device.
  std::vector<int> ordinal_at_;  // By space.
  std::map<std::pair<int, std::size_t>, cudaStream_t> streams_;
};

}  // namespace

std::unique_ptr<PlainCopies> PlainCopies::make(const Machine& machine) {
  for (const Device& device : machine.devices)
    if (device.kind == DeviceKind::cuda) return std::make_unique<CudaCopies>(machine);
  return nullptr;
}

}  // namespace quadriga::bench
