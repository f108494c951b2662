// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/promise.h: lets the program end a task from outside its body.
#pragma once

#include <exception>
#include <memory>

namespace quadriga {

/// Ends a task whose codelet detaches (Codelet::detaches), once, from any thread. The body copies
/// the promise from its arguments. Until then operands stay in place and successors wait.
/// Cheap to copy. If all copies are destroyed without a call, the task fails.
class Promise {
 public:
  Promise() = default;
  explicit operator bool() const noexcept { return state_ != nullptr; }

  /// Ends the task: its results are written. False if the task had ended before.
  bool set_value() const;
  /// Fails the task: waits for it rethrow the error, and its results are lost. False if the task
  /// had ended before.
  bool set_exception(std::exception_ptr error) const;
  /// Whether the work is no longer needed: Engine::cancel() was called, or the engine is being
  /// destroyed. False once the task has ended.
  bool cancelled() const;

 private:
  friend class PromiseAccess;
  class PromisedTask;
  explicit Promise(std::shared_ptr<PromisedTask> state) : state_(std::move(state)) {}
  std::shared_ptr<PromisedTask> state_;
};

}  // namespace quadriga
