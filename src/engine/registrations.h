// SPDX-License-Identifier: BSD-3-Clause
// src/engine/registrations.h: an engine's data: registered, found by their memory, kept while
// somebody looks at them, and forgotten.
//
// Invariants
//   1. mutex_ guards the slots, Datum::holders and lenders, and the regions of `sharing`. It is
//      taken before the submission lock; nobody waits for tasks while holding it.
//   2. A datum is found by its memory while somebody holds a registration of it. From the last one
//      on it only goes: its tasks end, its aliases forget it, the executor does, and then its slot
//      is another's.
//   3. What pin() returned stays until unpin(), whoever removes it meanwhile.
//   4. The executor knows a datum before a task can name it, and until no task can.
#pragma once

#include <quadriga/data.h>

#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "engine/reductions.h"
#include "engine/renaming.h"
#include "engine/sharing.h"
#include "engine/waits.h"

namespace quadriga {

/// What is registered.
struct NewDatum {
  SpaceId space = host_space;
  std::byte* home = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  DType dtype = DType::bytes;
  bool keep = false;
  bool resident = false;
  bool is_private = false;
  CopyWatch* watch = nullptr;
};

/// Any thread may call anything.
class Registrations {
 public:
  struct Parts {
    const void* engine;  ///< Whose data these are, as Datum::engine says.
    Graph& graph;
    Executor& executor;
    Sharing& sharing;
    Reductions& reductions;
    Renaming& renaming;
    const Waits& waits;
    std::function<void()> before_memory;  ///< Called before the program's memory is registered.
  };
  explicit Registrations(Parts parts) : parts_(std::move(parts)) {}

  /// Errors: invalid_argument if there can't be such memory.
  Datum& add(const NewDatum& given);
  /// One registration of each, once their tasks have ended.
  void remove(std::span<const Data> given, bool discard);
  /// What holds the order of tasks only.
  Datum& add_sequence();
  /// Waits for its tasks.
  void remove_sequence(Datum& datum);

  /// Registers data once more: those that `find` names, with the lock held. What another thread is
  /// just removing is waited for until it is gone.
  std::vector<Datum*> pin(const std::function<void(std::vector<Datum*>&)>& find,
                          Nanoseconds deadline);
  /// Of aliases that another thread is just removing, `await` says whether they are waited for;
  /// else they are left out.
  std::vector<Datum*> pin_aliases(const Datum& datum, bool await, Nanoseconds deadline);
  /// Data that others have removed meanwhile are forgotten.
  void unpin(std::span<Datum* const> given);

  /// Looks at what is registered in some memory, with the lock held.
  void look(const Region& region, const std::function<void(std::span<Datum* const>)>& at);
  /// All tasks have ended, and nobody will look at the data any more: the executor forgets them.
  void close();

 private:
  Datum& take();
  void give_back(Datum& datum);
  Datum& make(const NewDatum& given);
  std::vector<Datum*> drop(std::span<Datum* const> given);
  void forget(std::span<Datum* const> leaving);

  const Parts parts_;
  std::mutex mutex_;
  std::deque<Datum> data_;
  Datum* free_ = nullptr;
};

}  // namespace quadriga
