// SPDX-License-Identifier: BSD-3-Clause
// src/engine/holds.h: the host's access to data among tasks, see hold.h.
//
// Invariants
//   1. An access is linked, under the submission lock, in the same step that finds no conflicting
//      task; before that it waits for those found, without any lock.
//   2. Once linked it is in `open` until it ends: at once if it can't be granted, by who asked for
//      it, or by the engine's end. Whoever takes Hold::of out of it ends it, and no other; the
//      engine lives until all that were taken have ended (await_ended()).
//   3. While it waits and lasts its data are registered: by who names them, or by `registered`.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/registrations.h"
#include "graph/failures.h"

namespace quadriga {

/// Any thread may call anything.
class Holds {
 public:
  struct Parts {
    Graph& graph;
    Executor& executor;
    Failures& failures;
    Sharing& sharing;
    Reductions& reductions;
    Renaming& renaming;
    Registrations& registrations;
    const Waits& waits;
    OpenHolds& open;
    bool on_host;  ///< Tasks run on the user's memory: nothing has to be moved.
  };
  explicit Holds(const Parts& parts) : parts_(parts) {}

  /// Waits until the host may touch these data, and aliases of theirs. `names_lost`, `passes`: as
  /// of Hold. Errors: as Engine::on_host().
  std::shared_ptr<Hold> hold(std::vector<HeldDatum> wanted, Nanoseconds deadline,
                             bool names_lost = false, bool passes = false);
  /// The same for whatever is registered in some memory; null: nothing is, or this thread is in a
  /// body.
  std::shared_ptr<Hold> hold_regions(std::span<const HeldRegion> regions, Nanoseconds deadline,
                                     bool names_lost, bool passes = false);
  /// Once; again it does nothing, nor in a child of fork(), where the access is still the parent's.
  /// Also beside the engine's end.
  static void end(Hold& hold);
  /// Whether tasks wait for it; false once somebody ends it. Also beside the engine's end.
  static bool is_awaited(const Hold& hold) noexcept;
  /// The same; what goes wrong is some task's, and told by who waits for it.
  static void release(Hold& hold) noexcept;
  /// Those that nobody would end.
  void end_all();
  /// Before the engine goes: others may just end theirs.
  void await_ended() const noexcept;
  /// Whether no task is to write any of the data, and what home holds is the newest content.
  bool are_home(std::span<Datum* const> all) const;

 private:
  bool begin(Hold& hold, std::span<const HeldDatum> mine, std::vector<TaskRef>& conflicts);
  void open(const std::shared_ptr<Hold>& hold);
  void await_turn(const Hold& hold, const std::vector<TaskRef>& conflicts, Nanoseconds deadline);
  void settle(Hold& hold, Nanoseconds deadline);
  static std::vector<Datum*> registered_since(const Hold& hold);
  void end_taken(Hold& hold);

  const Parts parts_;
  std::atomic<std::size_t> lasting_{0};  ///< Holds of this that haven't ended.
};

}  // namespace quadriga
