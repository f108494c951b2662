// SPDX-License-Identifier: BSD-3-Clause
// bench/timed_backend.cpp: two readings of the steady clock around each call, and what they cost.
#include "timed_backend.h"

#include <quadriga/error.h>
#include <time.h>

#include <algorithm>
#include <chrono>

#include "line.h"

namespace quadriga::bench {
namespace {

using std::chrono::steady_clock;

/// Notes a call from its construction to its destruction. A reading of the thread's CPU time is
/// a call of the system, ten times as long as one of the steady clock and as long as what it
/// would measure.
class Stopwatch {
 public:
  explicit Stopwatch(BackendTime& time) : time_(time), begin_(steady_clock::now()) {}
  ~Stopwatch() {
    time_.seconds += std::chrono::duration<double>(steady_clock::now() - begin_).count();
    ++time_.calls;
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  BackendTime& time_;
  steady_clock::time_point begin_;
};

class Timed final : public Backend {
 public:
  Timed(std::unique_ptr<Backend> inner, BackendTime& time)
      : inner_(std::move(inner)), time_(time) {}

  std::byte* allocate(DeviceId device, std::size_t bytes) override {
    return inner_->allocate(device, bytes);
  }
  void deallocate(DeviceId device, std::byte* memory) noexcept override {
    inner_->deallocate(device, memory);
  }
  StreamId create_stream(DeviceId device, StreamKind kind) override {
    return inner_->create_stream(device, kind);
  }
  Event copy(StreamId stream, const Copy& copy) override {
    const Stopwatch watch(time_);
    return inner_->copy(stream, copy);
  }
  Event launch(StreamId stream, const Launch& launch) override {
    const Stopwatch watch(time_);
    ++time_.launches;
    return inner_->launch(stream, launch);
  }
  void wait(StreamId stream, Event event) override {
    const Stopwatch watch(time_);
    inner_->wait(stream, event);
  }
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override {
    const Stopwatch watch(time_);
    return inner_->next_completion(out, deadline);
  }
  void wake() noexcept override { inner_->wake(); }
  /// One load: the caller's.
  Nanoseconds now() const noexcept override {
    if (time_.calls == 0) time_.before_operations = thread_seconds();
    return inner_->now();
  }
  bool is_virtual() const noexcept override { return inner_->is_virtual(); }
  bool pin(std::byte* memory, std::size_t bytes) override { return inner_->pin(memory, bytes); }
  void unpin(std::byte* memory, std::size_t bytes) noexcept override {
    inner_->unpin(memory, bytes);
  }
  DeviceId holder(const void* memory) const override { return inner_->holder(memory); }
  void synchronize(DeviceId device, std::uintptr_t stream) const override {
    inner_->synchronize(device, stream);
  }
  const Machine& machine() const noexcept override { return inner_->machine(); }

 private:
  std::unique_ptr<Backend> inner_;
  BackendTime& time_;
};

}  // namespace

double thread_seconds() {
  timespec time{};
  require(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0, "no clock of a thread's CPU time");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::unique_ptr<Backend> make_timed_backend(std::unique_ptr<Backend> inner, BackendTime& time) {
  return std::make_unique<Timed>(std::move(inner), time);
}

/// The least of several: what disturbs a measurement makes it longer.
double seconds_outside_a_call() {
  constexpr int rounds = 20;
  constexpr int calls = 10'000;
  double least = 1;
  for (int round = 0; round < rounds; ++round) {
    BackendTime time;
    const double begin = thread_seconds();
    for (int i = 0; i < calls; ++i) const Stopwatch watch(time);
    least = std::min(least, (thread_seconds() - begin - time.seconds) / calls);
  }
  return std::max(least, 0.0);
}

}  // namespace quadriga::bench
