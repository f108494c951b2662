// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/data.h: registered memory, and the host's access to it.
#pragma once

#include <memory>

namespace quadriga {

class Engine;
class EngineAccess;
struct Datum;
struct Hold;

/// A registered tile: a handle, cheap to copy. Valid until Engine::remove().
class Data {
 public:
  Data() = default;
  explicit operator bool() const noexcept { return datum_ != nullptr; }
  bool operator==(const Data&) const = default;

 private:
  friend class Engine;
  friend class EngineAccess;
  explicit Data(Datum* datum) : datum_(datum) {}
  Datum* datum_ = nullptr;
};

/// How long devices keep replicas of data.
struct DataOptions {
  bool keep = false;  ///< Written back only by eviction, wait(data) or access.
  /// Replicas on devices outlive wait(); the host may then access the memory only within
  /// on_host(), whichever registration it uses. Otherwise wait() drops them.
  bool resident = false;
};

/// The host's access to data, from Engine::on_host() until it is released or destroyed, or the
/// engine ends, beside which release() may be called. Conflicting tasks submitted in between wait
/// for its end.
class HostAccess {
 public:
  HostAccess() = default;
  HostAccess(HostAccess&& other) noexcept = default;
  HostAccess& operator=(HostAccess&& other) noexcept;
  ~HostAccess() { release(); }
  void release() noexcept;
  /// Whether tasks wait for it.
  bool is_awaited() const noexcept;

 private:
  friend class Engine;
  friend class EngineAccess;
  std::shared_ptr<Hold> hold_;
};

}  // namespace quadriga
