// SPDX-License-Identifier: BSD-3-Clause
// src/engine/renaming.h: other memory for what tasks overwrite, so that they needn't wait for the
// readers of the old content.
//
// A task that writes a datum wholly while tasks that read it are pending writes to a name: memory
// of the engine's own, which stands for the datum in later tasks until the next such write, or
// until somebody looks at the datum's own memory. Then a task copies the name's content home.
//
// Invariants
//   1. The submission lock guards the names and Datum::renamed. Which memory an operand means is
//      settled when its task is linked, and stays.
//   2. The newest content is in Datum::renamed, or in the datum itself if that is null.
//   3. A name serves another datum once all tasks that touch it have ended. For the same datum it
//      serves again earlier if the limit allows no other: the places of a datum take turns, and a
//      write waits for readers that are as many contents old as there are places.
//   4. All names together, used and idle ones, have at most the limit's bytes.
//   5. No names have: aliases, residents, what is the library's own or lies on a device. Content is
//      brought home before gangs, bodies that submit, detach or block, commute, and reduce; for a
//      child whose ancestors don't touch it, unless behind tasks submitted after the outermost one.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "engine/executor.h"
#include "engine/sharing.h"
#include "graph/graph.h"

namespace quadriga {

class Renaming {
 public:
  /// `limit` in bytes; 0: nothing is renamed.
  Renaming(Graph& graph, Executor& executor, Sharing& sharing, const Machine& machine,
           std::size_t limit);

  /// Under the submission lock, before the task is linked: its operands become what they mean.
  void before(Task& task) {
    if (limit_ > 0) [[unlikely]]
      prepare(task);
  }
  /// Under the submission lock: submits the task that copies the datum's newest content home, if it
  /// isn't there; whether it did.
  bool bring_home_locked(Datum& datum);

  bool is_on() const noexcept { return limit_ > 0; }

  // These take the submission lock.
  void bring_home(Datum& datum);
  void bring_all_home();
  /// Only what no task touches and no host access holds, so that nobody is waited for; the copies.
  std::vector<TaskRef> bring_idle_home();
  /// After tasks were cancelled: what their copies should have brought home is still in the names.
  void keep_what_was_not_copied();
  /// Where the newest content is.
  Datum& current(Datum& datum);
  /// Adds the pending tasks that touch what stands, or stood, for the datum.
  void collect(const Datum& datum, std::vector<TaskRef>& out);
  /// Whether the datum has names, so that a task which overwrites it needn't follow those before.
  bool has_names(const Datum& datum);
  /// Of the task that wrote the newest content, or overwrites it; 0: there was none.
  std::uint64_t newest_writer(const Datum& datum);
  /// Adds the numbers of pending tasks that an access of the host's has to follow: those in its
  /// way, or in that of the copy that comes before it, as far as it is known what that followed.
  void collect_before_host(Datum& datum, Access access, std::vector<std::uint64_t>& out);
  /// Data are removed: their tasks have ended, and their content isn't wanted any more.
  void forget(std::span<Datum* const> leaving);
  /// Idle names give their memory back.
  void trim() { remove(false); }
  /// All do: all tasks have ended, and nobody will look at the data.
  void close() { remove(true); }
  RenamingCounters counters();
  void reset_counters();

 private:
  struct Name : Datum {
    Datum* of = nullptr;  ///< Whom it stands for, or did last; null: removed since.
    TaskRef copy;         ///< The last one of its content home.
    /// Of the tasks that `copy` had to follow, the one that was submitted last.
    std::uint64_t copy_follows = 0;
    bool is_current() const noexcept { return of && of->renamed == this; }
  };
  using Shape = std::tuple<std::int64_t, std::int64_t, DType>;
  static Shape shape_of(const Datum& datum) { return {datum.rows, datum.cols, datum.dtype}; }

  void prepare(Task& task);
  void prepare_child(Task& task);
  void follow_home(Task& child, Datum& datum, const Task& outermost);
  std::uint64_t last_before_copy(Datum& datum);
  void lose(Datum& datum);
  Datum& place_to_write(Datum& datum);
  Datum* other_place(Datum& datum);
  void move(Datum& datum, Datum& place);
  Name* take(Datum& datum);
  Name* make(const Datum& datum);
  void remove(bool all);
  static bool may_have_names(const Datum& datum) noexcept;
  bool is_idle(Datum& datum);
  bool is_read(const Datum& datum) const;
  template <class Visit>
  void for_each_copied(const Datum& datum, Visit&& visit) const;

  Graph& graph_;
  Executor& executor_;
  Sharing& sharing_;
  const std::size_t limit_;
  Codelet copy_;                                ///< Of a name's content into its datum.
  std::vector<std::unique_ptr<Name>> names_;    ///< In the order in which they were made.
  std::map<Shape, std::deque<Name*>> retired_;  ///< The oldest first.
  /// By datum: itself and the names whose `of` it is. What holds the newest content comes last.
  std::unordered_map<const Datum*, std::vector<Datum*>> places_;
  std::size_t bytes_ = 0;  ///< Of all names.
  RenamingCounters counters_;
};

}  // namespace quadriga
