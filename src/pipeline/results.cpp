// SPDX-License-Identifier: BSD-3-Clause
// src/pipeline/results.cpp: keeping and giving results.
#include "pipeline/results.h"

#include <utility>

namespace quadriga {

bool Results::keep(bool in_order) {
  const std::lock_guard lock(mutex_);
  if (is_kept_) return false;
  is_in_order_ = in_order;
  return is_kept_ = true;
}

bool Results::put(FlowItem& item) {
  const std::lock_guard lock(mutex_);
  if (!is_kept_) return false;
  if (is_in_order_)
    in_order_.put(item.sequence, &item);
  else
    completed_.push_back(&item);
  changed_.notify_all();
  return true;
}

void Results::wont_come(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  if (is_kept_ && is_in_order_) in_order_.put(sequence, nullptr);
  changed_.notify_all();
}

void Results::fail(const ChunkFailure& failure) {
  const std::lock_guard lock(mutex_);
  failure_ = failure;
}

void Results::end(std::exception_ptr broken) {
  const std::lock_guard lock(mutex_);
  broken_ = std::move(broken);
  over_ = true;
  changed_.notify_all();
}

FlowItem* Results::next() {
  if (is_in_order_) {
    const FlowItem* const front = in_order_.front();
    if (!front || (failure_ && front->chunk.id() > failure_->chunk)) return nullptr;
    return in_order_.take();
  }
  if (completed_.empty()) return nullptr;
  FlowItem* const item = completed_.front();
  completed_.pop_front();
  return item;
}

FlowItem* Results::take() {
  const std::lock_guard lock(mutex_);
  return next();
}

template <class Condition>
bool Results::wait(std::unique_lock<std::mutex>& lock, const Deadline& deadline,
                   Condition condition) {
  if (deadline.at()) return changed_.wait_until(lock, *deadline.at(), condition);
  changed_.wait(lock, condition);
  return true;
}

FlowItem* Results::take(const Deadline& deadline, bool& is_late) {
  std::unique_lock lock(mutex_);
  FlowItem* found = nullptr;
  is_late = !wait(lock, deadline, [&] { return (found = next()) != nullptr || over_; });
  return found;
}

bool Results::is_over() const {
  const std::lock_guard lock(mutex_);
  return over_;
}

bool Results::wait_over(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return wait(lock, deadline, [this] { return over_; });
}

std::optional<ChunkFailure> Results::take_failure() {
  const std::lock_guard lock(mutex_);
  if (broken_) std::rethrow_exception(broken_);
  return std::exchange(raised_, true) ? std::nullopt : failure_;
}

}  // namespace quadriga
