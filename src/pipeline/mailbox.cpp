// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/mailbox.cpp: posting, taking and waiting for mail.
#include "pipeline/mailbox.h"

#include <algorithm>
#include <utility>

#include "engine/engine_access.h"

namespace quadriga {

Deadline::Deadline(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (seconds >= 0)
    at_ = Clock::now() +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

namespace {

/// Some times what two switches between threads take.
constexpr std::chrono::microseconds nap{50};
/// An engine that broke sends no mail: it is asked now and then.
constexpr std::chrono::milliseconds slice{200};

}  // namespace

/// Who waits is woken for the first mail, and again for the first that presses.
void Mailbox::put(const Mail& mail, bool presses) {
  const std::lock_guard lock(mutex_);
  mail_.push_back(mail);
  const bool had_mail = has_mail_.exchange(true);
  const bool has_woken = presses ? std::exchange(is_pressing_, true) : had_mail;
  if (!has_woken && is_due()) arrived_.notify_one();
}

void Mailbox::post(const Mail& mail) { put(mail, true); }

void Mailbox::post_lazily(const Mail& mail) { put(mail, !drivers_expected_.load()); }

void Mailbox::post_more(const Mail& mail) {
  bool has_come = false;
  {
    const std::lock_guard lock(mutex_);
    mail_.push_back(mail);
    more_comes_ = true;
    has_come = !has_mail_.exchange(true) && is_due() && !is_napping_;
  }
  if (has_come) arrived_.notify_one();
}

void Mailbox::wake() {
  const std::lock_guard lock(mutex_);
  is_pressing_ = true;
  has_mail_.store(true);
  arrived_.notify_one();
}

void Mailbox::leave(const Mail& mail) {
  const std::lock_guard lock(mutex_);
  mail_.push_back(mail);
  is_pressing_ = true;  // the body has ended, whose end may have been all that was expected
  has_mail_.store(true);
}

void Mailbox::take(std::vector<Mail>& into) {
  const std::lock_guard lock(mutex_);
  into.swap(mail_);
  is_pressing_ = false;
  has_mail_.store(false);
}

bool Mailbox::wait(const Deadline& deadline) {
  if (engine_.options().virtual_clock) {
    EngineAccess::wait_until(
        engine_, [&] { return has_mail_.load() || deadline.has_passed(); }, -1);
    return has_mail_.load();
  }
  std::unique_lock lock(mutex_);
  if (std::exchange(more_comes_, false)) {
    is_napping_ = true;
    arrived_.wait_for(lock, nap, [&] { return is_pressing_ && is_due(); });
    is_napping_ = false;
  }
  const auto is_due_now = [&] { return is_due(); };
  while (true) {
    auto until = std::chrono::steady_clock::now() + slice;
    if (deadline.at()) until = std::min(until, *deadline.at());
    if (arrived_.wait_until(lock, until, is_due_now)) return true;
    if (deadline.has_passed()) return false;
    lock.unlock();
    static_cast<void>(EngineAccess::wait_until(
        engine_, [] { return false; }, 0));
    lock.lock();
  }
}

}  // namespace quadriga
