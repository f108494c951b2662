// SPDX-License-Identifier: BSD-3-Clause
// bench/copy_flows.h: copies between memories: what goes where, by the engine's backend or without.
#pragma once

#include <quadriga/machine.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/backend.h"
#include "products.h"

namespace quadriga::bench {

/// One direction between two memories, with memory of its own at both ends.
struct Flow {
  SpaceId from = host_space;
  SpaceId to = host_space;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  StreamId stream = 0;  ///< Of the backend.
};

/// Runs of a copy, so far apart on the host, without gaps on a device.
struct Shape {
  std::size_t run_bytes = 0;
  std::size_t runs = 1;
  std::size_t pitch = 0;

  std::size_t bytes() const noexcept { return run_bytes * runs; }
};

Copy copy_of(const Flow& flow, const Shape& shape);

/// Device memory of a backend and pages of the host, of one size, for as long as it lives.
class CopyBuffers {
 public:
  CopyBuffers(Backend& backend, std::size_t bytes);
  ~CopyBuffers();
  CopyBuffers(const CopyBuffers&) = delete;
  CopyBuffers& operator=(const CopyBuffers&) = delete;

  /// A flow between the host's memory and a device's, or between two devices. Each device has
  /// pinned pages of its own on the host; all flows share those that aren't pinned.
  Flow flow(SpaceId from, SpaceId to, bool pinned = true);
  /// Both ends on one device. The backend has no stream for it.
  Flow flow_within(SpaceId space);

 private:
  std::byte* on_device(SpaceId space, bool source);
  std::byte* on_host(SpaceId beside, bool source, bool pinned);

  struct Place {
    SpaceId space;  // The host's: the device that it is for; none: pageable.
    bool source;
    std::byte* memory;
  };
  Backend& backend_;
  std::size_t bytes_;
  std::vector<Place> device_;
  std::vector<Place> host_;
  std::vector<std::vector<std::byte>> pages_;
};

/// Seconds of `rounds` rounds of copies, each of one copy on every flow; with products beside them
/// if there are some.
double backend_seconds(Backend& backend, std::span<const Flow> flows, const Shape& shape,
                       std::size_t rounds, Products* beside = nullptr);

/// The same by the CUDA runtime alone, which the backend is measured by.
class PlainCopies {
 public:
  /// Null if the machine has no CUDA devices.
  static std::unique_ptr<PlainCopies> make(const Machine& machine);
  virtual ~PlainCopies() = default;

  virtual double seconds(std::span<const Flow> flows, const Shape& shape, std::size_t rounds) = 0;
  /// Allows or forbids devices to see each other's memory; false if no pair can.
  virtual bool set_peer_access(bool on) = 0;
};

/// A figure about memory of this process that another one opened.
struct IpcFigure {
  std::string what;  ///< "get", "open", "close": seconds; "copy": bytes a second.
  int from = 0;      ///< Device of the memory, among the machine's CUDA devices.
  int to = 0;        ///< Device that the other process copied it to.
  std::size_t bytes = 0;
  double value = 0;
};

/// Starts another process that copies from memory of this one. Errors: unavailable, saying why.
void measure_ipc(const Machine& machine, std::span<const std::size_t> sizes,
                 const std::function<void(const IpcFigure&)>& report);

}  // namespace quadriga::bench
