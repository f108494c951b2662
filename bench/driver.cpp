// SPDX-License-Identifier: BSD-3-Clause
// bench/driver.cpp: what the driver of devices costs a task, on a device that takes no time.
#include <fmt/format.h>
#include <quadriga/engine.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "benchmarks.h"
#include "device/backend.h"
#include "device/operation.h"
#include "device/ring.h"
#include "empty_graphs.h"
#include "engine/engine_access.h"
#include "line.h"

namespace quadriga::bench {
namespace {

/// Everything has ended when it is queued. Issuers queue, the driver takes what ended.
class Instant final : public Backend {
 public:
  explicit Instant(std::unique_ptr<Backend> inner) : machine_(inner->machine()) {}
  std::byte* allocate(DeviceId, std::size_t bytes) override {
    return static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}));
  }
  void deallocate(DeviceId, std::byte* memory) noexcept override {
    ::operator delete (memory, std::align_val_t{256});
  }
  StreamId create_stream(DeviceId, StreamKind) override {
    const std::lock_guard lock(mutex_);
    tickets_.push_back(0);
    return static_cast<StreamId>(tickets_.size() - 1);
  }
  Event copy(StreamId stream, const Copy& copy) override {
    move_bytes(copy);
    return end(stream);
  }
  Event launch(StreamId stream, const Launch& launch) override {
    (*launch.kernel)(launch.arguments);
    return end(stream);
  }
  void wait(StreamId, Event) override {}
  std::size_t next_completion(std::span<Completion> out, Nanoseconds deadline) override {
    while (true) {
      if (const std::size_t count = take(out); count > 0) return count;
      if (woken_.exchange(false) || now() >= deadline) return 0;
    }
  }
  void wake() noexcept override { woken_.store(true); }
  Nanoseconds now() const noexcept override {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
  }
  bool is_virtual() const noexcept override { return false; }
  bool pin(std::byte*, std::size_t) override { return false; }
  void unpin(std::byte*, std::size_t) noexcept override {}
  const Machine& machine() const noexcept override { return machine_; }

 private:
  Event end(StreamId stream) {
    const Nanoseconds time = now();
    const std::lock_guard lock(mutex_);
    const Event event{stream, ++tickets_[stream]};
    ended_.push({event, time, time, nullptr});
    return event;
  }
  std::size_t take(std::span<Completion> out) {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    while (count < out.size() && !ended_.empty()) out[count++] = ended_.pop();
    return count;
  }

  Machine machine_;
  std::mutex mutex_;  // Guards what follows.
  std::vector<std::uint64_t> tickets_;
  Ring<Completion> ended_;

  std::atomic<bool> woken_{false};
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

void driver(const Settings& settings) {
  const std::string name = settings.text("case", "chain");
  WrappedOptions options;
  options.devices = fmt::format("emulated:{},memory=64MiB,streams={}", settings.integer("count", 1),
                                settings.integer("streams", 1));
  options.wrap_backend = [](std::unique_ptr<Backend> inner) -> std::unique_ptr<Backend> {
    return std::make_unique<Instant>(std::move(inner));
  };
  Engine engine(EngineAccess::make(options));
  EmptyGraph graph(engine, name);
  Line("driver-" + name)
      .add("value", seconds_a_task(engine, graph, settings.integer("repeat", 5)) * 1e9)
      .add("unit", "ns/task")
      .add("bound", 0)
      .print();
}

}  // namespace quadriga::bench
