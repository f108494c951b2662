// SPDX-License-Identifier: BSD-3-Clause
// src/engine/engine_impl.h: the parts of an engine and how they are put together.
#pragma once

#include <quadriga/engine.h>

#include <deque>
#include <memory>
#include <mutex>

#include "engine/engine_access.h"
#include "engine/executor.h"
#include "engine/recorder.h"
#include "engine/reductions.h"
#include "graph/failures.h"
#include "graph/graph.h"

namespace quadriga {

struct Engine::Impl {
  Impl(EngineOptions given, const BackendWrap& wrap_backend);
  ~Impl();

  Task& acquire_slot();
  void fill(Task& task, const Codelet& codelet, std::span<const Operand> operands,
            std::span<const std::byte> params, const SubmitOptions& options);
  static void check_detached(const Codelet& codelet);
  void check_operands(const Codelet& codelet, std::span<const Operand> operands) const;
  /// A slot for data, or for a sequence.
  Datum& new_datum();
  void forget(std::span<Datum* const> data);
  Datum& add(SpaceId space, std::byte* home, std::int64_t rows, std::int64_t cols, std::int64_t ld,
             DType dtype, DataOptions data_options);
  void wait_all(double seconds);
  void wait_data(Datum& datum, double seconds);
  void wait_task(const TaskRef& ref, double seconds);
  void wait_ended(const std::vector<TaskRef>& tasks, Nanoseconds deadline);
  /// Waits for a condition that follows from ends of tasks; throws deadline with the state
  /// of things.
  void wait_until(const std::function<bool()>& condition, Nanoseconds deadline,
                  const std::string& what);
  void bring_home(std::span<Datum* const> written, Nanoseconds deadline);
  Nanoseconds deadline_after(double seconds) const;
  [[noreturn]] void fail_late(const std::string& what) const;

  int owner;  ///< process_id() of the maker.
  EngineOptions options;
  Machine machine;
  Graph graph;
  Failures failures;
  Recorder recorder;
  std::unique_ptr<Executor> executor;
  std::optional<Reductions> reductions;
  bool on_host = false;
  std::atomic<bool> refuses{false};  ///< Tasks, for the engine is about to end.

  std::mutex data_mutex;  ///< Guards the two members below.
  std::deque<Datum> data;
  Datum* free_data = nullptr;
  FreeSlots unused_slots;  ///< Guarded by data_mutex: slots of tasks that were refused.

  std::atomic<Nanoseconds> first_submission{-1};
  // At the last reset_counters().
  std::atomic<std::uint64_t> submitted_before{0};
  std::atomic<std::uint64_t> ended_before{0};
  std::atomic<std::uint64_t> failed_before{0};
};

/// An engine's executor for machines with accelerators, or under the virtual clock.
std::unique_ptr<Executor> make_driver(Graph& graph, Failures& failures, Recorder& recorder,
                                      const Machine& machine, const EngineOptions& options,
                                      const BackendWrap& wrap_backend);

}  // namespace quadriga
