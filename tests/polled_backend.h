// SPDX-License-Identifier: BSD-3-Clause
// tests/polled_backend.h: the least that drives a kind of devices that nobody knew: memory of its
// own, streams that are one queue, and kernels that queue on a stream of its own making.
#pragma once

#include <quadriga/error.h>
#include <quadriga/machine.h>

#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/alarm.h"
#include "device/backend.h"
#include "device/operation.h"

namespace quadriga {

/// What variants get as their native stream: they queue on it.
using PolledStream = std::vector<std::function<void()>>;

/// Runs what is queued when it is asked what has ended, and tells nobody. Kernels named "refused"
/// that cost something are refused when they are queued.
class PolledBackend : public Backend {
 public:
  explicit PolledBackend(Machine machine)
      : machine_(std::move(machine)), used_(machine_.devices.size(), 0) {}

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    if (bytes > machine_.devices[device].memory_bytes - used_[device]) return nullptr;
    used_[device] += bytes;
    auto block = std::make_unique<std::byte[]>(bytes);
    std::byte* const memory = block.get();
    blocks_.emplace(memory, Block{std::move(block), bytes, device});
    return memory;
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) return;
    used_[device] -= found->second.bytes;
    blocks_.erase(found);
  }
  DeviceId holder(const void* memory) const override {
    const std::lock_guard lock(mutex_);
    const auto* const at = static_cast<const std::byte*>(memory);
    const auto next = blocks_.upper_bound(const_cast<std::byte*>(at));
    if (next == blocks_.begin()) return no_device;
    const auto& [first, block] = *std::prev(next);
    return at < first + block.bytes ? block.device : no_device;
  }
  StreamId create_stream(DeviceId, StreamKind) override {
    const std::lock_guard lock(mutex_);
    issued_.push_back(0);
    return static_cast<StreamId>(issued_.size() - 1);
  }
  Event copy(StreamId stream, const Copy& copy) override {
    check_copy(machine_, copy, machine_.route(copy.from, copy.to));
    return queue(stream, [copy] { move_bytes(copy); });
  }
  Event launch(StreamId stream, const Launch& launch) override {
    if (launch.name == "refused" && launch.cost.volume > 0) fail(Errc::unavailable, "no room");
    return queue(stream, [launch] {
      PolledStream native;
      std::function<void()> on_end;
      Arguments arguments = launch.arguments;
      arguments.stream = &native;
      arguments.on_end = &on_end;
      (*launch.kernel)(arguments);
      for (const std::function<void()>& queued : native) queued();
      if (on_end) on_end();
    });
  }
  void wait(StreamId, Event) override {}  // All run in the order of calls.
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override {
    if (run_one(out.front())) return 1;
    alarm_.sleep_until(deadline);
    return run_one(out.front()) ? 1 : 0;
  }
  void wake() noexcept override { alarm_.ring(); }
  Nanoseconds now() const noexcept override { return alarm_.now(); }
  bool is_virtual() const noexcept override { return false; }
  bool pin(std::byte*, std::size_t) override { return false; }
  void unpin(std::byte*, std::size_t) noexcept override {}
  const Machine& machine() const noexcept override { return machine_; }

 private:
  struct Block {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes;
    DeviceId device;
  };
  struct Queued {
    Event event;
    std::function<void()> work;
  };
  Event queue(StreamId stream, std::function<void()> work) {
    Event event{stream, 0};
    {
      const std::lock_guard lock(mutex_);
      event.ticket = ++issued_[stream];
      queue_.push_back({event, std::move(work)});
    }
    alarm_.ring();
    return event;
  }
  bool run_one(Completion& done) {
    Queued next;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.empty()) return false;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    done = {next.event, now(), 0, nullptr};
    try {
      next.work();
    } catch (...) {
      done.error = std::current_exception();
    }
    done.end = now();
    return true;
  }

  const Machine machine_;
  Alarm alarm_;
  mutable std::mutex mutex_;            // Guards what follows.
  std::vector<std::size_t> used_;       // By device.
  std::map<std::byte*, Block> blocks_;  // What devices have given.
  std::vector<std::uint64_t> issued_;   // By stream.
  std::deque<Queued> queue_;
};

}  // namespace quadriga
