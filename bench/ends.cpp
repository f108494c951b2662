// SPDX-License-Identifier: BSD-3-Clause
// bench/ends.cpp: how long after a kernel's end the engine knows of it, under load and alone.
#include "ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "benchmarks.h"
#include "engine/engine_access.h"
#include "line.h"

namespace quadriga::bench {
namespace {

void spin(double seconds) {
  for (const double begin = now(); now() - begin < seconds;) {
  }
}

}  // namespace

double EndedTask::now() { return bench::now(); }

void EndedTask::end_kernel() noexcept {
  while (!is_closed.load()) std::this_thread::yield();
  spin(seconds);
  ended = now();
}

EndedTask& ended_task(const Arguments& arguments) {
  EndedTask* task = nullptr;
  std::memcpy(&task, arguments.params.data(), sizeof task);
  return *task;
}

namespace {

/// Microseconds.
struct Delays {
  double median = 0;
  double high = 0;  ///< 99 of 100 are less.
};

Delays of(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const std::size_t high = seconds.size() - 1 - seconds.size() / 100;
  return {1e6 * median(seconds), 1e6 * seconds[high]};
}

void print(std::string_view name, const std::vector<double>& seconds, double bound,
           std::string_view key = {}, double value = 0) {
  const Delays delays = of(seconds);
  Line line(name);
  line.add("value", delays.median).add("unit", "us").add("bound", bound).add("p99", delays.high);
  if (!key.empty()) line.add(key, value);
  line.print();
}

/// What waking a thread takes that has slept for a while: nobody who sleeps knows of anything
/// sooner.
std::vector<double> wake_delays(int count, double seconds_asleep) {
  std::mutex mutex;
  std::condition_variable changed;
  double rung = 0;
  bool is_rung = false, sleeps = false;
  std::vector<double> seconds;
  std::thread sleeper([&] {
    std::unique_lock lock(mutex);
    for (int i = 0; i < count; ++i) {
      sleeps = true;
      changed.wait(lock, [&] { return is_rung; });
      seconds.push_back(now() - rung);
      is_rung = sleeps = false;
    }
  });
  for (int i = 0; i < count;) {
    spin(seconds_asleep);
    const std::lock_guard lock(mutex);
    if (!sleeps || is_rung) continue;
    is_rung = true;
    rung = now();
    changed.notify_one();
    ++i;
  }
  sleeper.join();
  return seconds;
}

class Ends {
 public:
  Ends(const EngineOptions& options, const Codelet& codelet)
      : codelet_(codelet), homes_(tiles), engine_(options) {
    for (double& home : homes_) data_.push_back(engine_.data(&home, 1, 1, 1, DType::float64));
  }

  /// Seconds from ends of kernels of a length until they were told. `together`: so many are
  /// submitted before they are waited for.
  std::vector<double> delays(std::size_t count, std::size_t together, double length = 0) {
    std::vector<double> seconds;
    waits_.clear();
    while (seconds.size() < count) {
      std::deque<EndedTask> tasks(together);
      std::vector<Future> futures;
      for (EndedTask& each : tasks) {
        each.seconds = length;
        futures.push_back(submit(each));
      }
      for (const Future& each : futures) engine_.wait(each);
      waits_.push_back(now() - tasks.back().ended);
      for (const EndedTask& each : tasks) {
        while (each.told == 0) std::this_thread::yield();  // a group hears after those who wait
        seconds.push_back(each.told - each.ended);
      }
    }
    return seconds;
  }
  /// Of delays() of tasks alone: until the call that waits has returned.
  const std::vector<double>& waits() const { return waits_; }

 private:
  static constexpr std::size_t tiles = 64;

  Future submit(EndedTask& task) {
    EndedTask* const address = &task;
    std::byte params[sizeof address];
    std::memcpy(params, &address, sizeof address);
    const std::size_t turn = turn_++;
    SubmitOptions options;
    options.device = static_cast<DeviceId>(turn % engine_.machine().devices.size());
    const Operand operand{data_[turn % tiles], Access::update};
    const Future future =
        EngineAccess::submit(engine_, codelet_, {&operand, 1}, params, options, &task.group);
    task.group.close();
    task.is_closed = true;
    return future;
  }

  const Codelet& codelet_;
  std::vector<double> homes_;  // Outlives the engine, which writes to it.
  Engine engine_;
  std::vector<Data> data_;
  std::vector<double> waits_;
  std::size_t turn_ = 0;
};

}  // namespace

void measure_ends(const Settings& settings, const EngineOptions& options, const Codelet& body) {
  const auto count = static_cast<std::size_t>(settings.integer("tasks", 20'000));
  const auto alone = static_cast<std::size_t>(settings.integer("alone", 2'000));
  Ends ends(options, body);
  ends.delays(std::min<std::size_t>(count, 1000), 1000);  // what begins only once
  const double begin = now();
  const std::vector<double> busy = ends.delays(count, count);
  print("ends-load", busy, 0, "us_a_task", 1e6 * (now() - begin) / static_cast<double>(count));
  // Whoever looks for ends sleeps by then, or looks now and then.
  const double length = 1e-6 * static_cast<double>(settings.integer("microseconds", 200));
  const double bare = of(wake_delays(static_cast<int>(alone), length)).median;
  print("ends-alone", ends.delays(alone, 1, length), bare);
  print("ends-waiter", ends.waits(), 2 * bare);
}

void ends(const Settings& settings) {
  EngineOptions options;
  options.devices = fmt::format("emulated:{},memory=64MiB", settings.integer("count", 2));
  Codelet codelet;
  codelet.name = "ends";
  codelet.access = {Access::update};
  codelet.cost = [](const Arguments&) { return Cost::of_seconds(1e-6); };
  codelet.cpu = [](const Arguments& arguments) { ended_task(arguments).end_kernel(); };
  measure_ends(settings, options, codelet);
}

}  // namespace quadriga::bench
