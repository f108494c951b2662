// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/division.h: how a task divides into finer tasks on parts of its operands.
#pragma once

#include <quadriga/codelet.h>

#include <initializer_list>

namespace quadriga {

class Subgraph;

/// The rows x cols elements of a view from (row, col) on.
///
/// Errors:  invalid_argument naming the part and the view's shape if it isn't within the view.
View part_of(const View& view, std::int64_t row, std::int64_t col, std::int64_t rows,
             std::int64_t cols);

/// Takes the fine tasks of one task, in an order in which they could run one after the other.
class Division {
 public:
  explicit Division(Subgraph& graph) noexcept : graph_(graph) {}

  /// Adds a fine task, which runs the codelet's cpu variant and mustn't call the engine. It follows
  /// those added before that access the same elements, if one of the two writes them. The codelet
  /// must outlive the task.
  ///
  /// Errors:  invalid_argument if the codelet has no cpu variant, submits, blocks, detaches or
  ///          needs a workspace on cores, if the number of operands isn't its own, or if an operand
  ///          isn't part of one of the divided task's, or is written and those are only read. The
  ///          task fails by it.
  void add(const Codelet& codelet, std::span<const View> operands,
           std::span<const std::byte> params = {});
  void add(const Codelet& codelet, std::initializer_list<View> operands) {
    add(codelet, {operands.begin(), operands.size()}, std::span<const std::byte>());
  }
  template <class Params>
  void add(const Codelet& codelet, std::initializer_list<View> operands, const Params& params) {
    static_assert(std::is_trivially_copyable_v<Params>);
    add(codelet, {operands.begin(), operands.size()}, std::as_bytes(std::span(&params, 1)));
  }

 private:
  Subgraph& graph_;
};

/// Adds the fine tasks of a task with these arguments; none: it isn't divided.
using Divide = std::function<void(const Arguments& arguments, Division& division)>;

/// When fine tasks run in place of a codelet's cpu variant.
enum class Divided : std::uint8_t {
  if_idle,  ///< Where cores are idle, which take part.
  always,   ///< Also on one core alone, one after the other: results don't depend on the load.
};

/// Lets tasks of the codelet be divided. Call it before the first submission, when `cpu` and
/// `access` are set. Fine tasks may divide in turn.
///
/// A task that runs on a core of an engine on the host's cores alone is divided when fewer ready
/// tasks than other cores are queued; idle cores then take part. Elsewhere its cpu variant runs.
/// So what fine tasks compute may depend on the load in its rounding, if the division does what
/// the variant does in another order. The first exception of a fine task fails the task; fine
/// tasks that haven't started by then, or when the task is cancelled, don't run.
///
/// Errors:  invalid_argument if the codelet has no cpu variant, or one that submits or detaches.
void set_division(Codelet& codelet, Divide divide, Divided when = Divided::if_idle);

}  // namespace quadriga
