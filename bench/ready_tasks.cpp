// SPDX-License-Identifier: BSD-3-Clause
// bench/ready_tasks.cpp: what a policy takes for a task while very many are ready: tasks that each
// read two tiles and write one, of a square of results, without work, by the virtual clock.
//
// The policy runs within a policy that adds up the thread's CPU time in its calls, less what taking
// the time costs. The least of several runs counts.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>
#include <quadriga/policy.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "addresses.h"
#include "benchmarks.h"
#include "line.h"
#include "schedule/policy_registry.h"
#include "timed_backend.h"

namespace quadriga::bench {
namespace {

constexpr std::int64_t tile = 256;  // Elements along an edge.

/// Time in calls of a policy.
struct PolicyTime {
  double seconds = 0;
  long long calls = 0;
};

/// Adds the time until its end.
class Timed {
 public:
  explicit Timed(PolicyTime& time) : time_(time) {}
  ~Timed() {
    time_.seconds += thread_seconds() - begin_;
    ++time_.calls;
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  PolicyTime& time_;
  double begin_ = thread_seconds();
};

/// Passes all calls on, and adds up what they take.
class TimedPolicy final : public Policy {
 public:
  TimedPolicy(std::unique_ptr<CheckedPolicy> inner, PolicyTime& time)
      : inner_(std::move(inner)), time_(time) {}

  PolicyTraits traits() const override { return inner_->traits(); }
  void submitted(const TaskNews& news) override {
    const Timed timed(time_);
    inner_->submitted(news);
  }
  void ended(std::uint64_t id) override {
    const Timed timed(time_);
    inner_->ended(id);
  }
  double rank(const TaskView& task) override {
    const Timed timed(time_);
    return inner_->rank(task);
  }
  void waiting(const TaskNews& news) override {
    const Timed timed(time_);
    inner_->waiting(news);
  }
  void placed(std::uint64_t id, DeviceId device) override {
    const Timed timed(time_);
    inner_->placed(id, device);
  }
  void pull(const PullQuestion& question, std::vector<std::uint64_t>& tasks) override {
    const Timed timed(time_);
    inner_->pull(question, tasks);
  }
  std::size_t place(const PlaceQuestion& question) override {
    const Timed timed(time_);
    return inner_->place(question);
  }
  std::size_t victim(const StealQuestion& question) override {
    const Timed timed(time_);
    return inner_->victim(question);
  }
  std::size_t choose(std::span<const StealCandidate> candidates) override {
    const Timed timed(time_);
    return inner_->choose(candidates);
  }
  std::size_t next(std::span<const ReadyCandidate> candidates) override {
    const Timed timed(time_);
    return inner_->next(candidates);
  }

 private:
  std::unique_ptr<CheckedPolicy> inner_;
  PolicyTime& time_;
};

/// What reading the clock takes: as much of each reading lies within the time as outside.
double seconds_of_timing() {
  constexpr int times = 10'000;
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    const double begin = thread_seconds();
    for (int i = 0; i < times; ++i) thread_seconds();
    least = std::min(least, (thread_seconds() - begin) / times);
  }
  return least;
}

Codelet product() {
  Codelet codelet;
  codelet.name = "product";
  codelet.access = {Access::read, Access::read, Access::update};
  codelet.cpu = [](const Arguments&) {};
  codelet.cost = [](const Arguments&) { return Cost::of_seconds(100e-6); };
  return codelet;
}

/// A row of tiles, a column of tiles, and the square of their products.
struct Tiles {
  std::vector<Data> rows, columns, results;
};

Tiles tiles_of(Engine& engine, std::byte* memory, std::size_t edge) {
  constexpr std::size_t bytes = tile * tile * sizeof(double);
  const auto add = [&](std::vector<Data>& to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, memory += bytes)
      to.push_back(engine.data(memory, tile, tile, tile, DType::float64));
  };
  Tiles tiles;
  add(tiles.rows, edge);
  add(tiles.columns, edge);
  add(tiles.results, edge * edge);
  return tiles;
}

/// Of one run.
struct Used {
  double all = 0;  ///< Seconds of CPU time.
  double policy = 0;
};

/// All tasks are ready before the first runs: the window holds them.
Used run(const std::string& policy, const std::string& devices, std::size_t edge,
         PolicyTime& time) {
  EngineOptions options;
  options.devices = devices;
  options.policy = policy;
  options.window = edge * edge + 1;
  options.virtual_clock = true;
  options.compute = false;
  Engine engine(options);
  const Addresses memory((edge + 2) * edge * tile * tile * sizeof(double));
  const Tiles tiles = tiles_of(engine, static_cast<std::byte*>(memory.get()), edge);
  const Codelet codelet = product();
  time = {};
  const double begin = thread_seconds();
  for (std::size_t i = 0; i < edge; ++i)
    for (std::size_t j = 0; j < edge; ++j)
      engine.submit(codelet, {{tiles.rows[i], Access::read},
                              {tiles.columns[j], Access::read},
                              {tiles.results[i * edge + j], Access::update}});
  engine.wait();
  return {thread_seconds() - begin, time.seconds};
}

/// One line: the least of some runs.
void measure(const std::string& policy, long long asked, long long count, const Settings& settings,
             PolicyTime& time) {
  const auto edge = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(asked))));
  const auto tasks = static_cast<double>(edge * edge);
  const std::string devices =
      fmt::format("machine={}:{}", settings.text("machine", "machines/h200x8.json"), count);
  double least = std::numeric_limits<double>::infinity(), all = least;
  const double timing = seconds_of_timing();
  for (long long i = 0; i < settings.integer("repeat", 3); ++i) {
    const Used used = run("timed", devices, edge, time);
    all = std::min(all, used.all);
    least = std::min(least, used.policy - static_cast<double>(time.calls) * timing);
  }
  Line(fmt::format("policy-{}", policy))
      .add("value", least / tasks * 1e9)
      .add("unit", "ns/task")
      .add("bound", 0)
      .add("all", all / tasks * 1e9)
      .add("calls", static_cast<double>(time.calls) / tasks)
      .add("tasks", tasks)
      .add("devices", static_cast<double>(count))
      .print();
}

}  // namespace

/// `--policy all`: each registered one, with 1,000 to 100,000 tasks on 1, 4 and 8 devices.
void ready_tasks(const Settings& settings) {
  const std::string asked = settings.text("policy", "affinity");
  std::vector<std::string> names{asked};
  std::vector<long long> tasks{settings.integer("tasks", 100'000)};
  std::vector<long long> counts{settings.integer("count", 4)};
  if (asked == "all") {
    names.clear();
    for (const PolicyInfo& info : policies()) names.push_back(info.name);
    tasks = {1'000, 10'000, 100'000};
    counts = {1, 4, 8};
  }
  PolicyTime time;
  std::string policy;
  register_policy("timed", "a policy whose calls are timed", [&](const PolicyContext& context) {
    return std::make_unique<TimedPolicy>(make_policy(policy, context), time);
  });
  for (const std::string& name : names) {
    policy = name;
    for (const long long number : tasks)
      for (const long long count : counts) measure(name, number, count, settings, time);
  }
}

}  // namespace quadriga::bench
