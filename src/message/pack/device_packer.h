// SPDX-License-Identifier: BSD-3-Clause
// src/message/pack/device_packer.h: packs and unpacks messages where they are: on one device's
// stream, or on the host in place of an emulated device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "message/layout/layout.h"
#include "message/pack/reduce.h"

namespace quadriga::message {

/// Packed bytes `offset` to `offset + bytes` of one message.
struct PackPart {
  Layout layout;
  void* data = nullptr;    ///< What the layout's offsets count from: the device's memory.
  void* packed = nullptr;  ///< Byte `offset` of the stream: any memory that the device reaches.
  std::size_t offset = 0;  ///< Of the message's packed stream.
  std::size_t bytes = whole;

  static constexpr std::size_t whole = SIZE_MAX;  ///< All from `offset` on.
};

/// Packed bytes `offset` to `offset + bytes` of two streams that agree, from where the elements of
/// the one lie to where those of the other do.
struct MovePart {
  Layout from_layout;
  void* from = nullptr;  ///< Only read: the device's memory, or mapped memory of a peer.
  Layout to_layout;
  void* to = nullptr;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};
/// Whether a packer moves it: its elements' order needs no list, and no transpose.
bool moves_directly(const MovePart& part);

/// Elements side by side: into = from op with. `into` may be one of the others, but shares no
/// memory with them else.
struct CombinePart {
  void* into = nullptr;
  const void* from = nullptr;
  const void* with = nullptr;  ///< Any memory that the device reaches, as `from`.
  std::size_t bytes = 0;
  ElementType type = ElementType::bytes;
};

/// Where and how packing is queued.
struct PackQueue {
  void* stream = nullptr;   ///< cudaStream_t of the packer's device; null is its default stream.
  int most_processors = 0;  ///< Multiprocessors that may be occupied; 0: all.
};

/// What a packer has done, and what it keeps.
struct PackCounters {
  std::uint64_t launches = 0;       ///< Kernels queued.
  std::uint64_t bytes = 0;          ///< Packed bytes moved, either way.
  std::uint64_t table_bytes = 0;    ///< Of tables of lists on the device now.
  std::uint64_t table_uploads = 0;  ///< Bytes of tables that were copied to the device so far.
  std::uint64_t tables_reused = 0;  ///< Parts that found their list's table on the device.
};

/// Packs and unpacks parts of messages on one device. Any thread.
///
/// `packed` may be memory of the device, mapped memory of a peer, or pinned memory of the host that
/// the device can address. Many parts are one launch where the stream's work allows it.
/// Async:   returns once queued, on the host once done; memory must live until the stream passes
///          it. A list that the device doesn't know yet is copied to it during the call.
/// Errors:  invalid_argument, with nothing queued, if a part is beyond its stream's end, or
///          elements overlap in an unpack.
class DevicePacker {
 public:
  virtual ~DevicePacker() = default;
  DevicePacker(const DevicePacker&) = delete;
  DevicePacker& operator=(const DevicePacker&) = delete;

  /// From `data` to `packed`.
  virtual void pack(std::span<const PackPart> parts, const PackQueue& queue) = 0;
  /// From `packed` to `data`. Parts mustn't write to the same bytes.
  virtual void unpack(std::span<const PackPart> parts, const PackQueue& queue) = 0;
  /// Each element of `data` becomes `operation` of itself and the one in `packed`.
  /// Errors: also invalid_argument where the elements are of several types, a part cuts an element,
  ///         or the operation means nothing for the type.
  virtual void unpack_reduce(std::span<const PackPart> parts, ReduceOperation operation,
                             const PackQueue& queue) = 0;
  /// As one pass over the three.
  /// Errors: invalid_argument if the operation means nothing for the type, or elements are cut.
  virtual void combine(const CombinePart& part, ReduceOperation operation,
                       const PackQueue& queue) = 0;
  /// From place to place without packed bytes in between.
  /// Errors: invalid_argument as for unpack(), or if it isn't moves_directly().
  virtual void move(const MovePart& part, const PackQueue& queue) = 0;
  virtual PackCounters counters() const = 0;

  void pack(const PackPart& part, const PackQueue& queue = {}) { pack({&part, 1}, queue); }
  void unpack(const PackPart& part, const PackQueue& queue = {}) { unpack({&part, 1}, queue); }
  void unpack_reduce(const PackPart& part, ReduceOperation operation, const PackQueue& queue = {}) {
    unpack_reduce({&part, 1}, operation, queue);
  }

  /// Works at once, on the thread that calls: for emulated devices, whose memory is the host's.
  static std::unique_ptr<DevicePacker> on_host();
  /// For a CUDA device, as the CUDA runtime counts; keeps at most `table_bytes` of tables there
  /// that aren't in use.
  /// Errors:  unavailable in a build without CUDA, or without that device.
  static std::unique_ptr<DevicePacker> on_cuda(int ordinal,
                                               std::size_t table_bytes = std::size_t{1} << 28);

 protected:
  DevicePacker() = default;
};

/// The part's bytes, `whole` replaced.
/// Errors: invalid_argument if it is beyond its stream's end.
std::size_t checked_bytes(const PackPart& part);
/// Errors: invalid_argument as unpack() and unpack_reduce() name them.
void check_unpacks(const PackPart& part);
void check_reduces(const PackPart& part, ReduceOperation operation);
/// Errors: invalid_argument as combine() names them.
void check_combines(const CombinePart& part, ReduceOperation operation);
/// Errors: invalid_argument as move() names them, that it isn't moves_directly() aside.
void check_moves(const MovePart& part);

}  // namespace quadriga::message
