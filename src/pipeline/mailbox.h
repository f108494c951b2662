// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/mailbox.h: what has ended, told by any thread to the one that drives a run.
//
// Invariants
//   1. The mail is guarded by mutex_. has_mail_ is set with it, and cleared when it is taken.
//   2. One thread drives: the one whose claim() succeeded, until it calls release().
//   3. Mail is never forgotten: post() wakes the thread that waits, unless another one drives, and
//      leave() is followed by a claim. Who has released looks again whether there is mail. As both
//      flags are sequentially consistent, one of two sees what the other did.
//   4. Behind mail by post_more() the thread that waits first naps: further mail of that kind does
//      not wake it, other mail does, and after the nap it takes all. So a quick source is not
//      stopped for each of its chunks. is_napping_ is guarded by mutex_.
//   5. While drivers are expected, all cores run bodies that claim once they end: mail by
//      post_more() and post_lazily() wakes nobody. As they look again behind each release, it is
//      taken by the one that ends the expectation. What a body leaves is not lazy: it is the end
//      that was expected, and who drives meanwhile must see it.
//   6. Who posts the last mail of a run touches nothing behind it: the driver may end the run then.
//      Tasks that leave mail are waited for before the run's memory goes.
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

  // Any thread.
  void post(const Mail& mail);
  /// The same of mail that other mail follows, so that the mailbox lives on. It may be taken up to
  /// 100 µs later than it could.
  void post_more(const Mail& mail);
  /// The same, at once unless drivers are expected; this may be the last mail for long.
  void post_lazily(const Mail& mail);
  /// Wakes nobody: the caller tries to drive.
  void leave(const Mail& mail);
  bool is_empty() const noexcept { return !has_mail_.load(); }
  /// The thread that waits has to look, even if there is mail already.
  void wake();
  /// False if another thread drives.
  bool claim() noexcept { return !is_driven_.exchange(true); }
  void release() noexcept { is_driven_.store(false); }
  /// Waits for mail that nobody takes; under the virtual clock the caller drives the engine
  /// meanwhile. False at the deadline. Errors: what broke the engine.
  bool wait(const Deadline& deadline);

  // The driver's.
  /// All that has come, into an empty vector.
  void take(std::vector<Mail>& into);
  /// Whether all cores run bodies that drive when they end.
  void expect_drivers(bool expected) noexcept { drivers_expected_.store(expected); }

 private:
  void put(const Mail& mail, bool presses);
  /// Guarded by mutex_.
  bool is_due() const noexcept {
    return has_mail_.load() && !is_driven_.load() && (is_pressing_ || !drivers_expected_.load());
  }

  Engine& engine_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Mail> mail_;
  bool is_napping_ = false;
  bool is_pressing_ = false;  ///< Mail that ends a nap, and doesn't wait for drivers.
  bool more_comes_ = false;   ///< post_more() gave some of what was taken last, or is there.
  std::atomic<bool> has_mail_{false};
  std::atomic<bool> is_driven_{false};
  std::atomic<bool> drivers_expected_{false};
};

}  // namespace quadriga
