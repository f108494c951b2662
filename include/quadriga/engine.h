// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/engine.h: the engine: registers data, runs submitted tasks, counts and traces.
#pragma once

#include <quadriga/codelet.h>
#include <quadriga/data.h>
#include <quadriga/error.h>
#include <quadriga/handles.h>
#include <quadriga/machine.h>
#include <quadriga/report.h>
#include <quadriga/types.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quadriga {

class EngineAccess;

/// Options of a new engine. Empty and zero stand for the setting (file, QUADRIGA_*), else the
/// default.
struct EngineOptions {
  std::string devices = {};  ///< A list for Machine::parse(). Default: "auto".
  std::string policy = {};   ///< One of policies() (policy.h). Default: "affinity".
  std::size_t window = 0;    ///< Limit of tasks submitted but not ended; default 16384.
  bool virtual_clock = false;
  bool compute = true;   ///< Under the virtual clock: run the variants, or only count their time.
  bool protect = false;  ///< Under the virtual clock: catch accesses to others' device memory.
  std::uint64_t seed = 1;
  bool trace = false;
  std::size_t host_memory = 0;        ///< Limit of host buffers in bytes, for tiles without a home;
                                      ///< 0: 80 % of free memory.
  std::size_t blocking_threads = 64;  ///< Limit of concurrent bodies that block (Codelet::blocks).
  std::string spill = {};  ///< A file for what host_memory leaves no room for (spill_file.h).
  /// Default of linalg's Options::reproducible; unset: the setting at the time of the call.
  std::optional<bool> reproducible = {};
  std::optional<Machine> machine = {};  ///< Instead of `devices`.
  /// Under the virtual clock: another description of the same devices, by whose links and kernel
  /// times plans and policies choose. Time passes by those of `devices`.
  std::optional<Machine> believed = {};
  /// Limit in bytes of memory for what tasks overwrite (access write) while others still read it,
  /// so that they needn't wait for those; it counts as tiles without a home. 0: the setting, else
  /// they wait; SIZE_MAX: they wait. Applies to data at home on the host not resident, kept, or
  /// shared by overlapping data. wait(), wait(data), cancel(), host access and removal copy the
  /// content home; without them it may stay elsewhere.
  std::size_t renaming_bytes = 0;
};

/// One operand of a task.
struct Operand {
  Data data;
  Access access = Access::read;
};

struct SubmitOptions {
  int priority = 0;  ///< Larger runs earlier among ready tasks.
  /// The device that runs it, if it can; no_device: the policy chooses.
  DeviceId device = no_device;
  /// The preferred device; idle devices may take the task. A number that no device has counts as
  /// no_device, but no_device - 1 is reserved: invalid_argument.
  DeviceId owner = no_device;
  /// The task starts after the earlier tasks of this sequence have ended.
  Sequence sequence = {};
  /// The task starts once these have ended, successfully or not. Within a task, these may be tasks
  /// that it submitted, or earlier tasks that don't enclose it.
  std::span<const Future> after = {};
};

class Engine {
 public:
  explicit Engine(EngineOptions options = {});
  ~Engine();  ///< Waits for running tasks, cancels the others.
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Registers rows x cols elements, column-major, at `home`, which must outlive the data. The same
  /// memory registered again is the same data, until each registration is removed; data whose
  /// memory overlaps share its order and content.
  Data data(void* home, std::int64_t rows, std::int64_t cols, std::int64_t ld, DType dtype,
            DataOptions options = {});
  /// Registers memory on a device: tasks there use it in place, tasks elsewhere use copies, and
  /// results are written back to it. Its content must be complete, or follow(). Errors:
  /// invalid_argument if the device is unknown or the memory is another's.
  Data data(DeviceId device, void* home, std::int64_t rows, std::int64_t cols, std::int64_t ld,
            DType dtype, DataOptions options = {});
  /// Creates a tile without a home: it lives on devices, and spills to a host buffer if necessary.
  Data temporary(std::int64_t rows, std::int64_t cols, DType dtype, DataOptions options = {});
  /// Waits for the data's tasks and forgets the data if it was registered only once. Afterwards the
  /// content at home is current, unless discarded.
  void remove(std::span<const Data> data, bool discard = false);
  void remove(Data data, bool discard = false) { remove(std::span(&data, 1), discard); }

  /// Creates an empty sequence.
  Sequence sequence();
  /// Waits for the sequence's tasks and forgets it.
  void remove(Sequence sequence);

  /// Submits a task. Tasks that access the same data are ordered by submission. Thread-safe.
  /// Those of other engines on its memory are waited for first, or in a body: unavailable.
  /// Errors:  invalid_argument if operands and codelet disagree or data is not this engine's;
  ///          too_large if the operands can't fit any device's memory together, naming both sizes;
  ///          unavailable if no device has a variant for it; invalid_argument if operands share
  ///          memory and one is written, naming both, or if a task in `after` may wait for it.
  Future submit(const Codelet& codelet, std::span<const Operand> operands,
                std::span<const std::byte> params = {}, SubmitOptions options = {});
  Future submit(const Codelet& codelet, std::initializer_list<Operand> operands,
                SubmitOptions options = {}) {
    return submit(codelet, std::span(operands.begin(), operands.size()), {}, options);
  }
  /// With parameters: a trivially copyable struct.
  template <class Params>
  Future submit(const Codelet& codelet, std::initializer_list<Operand> operands,
                const Params& params, SubmitOptions options = {}) {
    return submit(codelet, std::span(operands.begin(), operands.size()),
                  std::as_bytes(std::span(&params, 1)), options);
  }

  /// Waits until every task has ended and all results but kept data are home. Later tasks read what
  /// the host writes after that, except in resident data.
  ///
  /// Errors:  the first failure since the last wait, or why a task did not run that needed what an
  /// earlier failure left unwritten; deadline if `timeout` seconds pass first (the work continues);
  /// negative: no limit.
  void wait(double timeout = -1);
  /// Waits until the tasks that touch `data` have ended and its content is home, also if they wrote
  /// it elsewhere (EngineOptions::renaming_bytes). A task may wait for data that neither it touches
  /// nor a task that follows it. Errors: as wait(); unavailable within a task on a device.
  void wait(Data data, double timeout = -1);
  /// Waits until the host may read, overwrite or update the data's memory. Other tasks
  /// keep running; the access ends when the returned object is released. A thread may nest them.
  ///
  /// Errors:  as wait(data); invalid_argument for another mode, or if the data has no home on the
  ///          host; unavailable within a task, or to write data that this thread is reading.
  HostAccess on_host(Data data, Access access, double timeout = -1);
  /// Waits for a task's end; rethrows its failure. What no pending task accesses is home then.
  void wait(const Future& task, double timeout = -1);
  bool done(const Future& task) const;
  /// Declares that no later task writes the data, so that it is written back early.
  void final(Data data);
  /// Drops device replicas of data whose home is current, to measure with cold devices.
  void evict(Data data);
  /// For each datum, whether a memory space holds or is receiving its newest content.
  std::vector<bool> valid(std::span<const Data> data, SpaceId space) const;
  /// The device whose memory an address lies in; no_device for the host's.
  /// Errors: invalid_argument naming a device that the engine doesn't use.
  DeviceId device_of(const void* memory) const;
  /// Waits until the work that the caller queued on a device's stream has ended, so that tasks see
  /// it: `stream` is a CUDA handle, 1 the legacy default stream, 2 the thread's, 0 all streams.
  void synchronize(DeviceId device, std::uintptr_t stream = 0) const;
  /// Orders tasks submitted from now on that access data on a device after the work queued so far
  /// on a stream of that device, which may still write the data. Streams as for synchronize(). The
  /// device waits for the stream's event; the calling thread waits only for stream 0 and for
  /// streams of other devices. Errors: invalid_argument if the data's home is the host's memory.
  void follow(Data data, std::uintptr_t stream);
  /// Cancels tasks that have not started and waits for running ones, except the calling task. Then
  /// results of those that ended are home and the host may write its memory, as after wait(), but
  /// for content that has no way home, or whose old one (EngineOptions::renaming_bytes) another
  /// thread holds: the next wait() brings it, or says why not. What cancelled tasks should have
  /// written counts as lost until a task writes it. Within a task renamed content stays where it
  /// is. The engine stays usable. Errors: unavailable within a task on a device.
  void cancel();

  const Machine& machine() const noexcept;
  const EngineOptions& options() const noexcept;
  /// True if tasks run on the host's memory, without copies to devices: the user's memory, and with
  /// EngineOptions::renaming_bytes the engine's.
  bool host_only() const noexcept;
  Nanoseconds now() const noexcept;
  Counters counters() const;
  void reset_counters();
  /// Text that lists the waiting tasks and what each waits for.
  std::string status() const;
  /// The trace so far, in the format of docs/report.md. Errors: unavailable if tracing is off.
  std::string trace_json() const;

 private:
  friend class EngineAccess;
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  Impl& checked() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quadriga
