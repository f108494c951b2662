// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/codelet.h: an operation: access to operands, a variant for each kind of device.
#pragma once

#include <quadriga/types.h>

#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quadriga {

/// One operand as a variant sees it: a column-major tile in the memory of the device it runs on.
///
/// Element (i, j) is at data + (i + j*ld) * size_of(dtype); ld >= rows.
struct View {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;  ///< Leading dimension in elements.
  DType dtype = DType::bytes;

  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
};

/// Bytes of its elements, without gaps between columns.
constexpr std::size_t bytes_of(const View& view) noexcept {
  return static_cast<std::size_t>(view.rows) * static_cast<std::size_t>(view.cols) *
         size_of(view.dtype);
}

class Promise;

/// The arguments of a variant; valid until the variant returns.
struct Arguments {
  std::span<const View> operands;     ///< In the order of the codelet's `access`.
  std::span<const std::byte> params;  ///< The bytes given to submit().
  void* stream = nullptr;             ///< The device's native stream; null on the CPU.
  /// On a GPU: a variant may set a callback here; a thread of the engine calls it after the
  /// operation has ended, and an exception from it fails the task. Null elsewhere.
  std::function<void()>* on_end = nullptr;
  /// Ends the task of a codelet that detaches; null for others.
  const Promise* promise = nullptr;
  /// Memory of the device for this task alone, as much as the codelet's `workspace` stated; its
  /// content is unspecified. A kernel that was queued may use it until it has ended.
  std::span<std::byte> workspace = {};

  /// The parameters as the trivially copyable struct that was submitted.
  template <class T>
  T param() const noexcept {
    T value;
    std::memcpy(&value, params.data(), sizeof(T));
    return value;
  }
};

/// A variant performs the operation, or on a GPU queues it on `arguments.stream`. May throw.
using Kernel = std::function<void(const Arguments& arguments)>;

/// How long a task takes by a machine's table of kernel times, for the virtual clock and
/// for policies.
///
/// The table gives seconds by order; the rate order^3/seconds is interpolated at `order`, and the
/// task takes volume/rate. A square tile of order b has volume b^3, whatever the kernel. For other
/// tasks state the time or the work instead.
struct Cost {
  std::string_view kernel;  ///< Name in the table, such as "dgemm"; must outlive the task.
  double order = 0;
  double volume = 0;

  /// The same time on each device.
  static constexpr Cost of_seconds(double seconds) noexcept { return {"seconds", 0, seconds}; }
  /// The time of this many floating-point operations, or of reading and writing this many bytes of
  /// the device's memory, whichever is longer, by the rows "flops" and "bytes" of the table
  /// (seconds of order^3 each). The time is known only if the table has both rows.
  static constexpr Cost of_work(double flops, double bytes) noexcept {
    return {"work", bytes, flops};
  }
};

/// An operation and how it accesses its operands. Create it once for many tasks; it must outlive
/// them, and must not change after the first submission, since other threads read it.
struct Codelet {
  std::string name;
  std::vector<Access> access;  ///< One mode for each operand.
  Kernel cpu = {};             ///< Runs on CPU cores and on emulated devices.
  Kernel cuda = {};            ///< Queues the operation on a CUDA stream.
  /// Variants for further kinds of device, which queue on their own streams; see variant().
  std::vector<std::pair<DeviceKind, Kernel>> others = {};
  /// Predicted cost; empty: learned by running some tasks on each kind of device, and an error
  /// under the virtual clock.
  std::function<Cost(const Arguments& arguments)> cost = {};
  /// Bytes that the variant for a kind of device needs beside its operands; empty: none. Reserved
  /// with the operands, all or none of them, in the memory of the device that the task runs on.
  ///
  /// Called by submit() for each kind of device, with the parameters and the operands' shapes,
  /// whose `data` is null. Gives the same for the same arguments.
  /// Errors:  submit() throws what it throws, and too_large if no device has so much memory.
  ///          Refused for codelets that detach or block, for `init` and `combine`, and, on cores,
  ///          for fine tasks.
  std::function<std::size_t(const Arguments& arguments, DeviceKind kind)> workspace = {};
  /// For operands of mode reduce, both or neither: devices add concurrently to partial results of
  /// their own, which tasks combine into the data before its next access of another mode. `init`
  /// (access: write) sets a partial result to the neutral element and runs as part of the first
  /// task on a device; `combine` (update, read) adds the second operand to the first. Neither gets
  /// parameters; both must outlive the combination. Partial results depend on where tasks ran, so
  /// floating-point sums may differ in rounding from run to run.
  const Codelet* init = nullptr;
  const Codelet* combine = nullptr;
  /// The cpu variant needs the host: it runs on a host thread and never on an emulated device.
  bool host_only = false;
  /// Its cpu variant submits tasks, which may touch its operands or data that it registers; its
  /// successors wait for the last of them.
  bool submits = false;
  /// Its cpu variant may wait, for example for a file or another program: it runs on a separate
  /// thread, not on a core's worker, as long as no more than EngineOptions::blocking_threads do.
  /// Requires host_only.
  bool blocks = false;
  /// Its cpu variant starts work that ends later: the task ends when the promise in its arguments
  /// is fulfilled (promise.h), and fails if the variant throws before that. Requires host_only;
  /// operands are read, written or updated. Under the virtual clock, time stands still while the
  /// engine only waits for promises.
  bool detaches = false;
  /// The variant may block before it has queued its work, for example on an interpreter's lock: a
  /// separate thread calls it, one such variant at a time; later operations of its stream wait.
  bool waits_to_queue = false;

  /// The variant for a kind of device; empty if there is none.
  const Kernel& variant(DeviceKind kind) const noexcept;
  /// The same, assignable: `codelet.variant(device_kind("hip")) = ...`.
  Kernel& variant(DeviceKind kind);
};

inline const Kernel& Codelet::variant(DeviceKind kind) const noexcept {
  if (kind == DeviceKind::cpu) return cpu;
  if (kind == DeviceKind::cuda) return cuda;
  for (const auto& [of, kernel] : others)
    if (of == kind) return kernel;
  static const Kernel none;
  return none;
}

inline Kernel& Codelet::variant(DeviceKind kind) {
  if (kind == DeviceKind::cpu) return cpu;
  if (kind == DeviceKind::cuda) return cuda;
  for (auto& [of, kernel] : others)
    if (of == kind) return kernel;
  return others.emplace_back(kind, nullptr).second;
}

}  // namespace quadriga
