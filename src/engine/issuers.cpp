// SPDX-License-Identifier: BSD-3-Clause
// src/engine/issuers.cpp: the threads that queue, and how they wait for each other.
#include "engine/issuers.h"

#include <quadriga/error.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/thread.h"

namespace quadriga {

Issuers::Issuers(Backend& backend, std::vector<DeviceId> device_of_stream, bool threads)
    : backend_(backend), device_of_stream_(std::move(device_of_stream)) {
  for (std::size_t i = 0; i < device_of_stream_.size(); ++i) queued_.emplace_back(0);
  if (!threads) return;
  const auto last = std::ranges::max_element(device_of_stream_);
  const std::size_t count = last == device_of_stream_.end() ? 0 : *last + std::size_t{1};
  for (std::size_t device = 0; device < count; ++device)
    issuers_.push_back(std::make_unique<Issuer>());
  try {
    for (const std::unique_ptr<Issuer>& issuer : issuers_)
      issuer->thread = start_thread("quadriga issuer", [this, &issuer = *issuer] { loop(issuer); });
  } catch (...) {
    stop();
    throw;
  }
}

Issuers::~Issuers() { stop(); }

void Issuers::stop() noexcept {
  let_go();
  for (const std::unique_ptr<Issuer>& issuer : issuers_) {
    {
      std::lock_guard lock(issuer->mutex);
      issuer->stopping = true;
    }
    issuer->changed.notify_one();
  }
  for (const std::unique_ptr<Issuer>& issuer : issuers_)
    if (issuer->thread.joinable()) issuer->thread.join();
  issuers_.clear();
}

void Issuers::take(Instructions& instructions) {
  const std::span<Instruction> pending = instructions.pending();
  if (pending.empty()) return;
  if (is_broken_.load(std::memory_order_acquire)) rethrow_if_broken();
  if (issuers_.empty())
    for (const Instruction& instruction : pending) carry_out(instruction);
  else
    deal_out(pending);
  instructions.clear();
}

/// Instructions of one task go to one device, mostly: runs of them are dealt out at once.
void Issuers::deal_out(std::span<Instruction> instructions) {
  constexpr std::size_t host_and_a_device = 2;
  const bool keeps_back = issuers_.size() > host_and_a_device;
  while (!instructions.empty()) {
    const DeviceId device = device_of_stream_[instructions.front().stream];
    const auto other = std::ranges::find_if(instructions, [&](const Instruction& each) {
      return device_of_stream_[each.stream] != device;
    });
    Issuer& issuer = *issuers_[device];
    issuer.kept.insert(issuer.kept.end(), std::make_move_iterator(instructions.begin()),
                       std::make_move_iterator(other));
    if (!keeps_back || issuer.asleep.load(std::memory_order_relaxed)) hand_over(issuer);
    instructions = {other, instructions.end()};
  }
}

void Issuers::hand_over(Issuer& issuer) {
  if (issuer.kept.empty()) return;
  bool wakes = false;
  {
    std::lock_guard lock(issuer.mutex);
    if (issuer.queue.empty())
      issuer.queue.swap(issuer.kept);
    else
      std::ranges::move(issuer.kept, std::back_inserter(issuer.queue));
    wakes = issuer.asleep.exchange(false);
  }
  if (wakes) issuer.changed.notify_one();
  issuer.kept.clear();
}

void Issuers::loop(Issuer& issuer) {
  std::vector<Instruction> batch;
  std::vector<Held> held;  // Each has some.
  try {
    while (next_batch(issuer, held.empty(), batch)) {
      for (Instruction& instruction : batch) {
        if (stopping_.load()) return;
        carry_out_or_hold(instruction, held);
      }
      if (batch.empty()) await_first(held);
      carry_out_held(held);
      batch.clear();
    }
  } catch (...) {
    break_down(std::current_exception());
  }
}

/// False if the issuer stops. Without sleep the batch may be empty.
bool Issuers::next_batch(Issuer& issuer, bool sleeps, std::vector<Instruction>& batch) {
  std::unique_lock lock(issuer.mutex);
  while (sleeps && issuer.queue.empty() && !issuer.stopping) {
    issuer.asleep = true;
    issuer.changed.wait(lock);
  }
  issuer.asleep = false;
  batch.swap(issuer.queue);
  return !issuer.stopping;
}

/// Whether what a wait is for isn't queued.
bool Issuers::is_early(const Instruction& instruction) const {
  const auto* const awaited = std::get_if<Event>(&instruction.operation);
  return awaited && queued_[awaited->stream].load(std::memory_order_acquire) < awaited->ticket;
}

/// Held ones come first, as they are older: each time there is time for an operation.
void Issuers::carry_out_or_hold(Instruction& instruction, std::vector<Held>& held) {
  if (!held.empty() && instruction.ticket != 0) carry_out_held(held);
  const auto same = std::ranges::find(held, instruction.stream, &Held::stream);
  if (same != held.end()) {
    same->instructions.push_back(std::move(instruction));
  } else if (is_early(instruction)) {
    held.emplace_back().stream = instruction.stream;
    held.back().instructions.push_back(std::move(instruction));
  } else {
    carry_out(instruction);
  }
}

/// All that needn't be held any longer.
void Issuers::carry_out_held(std::vector<Held>& held) {
  for (Held& each : held)
    while (!each.instructions.empty() && !is_early(each.instructions.front())) {
      if (stopping_.load()) return;
      carry_out(each.instructions.front());
      each.instructions.pop_front();
    }
  std::erase_if(held, [](const Held& each) { return each.instructions.empty(); });
}

/// The driver or another issuer comes to it without us.
void Issuers::await_first(const std::vector<Held>& held) {
  const auto number = [](const Held& each) { return each.instructions.front().number; };
  const Instruction& first = std::ranges::min_element(held, {}, number)->instructions.front();
  const Event event = std::get<Event>(first.operation);
  const std::atomic<std::uint64_t>& queued = queued_[event.stream];
  std::uint64_t reached = queued.load(std::memory_order_acquire);
  while (reached < event.ticket && !stopping_.load()) {
    queued.wait(reached, std::memory_order_acquire);
    reached = queued.load(std::memory_order_acquire);
  }
}

void Issuers::carry_out(const Instruction& instruction) {
  quadriga::carry_out(instruction, backend_);
  if (issuers_.empty() || instruction.ticket == 0) return;
  std::atomic<std::uint64_t>& queued = queued_[instruction.stream];
  queued.store(instruction.ticket, std::memory_order_release);
  queued.notify_all();
}

/// A bug of ours or of the backend's: the driver is told, and other issuers wait for nothing.
void Issuers::break_down(std::exception_ptr error) noexcept {
  {
    std::lock_guard lock(broken_mutex_);
    if (!broken_) broken_ = std::move(error);
  }
  is_broken_.store(true, std::memory_order_release);
  let_go();
  backend_.wake();
}

/// Whoever waits for another issuer looks again, and gives up.
void Issuers::let_go() noexcept {
  stopping_.store(true);
  for (std::atomic<std::uint64_t>& queued : queued_) {
    queued.store(UINT64_MAX, std::memory_order_release);
    queued.notify_all();
  }
}

void Issuers::rethrow_if_broken() {
  std::lock_guard lock(broken_mutex_);
  if (broken_) std::rethrow_exception(broken_);
}

std::size_t Issuers::next(std::span<Completion> out, Nanoseconds deadline) {
  for (const std::unique_ptr<Issuer>& issuer : issuers_) hand_over(*issuer);
  const std::size_t count = backend_.next_completion(out, deadline);
  if (is_broken_.load(std::memory_order_acquire)) rethrow_if_broken();
  return count;
}

}  // namespace quadriga
