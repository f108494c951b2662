// SPDX-License-Identifier: BSD-3-Clause
// src/device/cuda/copies.cpp: which call of the runtime makes which copy.
#include "device/cuda/copies.h"

#include <algorithm>

#include "device/cuda/cuda_check.h"
#include "device/operation.h"

namespace quadriga::cuda {
namespace {

cudaMemcpyKind kind_of(int from, int to) {
  if (from < 0) return cudaMemcpyHostToDevice;
  return to < 0 ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

// Which device has an address; what isn't here, as in descriptions of other machines, is stood for
// by another one.
int ordinal_at(const std::string& pci_address, int otherwise) {
  int ordinal = otherwise;
  if (pci_address.empty()) return otherwise;
  if (cudaDeviceGetByPCIBusId(&ordinal, pci_address.c_str()) == cudaSuccess) return ordinal;
  cudaGetLastError();
  return otherwise;
}

// Runs between devices that may not see each other's memory.
cudaError_t queue_peer_runs(const Copy& copy, int from, int to, cudaStream_t stream) {
  cudaMemcpy3DPeerParms parms{};
  parms.srcDevice = from;
  parms.dstDevice = to;
  parms.srcPtr = {const_cast<std::byte*>(copy.source), copy.source_pitch, copy.width_bytes,
                  copy.height};
  parms.dstPtr = {copy.target, copy.target_pitch, copy.width_bytes, copy.height};
  parms.extent = {copy.width_bytes, copy.height, 1};
  return cudaMemcpy3DPeerAsync(&parms, stream);
}

}  // namespace

std::vector<int> ordinals_of(const Machine& machine) {
  int count = 0;
  check(cudaGetDeviceCount(&count), "counting devices");
  std::vector<int> ordinals;
  int next = 0;
  for (const Device& device : machine.devices)
    ordinals.push_back(
        device.kind == DeviceKind::cuda ? ordinal_at(device.pci_address, next++ % count) : -1);
  return ordinals;
}

void enable_peer_access(const std::vector<int>& ordinals) {
  for (const int user : ordinals) {
    for (const int owner : ordinals) {
      int can = 0;
      if (user < 0 || owner < 0 || user == owner) continue;
      check(cudaDeviceCanAccessPeer(&can, user, owner), "asking for peer access");
      if (can == 0) continue;
      const DeviceGuard guard(user);
      const cudaError_t error = cudaDeviceEnablePeerAccess(owner, 0);
      if (error == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();
      else
        check(error, "enabling peer access");
    }
  }
}

cudaError_t queue_in_slices(const Copy& copy, int to, cudaStream_t stream) {
  constexpr std::size_t slice = std::size_t{16} << 20;
  Copy next = copy;
  const bool single = copy.height == 1;
  const std::size_t step = single ? slice : std::max<std::size_t>(1, slice / copy.width_bytes);
  const std::size_t all = single ? copy.width_bytes : copy.height;
  for (std::size_t done = 0; done < all; done += step) {
    (single ? next.width_bytes : next.height) = std::min(step, all - done);
    next.source = copy.source + done * (single ? 1 : copy.source_pitch);
    next.target = copy.target + done * (single ? 1 : copy.target_pitch);
    const cudaError_t error = queue_copy(next, -1, to, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t queue_copy(const Copy& copy, int from, int to, cudaStream_t stream) {
  const bool peers = from >= 0 && to >= 0 && from != to;
  if (is_one_run(copy)) {
    const std::size_t bytes = copy.width_bytes * copy.height;
    return peers ? cudaMemcpyPeerAsync(copy.target, to, copy.source, from, bytes, stream)
                 : cudaMemcpyAsync(copy.target, copy.source, bytes, kind_of(from, to), stream);
  }
  if (peers) return queue_peer_runs(copy, from, to, stream);
  return cudaMemcpy2DAsync(copy.target, copy.target_pitch, copy.source, copy.source_pitch,
                           copy.width_bytes, copy.height, kind_of(from, to), stream);
}

}  // namespace quadriga::cuda
