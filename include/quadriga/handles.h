// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/handles.h: handles of tasks and of their order.
#pragma once

#include <cstdint>

namespace quadriga {

class Engine;
class EngineAccess;
struct Datum;
struct Task;

/// Order without data: tasks submitted with the same sequence run one after the other, in order of
/// submission; a failure doesn't cancel those that follow. A handle, cheap to copy; valid until
/// Engine::remove().
class Sequence {
 public:
  Sequence() = default;
  explicit operator bool() const noexcept { return datum_ != nullptr; }
  bool operator==(const Sequence&) const = default;

 private:
  friend class Engine;
  friend class EngineAccess;
  explicit Sequence(Datum* datum) : datum_(datum) {}
  Datum* datum_ = nullptr;
};

/// A task that was submitted: a handle, cheap to copy.
class Future {
 public:
  Future() = default;
  std::uint64_t id() const noexcept { return id_; }

 private:
  friend class Engine;
  friend class EngineAccess;
  Future(Task* task, std::uint64_t id) : task_(task), id_(id) {}
  Task* task_ = nullptr;
  std::uint64_t id_ = 0;
};

}  // namespace quadriga
