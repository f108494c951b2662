// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/mailbox.h: what has ended, told by any thread to the one that drives a run.
//
// Invariants
//   1. The mail is guarded by mutex_. has_mail_ is set with it, and cleared when it is taken:
//      whoever sets it wakes the driver.
//   2. Who posts the last mail of a run touches nothing behind it: the driver may end the run then.
#pragma once

#include <quadriga/engine.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

namespace quadriga {

struct FlowItem;
class Intake;

/// Something that has ended.
struct Mail {
  enum class Kind : std::uint8_t {
    wake,      ///< Look again.
    arrived,   ///< A source gave the chunk.
    host,      ///< A host segment has ended, of a chain of chunks.
    staged,    ///< Its head is on the device.
    computed,  ///< Its kernels have ended.
    left,      ///< Its tail is home.
    asked,     ///< A task that asks a source has ended.
  } kind = Kind::wake;
  FlowItem* item = nullptr;
  Intake* intake = nullptr;
};

/// A moment of the real clock up to which somebody waits; without one: for ever.
class Deadline {
 public:
  /// In `seconds`; negative: none.
  explicit Deadline(double seconds);
  bool has_passed() const { return at_ && std::chrono::steady_clock::now() >= *at_; }
  const std::optional<std::chrono::steady_clock::time_point>& at() const noexcept { return at_; }

 private:
  std::optional<std::chrono::steady_clock::time_point> at_;
};

class Mailbox {
 public:
  explicit Mailbox(Engine& engine) : engine_(engine) {}

  /// Any thread.
  void post(const Mail& mail);
  /// All that has come, into an empty vector.
  void take(std::vector<Mail>& into);
  bool is_empty() const noexcept { return !has_mail_.load(); }
  /// Waits for mail; under the virtual clock the caller drives the engine meanwhile. False at the
  /// deadline.
  bool wait(const Deadline& deadline);

 private:
  Engine& engine_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Mail> mail_;
  std::atomic<bool> has_mail_{false};
};

}  // namespace quadriga
