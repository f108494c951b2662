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
  Held held;
  try {
    while (next_batch(issuer, held.streams.empty(), batch)) {
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
bool Issuers::next_batch(Issuer& issuer, bool sleeps, std::vector<Instruction>& batch) const {
  std::unique_lock lock(issuer.mutex);
  while (sleeps && issuer.queue.empty() && !issuer.stopping) {
    issuer.asleep = true;
    issuer.changed.wait(lock);
  }
  issuer.asleep = false;
  batch.swap(issuer.queue);
  return !issuer.stopping && !stopping_.load();
}

/// Once all stop, every wait may go: whoever carries out looks for that afterwards.
bool Issuers::may_go(const Instruction& instruction, const Held& held) const {
  if (instruction.number > held.meeting) return false;
  const auto* const awaited = std::get_if<Event>(&instruction.operation);
  return !awaited || queued_[awaited->stream].load(std::memory_order_acquire) >= awaited->ticket;
}

/// Held ones come first, as they are older: each time there is time for an operation.
void Issuers::carry_out_or_hold(Instruction& instruction, Held& held) {
  if (!held.streams.empty() && instruction.ticket != 0) carry_out_held(held);
  const auto same = std::ranges::find(held.streams, instruction.stream, &HeldStream::stream);
  const bool is_free = same == held.streams.end() && may_go(instruction, held);
  if (!is_free)
    hold(instruction, held, same == held.streams.end() ? nullptr : &*same);
  else if (!stopping_.load())
    carry_out(instruction);
}

/// `stream`: what is held of its stream; null: nothing.
void Issuers::hold(Instruction& instruction, Held& held, HeldStream* stream) {
  if (!stream) {
    stream = &held.streams.emplace_back();
    stream->stream = instruction.stream;
  }
  const Launch* const launch = std::get_if<Launch>(&instruction.operation);
  if (launch && launch->meets) held.meeting = std::min(held.meeting, instruction.number);
  stream->instructions.push_back(std::move(instruction));
}

/// All that needn't be held any longer.
void Issuers::carry_out_held(Held& held) {
  bool looks_again = true;
  while (std::exchange(looks_again, false)) {
    for (HeldStream& each : held.streams)
      while (!each.instructions.empty() && may_go(each.instructions.front(), held)) {
        if (stopping_.load()) return;
        carry_out(each.instructions.front());
        looks_again |= each.instructions.front().number == held.meeting;
        each.instructions.pop_front();
      }
    std::erase_if(held.streams, [](const HeldStream& each) { return each.instructions.empty(); });
    if (looks_again) held.meeting = first_meeting(held.streams);
  }
}

/// The driver or another issuer comes to it without us.
void Issuers::await_first(const Held& held) {
  const auto number = [](const HeldStream& each) { return each.instructions.front().number; };
  const Instruction& first =
      std::ranges::min_element(held.streams, {}, number)->instructions.front();
  const Event event = std::get<Event>(first.operation);
  const std::atomic<std::uint64_t>& queued = queued_[event.stream];
  std::uint64_t reached = queued.load(std::memory_order_acquire);
  while (reached < event.ticket && !stopping_.load()) {
    queued.wait(reached, std::memory_order_acquire);
    reached = queued.load(std::memory_order_acquire);
  }
}

std::uint64_t Issuers::first_meeting(std::span<const HeldStream> streams) noexcept {
  std::uint64_t first = Held::none;
  for (const HeldStream& each : streams)
    for (const Instruction& instruction : each.instructions) {
      const Launch* const launch = std::get_if<Launch>(&instruction.operation);
      if (launch && launch->meets) first = std::min(first, instruction.number);
    }
  return first;
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
