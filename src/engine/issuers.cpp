// SPDX-License-Identifier: BSD-3-Clause
// src/engine/issuers.cpp: the threads that queue, and the bookkeeping of what could not be queued.
#include "engine/issuers.h"

#include <quadriga/error.h>

#include <algorithm>
#include <utility>

namespace quadriga {

std::uint64_t Refusals::to_backend(std::uint64_t ticket) const noexcept {
  const auto after = std::ranges::upper_bound(all_, ticket, {}, &Refusal::ticket);
  return ticket - static_cast<std::uint64_t>(after - all_.begin());
}

const Refusals::Refusal* Refusals::find(std::uint64_t ticket) const noexcept {
  const auto found = std::ranges::lower_bound(all_, ticket, {}, &Refusal::ticket);
  return found != all_.end() && found->ticket == ticket ? &*found : nullptr;
}

Issuers::Issuers(Backend& backend, std::vector<DeviceId> device_of_stream, bool threads)
    : backend_(backend), device_of_stream_(std::move(device_of_stream)) {
  for (std::size_t i = 0; i < device_of_stream_.size(); ++i) streams_.emplace_back();
  if (!threads) return;
  const auto last = std::ranges::max_element(device_of_stream_);
  const std::size_t count = last == device_of_stream_.end() ? 0 : *last + std::size_t{1};
  for (std::size_t device = 0; device < count; ++device)
    issuers_.push_back(std::make_unique<Issuer>());
  for (const std::unique_ptr<Issuer>& issuer : issuers_)
    issuer->thread = std::thread([this, &issuer = *issuer] { loop(issuer); });
}

Issuers::~Issuers() { stop(); }

void Issuers::stop() noexcept {
  stopping_.store(true);
  for (const std::unique_ptr<Issuer>& issuer : issuers_) {
    {
      std::lock_guard lock(issuer->mutex);
      issuer->stopping = true;
    }
    issuer->changed.notify_one();
  }
  for (Stream& stream : streams_) stream.queued.notify_all();
  for (const std::unique_ptr<Issuer>& issuer : issuers_)
    if (issuer->thread.joinable()) issuer->thread.join();
  issuers_.clear();
}

void Issuers::take(Instructions& instructions) {
  const std::span<const Instruction> pending = instructions.pending();
  if (pending.empty()) return;
  if (is_broken_.load(std::memory_order_acquire)) rethrow_if_broken();
  if (issuers_.empty())
    for (const Instruction& instruction : pending) carry_out(instruction);
  else
    hand_over(pending);
  instructions.clear();
}

/// Instructions of one task go to one device, mostly: runs of them are handed over at once.
void Issuers::hand_over(std::span<const Instruction> instructions) {
  while (!instructions.empty()) {
    const DeviceId device = device_of_stream_[instructions.front().stream];
    const auto other = std::ranges::find_if(instructions, [&](const Instruction& each) {
      return device_of_stream_[each.stream] != device;
    });
    Issuer& issuer = *issuers_[device];
    bool wakes = false;
    {
      std::lock_guard lock(issuer.mutex);
      issuer.queue.insert(issuer.queue.end(), instructions.begin(), other);
      wakes = std::exchange(issuer.asleep, false);
    }
    if (wakes) issuer.changed.notify_one();
    instructions = {other, instructions.end()};
  }
}

void Issuers::loop(Issuer& issuer) {
  std::vector<Instruction> batch;
  while (true) {
    {
      std::unique_lock lock(issuer.mutex);
      while (issuer.queue.empty() && !issuer.stopping) {
        issuer.asleep = true;
        issuer.changed.wait(lock);
      }
      if (issuer.stopping) return;
      issuer.asleep = false;
      batch.swap(issuer.queue);
    }
    try {
      for (const Instruction& instruction : batch) {
        if (stopping_.load(std::memory_order_relaxed)) return;
        carry_out(instruction);
      }
    } catch (...) {
      break_down(std::current_exception());
      return;
    }
    batch.clear();
  }
}

void Issuers::carry_out(const Instruction& instruction) {
  Stream& stream = streams_[instruction.stream];
  const Event* const awaited = std::get_if<Event>(&instruction.operation);
  if (!awaited) return queue_operation(instruction, stream);
  await_queued(*awaited);
  Event event = *awaited;
  if (any_refused_.load(std::memory_order_acquire)) {
    std::lock_guard lock(refusals_mutex_);
    event.ticket = streams_[event.stream].refusals.to_backend(event.ticket);
  }
  backend_.wait(instruction.stream, event);
}

/// An operation of another device has a smaller number: its issuer comes to it without us.
void Issuers::await_queued(Event event) {
  if (issuers_.empty()) return;
  std::atomic<std::uint64_t>& queued = streams_[event.stream].queued;
  std::uint64_t reached = queued.load(std::memory_order_acquire);
  while (reached < event.ticket && !stopping_.load()) {
    queued.wait(reached, std::memory_order_acquire);
    reached = queued.load(std::memory_order_acquire);
  }
}

void Issuers::queue_operation(const Instruction& instruction, Stream& stream) {
  const Launch* const launch = std::get_if<Launch>(&instruction.operation);
  if (launch) {
    try {
      backend_.launch(instruction.stream, *launch);
    } catch (...) {
      {
        std::lock_guard lock(refusals_mutex_);
        stream.refusals.add(instruction.ticket, std::current_exception());
      }
      any_refused_.store(true, std::memory_order_release);
      if (!issuers_.empty()) backend_.wake();
    }
  } else {
    backend_.copy(instruction.stream, std::get<Copy>(instruction.operation));
  }
  stream.queued.store(instruction.ticket, std::memory_order_release);
  if (!issuers_.empty()) stream.queued.notify_all();
}

/// A bug of ours or of the backend's: the driver is told, and other issuers wait for nothing.
void Issuers::break_down(std::exception_ptr error) noexcept {
  {
    std::lock_guard lock(refusals_mutex_);
    if (!broken_) broken_ = std::move(error);
  }
  is_broken_.store(true, std::memory_order_release);
  stopping_.store(true);
  // A value that nobody waits for: whoever waits looks again.
  for (Stream& stream : streams_) {
    stream.queued.store(UINT64_MAX, std::memory_order_release);
    stream.queued.notify_all();
  }
  backend_.wake();
}

void Issuers::rethrow_if_broken() {
  std::lock_guard lock(refusals_mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

/// Ends in the backend's count, of which some may follow operations that were refused.
void Issuers::hold(std::span<const Completion> ended) {
  std::lock_guard lock(refusals_mutex_);
  const auto end_refused = [&](StreamId id) {
    Stream& stream = streams_[id];
    while (const Refusals::Refusal* const refusal = stream.refusals.find(stream.ended + 1)) {
      const Nanoseconds now = backend_.now();
      held_.push_back({{id, ++stream.ended}, now, now, refusal->error});
    }
  };
  // What waits for a refused operation waits for the one before it: it must not overtake.
  for (StreamId id = 0; id < streams_.size(); ++id) end_refused(id);
  for (const Completion& each : ended) {
    held_.push_back(each);
    held_.back().event.ticket = ++streams_[each.event.stream].ended;
    end_refused(each.event.stream);
  }
}

std::size_t Issuers::take_held(std::span<Completion> out) {
  std::size_t count = 0;
  for (; count < out.size() && !held_.empty(); held_.pop_front())
    out[count++] = std::move(held_.front());
  return count;
}

std::size_t Issuers::next(std::span<Completion> out, Nanoseconds deadline) {
  if (any_refused_.load(std::memory_order_acquire)) hold({});
  if (!held_.empty()) return take_held(out);
  const std::size_t count = backend_.next_completion(out, deadline);
  if (is_broken_.load(std::memory_order_acquire)) rethrow_if_broken();
  if (any_refused_.load(std::memory_order_acquire)) {
    hold(out.first(count));
    return take_held(out);
  }
  for (const Completion& completion : out.first(count))
    streams_[completion.event.stream].ended = completion.event.ticket;
  return count;
}

}  // namespace quadriga
