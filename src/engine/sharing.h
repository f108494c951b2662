// SPDX-License-Identifier: BSD-3-Clause
// src/engine/sharing.h: one memory, one datum: registrations of the same memory, and data whose
// memory overlaps.
//
// Invariants
//   1. The lock of Registrations guards the regions; it is taken before the submission lock, which
//      guards what data know of their aliases.
//   2. Of overlapping aliases, at most one is newer on a device than home: before an access to a
//      stale alias, a task on the host, or on the home's device, reads the written aliases, which
//      writes them back, and overwrites the stale one with that content, which drops its replicas
//      on devices.
//   3. That task is ordered like any other: it uses the data that it names.
//   4. If it can't run, as an alias is lost or the work was cancelled, the others are still newer
//      than home, and the stale one holds what it held; it lacks the rest, and is refused, until
//      it, or what was lost, is written, and another such task has run.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "engine/executor.h"
#include "graph/failures.h"
#include "graph/graph.h"
#include "graph/regions.h"

namespace quadriga {

class Sharing {
 public:
  Sharing(Graph& graph, Executor& executor, const Failures& failures, const Machine& machine,
          bool on_host)
      : graph_(graph),
        executor_(executor),
        failures_(failures),
        machine_(machine),
        on_host_(on_host) {}

  // With the lock of Registrations held.
  /// What is registered already; null if nothing is.
  Datum* find(const std::byte* home, std::int64_t rows, std::int64_t cols, std::int64_t ld,
              DType dtype) const {
    return regions_.find(home, rows, cols, ld, dtype);
  }
  /// It is known by its memory from now on, and to those that overlap it.
  void add(Datum& datum);
  /// It is found no more: who registers the memory again gets another datum.
  void leave(Datum& datum) { regions_.leave(datum); }
  /// It overlaps others no more, unless tasks touch it; false then.
  bool remove(Datum& datum);
  void overlapping(const Region& region, std::vector<Datum*>& out) const {
    regions_.overlapping(region, out);
  }

  /// Whether data may have aliases.
  bool any() const noexcept { return aliased_.load(std::memory_order_relaxed) > 0; }
  /// Whether two data overlap; takes the submission lock.
  bool overlap(const Datum& a, const Datum& b) const;
  /// Under the submission lock, before the task is linked: invariant 2.
  void before(Task& task) {
    if (any()) [[unlikely]]
      prepare(task);
  }

 private:
  void prepare(Task& task);
  void refresh(Datum& datum, Task& task);
  static void written(Datum& datum, bool with_aliases);
  void submit(Datum& stale, std::span<Datum* const> newer, Task& task);
  bool is_newer(const Datum& datum) const;

  Graph& graph_;
  Executor& executor_;
  const Failures& failures_;
  const Machine& machine_;
  const bool on_host_;  ///< Tasks run on the user's memory: nothing ever is stale.
  Regions regions_;
  std::atomic<std::size_t> aliased_{0};
};

/// For messages: "10 x 20 float64 at 0x7f...".
std::string text_of(const Datum& datum);

}  // namespace quadriga
