// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/mailbox.cpp: posting, taking and waiting for mail.
#include "pipeline/mailbox.h"

#include "engine/engine_access.h"

namespace quadriga {

Deadline::Deadline(double seconds) {
  using Clock = std::chrono::steady_clock;
  if (seconds >= 0)
    at_ = Clock::now() +
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Mailbox::post(const Mail& mail) {
  const std::lock_guard lock(mutex_);
  mail_.push_back(mail);
  if (!has_mail_.exchange(true)) arrived_.notify_one();
}

void Mailbox::take(std::vector<Mail>& into) {
  const std::lock_guard lock(mutex_);
  into.swap(mail_);
  has_mail_.store(false);
}

bool Mailbox::wait(const Deadline& deadline) {
  if (engine_.options().virtual_clock) {
    EngineAccess::wait_until(
        engine_, [&] { return has_mail_.load() || deadline.has_passed(); }, -1);
    return has_mail_.load();
  }
  std::unique_lock lock(mutex_);
  const auto has = [&] { return has_mail_.load(); };
  if (deadline.at()) return arrived_.wait_until(lock, *deadline.at(), has);
  arrived_.wait(lock, has);
  return true;
}

}  // namespace quadriga
