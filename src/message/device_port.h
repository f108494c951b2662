// SPDX-License-Identifier: BSD-3-Clause
// src/message/device_port.h: memory of devices as messages use it: copies, packing, other
// processes' allocations; by a backend that belongs to no engine.
//
// Invariants
//   1. `mutex_` guards all but what is const, `ended_` and `rooms_`; it is held while operations
//      are queued, and 1 ms at a time while somebody waits for one of a lane. `memory_mutex_`
//      guards `rooms_`, and is held while the backend makes, frees, exports or opens memory:
//      freeing may wait for the whole device (cudaFree), and messages move on meanwhile. Nobody
//      holds both.
//   2. Operations of a stream end in order: a ticket has ended once its stream has come so far.
//   3. Nothing that is queued waits for another process: every operation ends by itself, or by a
//      fault, which its ticket tells. But functions of the program's streams run for as long as
//      they like: who waits for one holds no lock, and sleeps until `ended_` has changed.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/backend.h"
#include "message/device_packer.h"
#include "message/device_rooms.h"

namespace quadriga::message {

/// An operation of a port; ticket 0 has ended.
using PortTicket = Event;

/// A point in a stream of the program's.
struct StreamMark {
  std::shared_ptr<ForeignEvent> event = {};  ///< Of CUDA; null: it was reached.
  PortTicket ticket = {};                    ///< Of an emulated device.
};

class DevicePort {
 public:
  /// Puts another backend around the port's: tests make it fail.
  using Wrap = std::function<std::unique_ptr<Backend>(std::unique_ptr<Backend>)>;
  /// For the devices of a machine, all emulated, or one CUDA device.
  /// Errors: those of the backend; invalid_argument for a machine without memory of devices.
  explicit DevicePort(Machine machine, int ordinal = 0, const Wrap& wrap = {});
  /// Waits for what is queued.
  ~DevicePort();
  DevicePort(const DevicePort&) = delete;
  DevicePort& operator=(const DevicePort&) = delete;

  /// The port for a CUDA device, made when it is first asked for; one a process.
  /// Errors: unavailable without that device; device_lost.
  static std::shared_ptr<DevicePort> cuda(int ordinal);
  /// That of the CUDA device that holds an address. Errors: also invalid_argument if none does.
  static std::shared_ptr<DevicePort> cuda_at(const void* memory);
  /// A port that find() finds. If a thread of the library's lets it go last, such as one of its own
  /// streams, another ends it.
  static std::shared_ptr<DevicePort> open(Machine machine, int ordinal = 0, const Wrap& wrap = {});
  /// The port with a number, if it lives.
  static std::shared_ptr<DevicePort> find(std::uint64_t number);
  /// A port of this process that opens such handles; null: there is none. The newest first.
  static std::shared_ptr<DevicePort> find(HandleKind kind);

  const Machine& machine() const noexcept { return backend_->machine(); }
  bool is_cuda() const noexcept { return is_cuda_; }
  /// Of the ports that this process made.
  std::uint64_t number() const noexcept { return number_; }
  /// The memory of a device.
  SpaceId space(DeviceId device) const noexcept;
  /// no_device: it isn't these devices' memory.
  DeviceId holder(const void* memory) const;
  std::byte* allocate(DeviceId device, std::size_t bytes);
  /// Waits for what is queued.
  void deallocate(DeviceId device, std::byte* memory) noexcept;

  MemoryExport export_memory(DeviceId device, const void* memory);
  std::uint64_t allocation_at(DeviceId device, const void* memory);
  std::byte* import_memory(DeviceId device, const MemoryHandle& handle, int descriptor);
  void close_memory(DeviceId device, std::byte* mapped) noexcept;

  /// The streams of a device: each copies in one direction, and packs.
  enum class Lane : std::uint8_t { in, out, across };
  PortTicket copy(DeviceId device, Lane lane, const Copy& copy);
  PortTicket pack(DeviceId device, Lane lane, const PackPart& part) {
    return queue_pack(device, lane, [part](DevicePacker& packer, const PackQueue& queue) {
      packer.pack(part, queue);
    });
  }
  PortTicket unpack(DeviceId device, Lane lane, const PackPart& part) {
    return queue_pack(device, lane, [part](DevicePacker& packer, const PackQueue& queue) {
      packer.unpack(part, queue);
    });
  }
  PortTicket move(DeviceId device, Lane lane, const MovePart& part) {
    return queue_pack(device, lane, [part](DevicePacker& packer, const PackQueue& queue) {
      packer.move(part, queue);
    });
  }
  PortTicket unpack_reduce(DeviceId device, Lane lane, const PackPart& part,
                           ReduceOperation operation) {
    return queue_pack(device, lane,
                      [part, operation](DevicePacker& packer, const PackQueue& queue) {
                        packer.unpack_reduce(part, operation, queue);
                      });
  }
  /// Waits until what others queued on a stream has ended, as Backend::synchronize() counts them.
  void synchronize(DeviceId device, std::uintptr_t stream);

  /// A stream for the program, where devices are emulated; its number, as CUDA's have one.
  std::uintptr_t open_stream(DeviceId device);
  /// Queues a function there; what it throws is logged. It may wait for as long as it likes, and
  /// be the last to hold the port.
  void call(std::uintptr_t stream, std::function<void()> function);
  /// What a stream of the program holds now.
  StreamMark mark(DeviceId device, std::uintptr_t stream);
  /// Whether it has come there. Errors: device_lost.
  bool is_reached(const StreamMark& mark);
  /// Waits until it has. Errors: device_lost.
  void wait_for(const StreamMark& mark);
  /// Makes what is queued later on a stream of the program wait for what a lane holds. False if it
  /// can't, as Backend::lead().
  bool lead(DeviceId device, Lane lane, std::uintptr_t stream);

  /// Whether it has ended. Errors: what ended it.
  bool has_ended(PortTicket ticket);
  /// Waits for it; errors are ignored.
  void finish(PortTicket ticket) noexcept;
  /// Blocks of host memory that copies are quick from and to, and of a device's memory, each of
  /// block_bytes; null if there is no memory.
  static constexpr std::size_t block_bytes = std::size_t{2} << 20;
  std::byte* take_host_block();
  void give_host_block(std::byte* block) noexcept;
  std::byte* take_block(DeviceId device);
  void give_block(DeviceId device, std::byte* block) noexcept;
  /// A larger one, for what is packed and unpacked on the device: of scratch_bytes().
  std::size_t scratch_bytes() const noexcept {
    return is_cuda_ ? std::size_t{32} << 20 : block_bytes;
  }
  std::byte* take_scratch(DeviceId device);
  void give_scratch(DeviceId device, std::byte* block) noexcept;

  /// Memory of a device of any size, which is kept for the next that needs as much: making it is
  /// dear, and so is opening it for the peers. Null if there is none.
  std::byte* take_room(DeviceId device, std::size_t bytes);
  /// What is kept is an eighth of the device's memory at most, or this one room.
  void give_room(DeviceId device, std::byte* room, std::size_t bytes) noexcept;
  /// Bytes that are kept.
  std::size_t room_bytes(DeviceId device);

  /// Seconds that a copy takes by what the machine says.
  double seconds(SpaceId from, SpaceId to, std::size_t bytes) const;

 private:
  using Blocks = std::vector<std::byte*>;
  StreamId stream(DeviceId device, Lane lane);
  PortTicket launch(DeviceId device, Lane lane, Kernel variant);
  PortTicket launch_on(StreamId stream, Kernel variant, bool waits);
  using Packing = std::function<void(DevicePacker& packer, const PackQueue& queue)>;
  PortTicket queue_pack(DeviceId device, Lane lane, Packing packing);
  bool look(Nanoseconds patience);
  std::byte* allocate_locked(DeviceId device, std::size_t bytes);
  std::byte* take(std::map<DeviceId, Blocks>& from, DeviceId device, std::size_t bytes);
  bool free_rooms(DeviceId device) noexcept;
  DeviceRooms& rooms(DeviceId device);

  const bool is_cuda_;
  const int ordinal_ = 0;  ///< Of the CUDA device.
  const std::uint64_t number_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<DevicePacker> packer_;
  bool tells_ = false;                   ///< `ended_` counts; const once the port is made.
  std::atomic<std::uint32_t> ended_{0};  ///< Changes once an operation's end can be looked up.
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> issued_, reached_;  ///< Tickets, by stream.
  std::map<std::pair<StreamId, std::uint64_t>, std::exception_ptr> errors_;
  std::map<std::pair<StreamId, std::uint64_t>, std::unique_ptr<Kernel>> kernels_;
  std::map<std::pair<DeviceId, Lane>, StreamId> streams_;
  std::vector<StreamId> program_streams_;  ///< Of emulated devices.
  Blocks host_blocks_;
  std::map<DeviceId, Blocks> blocks_, scratch_;
  std::mutex memory_mutex_;
  std::map<DeviceId, DeviceRooms> rooms_;
};

}  // namespace quadriga::message
