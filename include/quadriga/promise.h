// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/promise.h: the end of a task, in the hands of the program.
#pragma once

#include <exception>
#include <memory>

namespace quadriga {

/// What a task whose codelet detaches is ended with, once, by any thread: its body copies it from
/// its arguments, see Codelet::detaches. Until then the task's operands stay where the body saw
/// them, and its successors wait. Cheap to copy. If all copies go without a call, the task fails.
class Promise {
 public:
  Promise() = default;
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// The task has ended: what it should write is written. False if the promise was kept before.
  bool set_value() const;
  /// The task has failed: who waits for it gets the error, and what it should write is lost. False
  /// if the promise was kept before.
  bool set_exception(std::exception_ptr error) const;
  /// The work isn't wanted any more, and somebody waits for its end: Engine::cancel() was called,
  /// or the engine goes. False once the promise is kept.
  bool cancelled() const;

 private:
  friend class PromiseAccess;
  class PromisedTask;
  explicit Promise(std::shared_ptr<PromisedTask> state) : state_(std::move(state)) {}
  std::shared_ptr<PromisedTask> state_;
};

}  // namespace quadriga
