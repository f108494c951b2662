// SPDX-License-Identifier: BSD-3-Clause
// src/message/wire/doorbell.cpp: the system calls of bells: futex and eventfd.
#include "message/wire/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace quadriga::message {
namespace {

// Not private: other processes have the word elsewhere.
void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* limit) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

}  // namespace

void Doorbell::wake_service() const noexcept {
  const std::uint64_t one = 1;
  // Full only if nobody has read 2^64 of them.
  if (event_ >= 0) static_cast<void>(!write(event_, &one, sizeof one));
}

void Doorbell::wake() const noexcept {
  const std::uint32_t armed = words_->armed.exchange(0, std::memory_order_seq_cst);
  if (armed & calls) {
    words_->bell.fetch_add(1, std::memory_order_seq_cst);
    futex(words_->bell, FUTEX_WAKE, INT_MAX, nullptr);
  }
  if (armed & service) wake_service();
}

void Doorbell::sleep(std::uint32_t seen, std::chrono::nanoseconds longest) const noexcept {
  if (longest.count() <= 0) return;
  const timespec limit{static_cast<time_t>(longest.count() / 1'000'000'000),
                       static_cast<long>(longest.count() % 1'000'000'000)};
  futex(words_->bell, FUTEX_WAIT, seen, &limit);
}

}  // namespace quadriga::message
