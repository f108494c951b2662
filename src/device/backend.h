// SPDX-License-Identifier: BSD-3-Clause
// src/device/backend.h: the contract between the engine and whatever executes copies and kernels.
//
// A backend owns devices of one machine, their memory and their streams. Every operation is queued
// on a stream and identified by the event that it creates; each stream runs its operations in
// order, independently of other streams. tests/contract/backend tests the whole contract.
//
// Threads
//   1. One thread at a time, a device's issuer, calls copy(), launch() and wait() on its streams.
//      Issuers of different devices call concurrently, and none waits for another device.
//   2. One thread at a time, the driver, calls next_completion(), concurrently with issuers.
//   3. wait() is called once the call that created the event has returned, on any thread.
//   4. One thread at a time calls create_stream(), and one per device allocate(), deallocate() and
//      what exports and imports memory, concurrently with all other calls. They don't wait for
//      queued operations: the caller knows that nothing uses the memory that it frees or closes.
//   5. All other functions may be called by any thread at any time.
//   6. One thread calls a backend with a virtual clock, except wake(), now() and holder().
//
// Calls throw if their arguments are wrong, and queue nothing then. An operation with valid
// arguments that can't be queued, such as a launch that a driver rejects, keeps its place in its
// stream and completes with the error.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/types.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/memory_handle.h"

namespace quadriga {

/// Stands for a kernel in the cost of a launch that does nothing, and takes no time.
inline constexpr std::string_view no_work = "nothing";

class Machine;

/// Index of a stream of a backend, from 0 in order of creation.
using StreamId = std::uint32_t;

/// The end of one operation of a stream; ticket 0 is the event that has always passed.
struct Event {
  StreamId stream = 0;
  std::uint64_t ticket = 0;  ///< Counts the operations of the stream, from 1.
  explicit operator bool() const noexcept { return ticket != 0; }
  bool operator==(const Event&) const = default;
};

enum class StreamKind : std::uint8_t {
  copy_in,   ///< Host to device.
  copy_out,  ///< Device to host.
  peer_in,   ///< From another device.
  compute,
  panel,  ///< Compute at high priority.
};

std::string_view name(StreamKind kind) noexcept;

/// Some bytes of each run of a copy, where they lie on the device.
struct Piece {
  std::byte* memory = nullptr;
  std::size_t width_bytes = 0;
  std::size_t pitch = 0;
};

/// A copy of `height` runs of `width_bytes`, the runs `pitch` bytes apart. Never overlapping.
struct Copy {
  SpaceId from = host_space;
  SpaceId to = host_space;
  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::size_t width_bytes = 0;
  std::size_t height = 1;
  std::size_t source_pitch = 0;  ///< Ignored when height is 1.
  std::size_t target_pitch = 0;
  /// Set if a device's end of a copy from or to the host lies in pieces, which are side by side in
  /// the host's runs, and whose widths sum up to these; that end's address and pitch mean nothing.
  std::shared_ptr<const std::vector<Piece>> pieces = {};
  /// Where its end on the host lies, for backends that tell time by a description.
  int node = any_node;
};

/// A variant to run. Everything pointed to must live until the launch's completion is delivered.
struct Launch {
  const Kernel* kernel = nullptr;
  Arguments arguments;
  Cost cost;  ///< Kernel empty: unknown.
  std::string_view name;
  /// The variant may wait for as long as it likes: neither launch() nor a later call waits for it.
  bool waits = false;
  /// It may wait for kernels on other devices that were launched with it: it runs however many
  /// others run there.
  bool meets = false;
};

/// A point in a stream that isn't the engine's, see Backend::mark().
class ForeignEvent {
 public:
  ForeignEvent() = default;
  virtual ~ForeignEvent() = default;
  ForeignEvent(const ForeignEvent&) = delete;
  ForeignEvent& operator=(const ForeignEvent&) = delete;
  /// Called by a variant: makes its stream (Arguments::stream) wait for it. Where streams are
  /// threads it returns once it was reached.
  virtual void queue_wait(void* stream) const = 0;
  /// Whether the stream has come there. Errors: device_lost.
  virtual bool is_reached() const = 0;
};

/// An operation that ended.
struct Completion {
  Event event;
  Nanoseconds begin = 0;  ///< When the operation started to run, by the backend's clock.
  Nanoseconds end = 0;
  std::exception_ptr error;  ///< Set if it failed; later operations of the stream run all the same.
};

class Backend {
 public:
  virtual ~Backend() = default;
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  /// Memory on a device; null when it is full. A device without memory of its own (cpu) has none to
  /// give.
  virtual std::byte* allocate(DeviceId device, std::size_t bytes) = 0;
  virtual void deallocate(DeviceId device, std::byte* memory) noexcept = 0;
  /// Bytes of a device that nobody has now, other processes included, where that is known.
  virtual std::optional<std::size_t> free_bytes(DeviceId /*device*/) const { return {}; }

  /// How other processes open the allocation that an address lies in; its memory, or the user's.
  virtual MemoryExport export_memory(DeviceId /*device*/, const void* /*memory*/) const {
    return MemoryExport::refused("this kind of device shares no memory");
  }
  /// The number of the allocation that an address lies in, which no later one gets; 0: none.
  virtual std::uint64_t allocation_at(DeviceId /*device*/, const void* /*memory*/) const {
    return 0;
  }
  /// Maps what another process exported, for copies of a device. The owner may free it meanwhile,
  /// or end: who reads it then finds old content, or none. `descriptor` is this process's, of the
  /// file that the handle names, or -1; the caller closes it.
  /// Errors:  unavailable with the reason, which tells nothing about other processes' memory;
  ///          invalid_argument if the handle says more than there is.
  virtual std::byte* import_memory(DeviceId device, const MemoryHandle& handle, int descriptor);
  /// Once nothing that is queued uses it.
  virtual void close_memory(DeviceId /*device*/, std::byte* /*mapped*/) noexcept {}

  virtual StreamId create_stream(DeviceId device, StreamKind kind) = 0;
  /// Calls a variant that queues nothing here, but makes what libraries keep for a stream, where
  /// there are such things. While nobody else uses the stream. Throws what the variant does.
  virtual void prepare(StreamId /*stream*/, const Kernel& /*variant*/) {}

  /// Queues a copy. Throws invalid_argument if no route joins the spaces; nothing is queued then.
  virtual Event copy(StreamId stream, const Copy& copy) = 0;
  /// Queues a kernel.
  virtual Event launch(StreamId stream, const Launch& launch) = 0;
  /// Makes the stream's later operations wait for an event of any stream of this backend.
  virtual void wait(StreamId stream, Event event) = 0;

  /// Waits until an operation has ended that wasn't delivered yet, also one that is queued
  /// meanwhile, wake() was called, or `deadline` (by now()) has passed. Each operation is delivered
  /// exactly once, after what it waited for, those of one stream in order, those of several by
  /// their end. Returns how many were written to `out`.
  virtual std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) = 0;
  /// Makes a next_completion() that waits, or else the next one, return at once.
  virtual void wake() noexcept = 0;

  /// Calls a function, on any thread, whenever something can be delivered from now on; it may call
  /// wake() of other backends. False, and nothing is called, if only next_completion() finds out.
  /// At most once, before anything is queued.
  virtual bool tell(std::function<void()> /*ended*/) { return false; }

  /// Calls a function when a variant throws DeviceFull, by the thread that called the variant.
  /// True: the device has more free memory now, and the variant is called again. The function may
  /// call deallocate(). At most once, before anything is queued.
  virtual void on_full(std::function<bool(DeviceId)> /*make_room*/) {}

  /// The clock: nanoseconds since the backend was made.
  virtual Nanoseconds now() const noexcept = 0;
  /// True if time passes only in next_completion(), which then returns 0 before the deadline only
  /// when nothing is queued.
  virtual bool is_virtual() const noexcept = 0;

  /// The device whose memory an address lies in, the user's memory there included; no_device for
  /// the host's. Errors: invalid_argument naming a device that isn't this backend's.
  virtual DeviceId holder(const void* /*memory*/) const { return no_device; }
  /// Waits until what others queued on a stream of a device has ended, where devices have streams
  /// of others: 0 for all of them, else a number as `__cuda_array_interface__` gives it.
  virtual void synchronize(DeviceId /*device*/, std::uintptr_t /*stream*/) const {}
  /// The end of what others have queued so far on such a stream, without waiting for it where
  /// streams can wait for each other's events; null: it was reached. The stream may go meanwhile.
  virtual std::unique_ptr<ForeignEvent> mark(DeviceId device, std::uintptr_t stream) const {
    synchronize(device, stream);
    return nullptr;
  }

  /// Called by a variant: what others queue on such a stream from now on waits for what the
  /// variant's stream (Arguments::stream) holds. False: 0 and 2 stand for no one stream.
  virtual bool lead(DeviceId /*device*/, void* /*stream*/, std::uintptr_t /*other*/) const {
    return false;
  }

  /// Makes host memory fast to copy from and to; false if it isn't needed or can't be done.
  virtual bool pin(std::byte* memory, std::size_t bytes) = 0;
  virtual void unpin(std::byte* memory, std::size_t bytes) noexcept = 0;

  /// The devices, spaces, links and kernel times that this backend stands for.
  virtual const Machine& machine() const noexcept = 0;
};

}  // namespace quadriga
