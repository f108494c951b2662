// SPDX-License-Identifier: BSD-3-Clause
// bench/decide.cpp: what deciding costs a task: Cholesky on machines of several devices, by the
// virtual clock and without computing.
//
// Under the virtual clock one thread submits, decides and calls the backend, which simulates the
// machine. What is reported is the CPU time of that thread, less the share of it that passed
// inside of the backend's calls, less what taking that time cost. The share is one of the steady
// clock's time: whoever takes the processor away in between does so inside and outside alike.
// The least of several runs counts, of each size: others make a run longer, never shorter.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/linalg.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "addresses.h"
#include "allocation_count.h"
#include "benchmarks.h"
#include "engine/engine_access.h"
#include "linalg/kernels/codelets.h"
#include "line.h"
#include "timed_backend.h"

namespace quadriga::bench {
namespace {

constexpr std::int64_t tile = 1024;

/// Nanoseconds a task.
struct Cost {
  double tasks = 0;
  double deciding = std::numeric_limits<double>::infinity();  // With submission.
  double submission = std::numeric_limits<double>::infinity();
  double backend = 0;
  double elapsed = 0;      // Seconds of the virtual clock.
  double allocations = 0;  // Calls of malloc a task, the virtual backend's with them.
};

double tasks_of(std::int64_t tiles) {
  return static_cast<double>(tiles * (tiles + 1) * (tiles + 2) / 6);
}

/// An engine for one size, kept from run to run: its pools have grown when the second begins.
class Subject {
 public:
  /// `window` of tasks; 0: the default.
  Subject(const std::string& devices, std::int64_t tiles, std::size_t window)
      : tiles_(tiles), memory_(bytes()), engine_(EngineAccess::make(options(devices, window))) {}

  /// One factorization; `cost` keeps the least of each.
  void run(Cost& cost, double outside) {
    const linalg::MatrixView a =
        linalg::MatrixView::columns(memory_.get(), order(), order(), DType::float64);
    linalg::Options chosen;
    chosen.tile = tile;
    time_ = {};
    engine_.reset_counters();
    const double begin = thread_seconds();
    const double begin_steady = now();
    linalg::cholesky(engine_, a, a, linalg::Uplo::lower, linalg::Other::leave, chosen);
    const double steady = now() - begin_steady;
    const double used = thread_seconds() - begin;
    cost.tasks = time_.launches;
    require(cost.tasks == tasks_of(tiles_),
            fmt::format("{} tasks ran; expected {}", cost.tasks, tasks_of(tiles_)));
    const double backend = time_.seconds * used / steady;
    const double found = (used - backend - time_.calls * outside) / cost.tasks * 1e9;
    if (found < cost.deciding) {
      cost.deciding = found;
      cost.backend = backend / cost.tasks * 1e9;
    }
    cost.submission =
        std::min(cost.submission, (time_.before_operations - begin) / cost.tasks * 1e9);
    cost.elapsed = static_cast<double>(engine_.counters().elapsed) * 1e-9;
  }

 private:
  std::int64_t order() const { return tiles_ * tile; }
  std::size_t bytes() const { return static_cast<std::size_t>(order() * order()) * sizeof(double); }
  WrappedOptions options(const std::string& devices, std::size_t window) {
    WrappedOptions options;
    options.devices = devices;
    options.window = window;
    options.virtual_clock = true;
    options.compute = false;
    options.wrap_backend = [this](std::unique_ptr<Backend> inner) {
      return make_timed_backend(std::move(inner), time_);
    };
    return options;
  }

  std::int64_t tiles_;
  Addresses memory_;
  BackendTime time_;
  Engine engine_;
};

/// Items of eight bytes that are copied in, scaled and copied home, on the first devices in turn:
/// what is left of queueing when nothing else takes time (bench/gpu_queue.cpp measures it on GPUs).
/// The machine's other devices have nothing to do.
Cost of_items(const std::string& devices, std::size_t gpus, std::size_t items, long long runs,
              double outside) {
  BackendTime time;
  WrappedOptions options;
  options.devices = devices;
  options.virtual_clock = true;
  options.compute = false;
  options.wrap_backend = [&](std::unique_ptr<Backend> inner) {
    return make_timed_backend(std::move(inner), time);
  };
  Engine engine(EngineAccess::make(options));
  std::vector<double> home(items * gpus);
  std::vector<Data> data;
  for (double& item : home) data.push_back(engine.data(&item, 1, 1, 1, DType::float64));
  const Codelet& scale = kernels::scale_codelet(DType::float64);
  const kernels::ScaleParams params{{1.0, 0}, {}};
  Cost cost;
  cost.tasks = static_cast<double>(home.size());
  for (long long run = 0; run <= runs; ++run) {
    time = {};
    const std::int64_t allocated = allocation_count();
    const double begin = thread_seconds();
    const double begin_steady = now();
    for (std::size_t i = 0; i < data.size(); ++i) {
      SubmitOptions where;
      where.device = static_cast<DeviceId>(i % gpus);
      engine.submit(scale, {{data[i], Access::update}}, params, where);
      engine.final(data[i]);
    }
    engine.wait();
    const double steady = now() - begin_steady;
    const double used = thread_seconds() - begin;
    const double backend = time.seconds * used / steady;
    const double found = (used - backend - time.calls * outside) / cost.tasks * 1e9;
    if (run == 0 || found >= cost.deciding) continue;
    cost.allocations = static_cast<double>(allocation_count() - allocated) / cost.tasks;
    cost.deciding = found;
    cost.backend = backend / cost.tasks * 1e9;
  }
  engine.remove(data);
  return cost;
}

/// A window that holds all tasks is filled before the first is planned: the clock is read last
/// before that when waiting begins.
double submission(const std::string& devices, std::int64_t tiles, double outside) {
  Subject subject(devices, tiles, static_cast<std::size_t>(tasks_of(tiles)) + 1);
  Cost cost;
  for (int i = 0; i < 3; ++i) subject.run(cost, outside);
  return cost.submission;
}

}  // namespace

void decide(const Settings& settings) {
  const long long count = settings.integer("count", 1);
  const long long tiles = settings.integer("tiles", 64);
  const long long runs = settings.integer("repeat", 3);
  const std::string devices =
      fmt::format("machine={}:{}", settings.text("machine", "machines/h200x8.json"), count);
  const double outside = seconds_outside_a_call();
  if (settings.text("work", "cholesky") == "items") {
    const long long on = settings.integer("on", count);
    require(on >= 1 && on <= count, fmt::format("on {}: expected 1 to {} devices", on, count));
    const Cost cost =
        of_items(devices, static_cast<std::size_t>(on),
                 static_cast<std::size_t>(settings.integer("items", 10000)), runs, outside);
    Line(fmt::format("decide-items-{}", count))
        .add("on", static_cast<double>(on))
        .add("value", cost.deciding)
        .add("unit", "ns/item")
        .add("bound", 0)
        .add("backend", cost.backend)
        .add("allocations", cost.allocations)
        .print();
    return;
  }
  Cost small, large;
  {
    Subject first(devices, tiles, 0);
    Subject second(devices, 2 * tiles, 0);
    Cost warm_up;
    first.run(warm_up, outside);
    for (long long i = 0; i < runs; ++i) {
      first.run(small, outside);
      second.run(large, outside);
    }
  }
  const double submitting = submission(devices, tiles, outside);
  Line(fmt::format("decide-{}", count))
      .add("value", std::max(small.deciding, large.deciding))
      .add("unit", "ns/task")
      .add("bound", 0)
      .add("growth", large.deciding / small.deciding)
      .add("small", small.deciding)
      .add("large", large.deciding)
      .add("submission", submitting)
      .add("backend_small", small.backend)
      .add("backend_large", large.backend)
      .add("tasks_small", small.tasks)
      .add("tasks_large", large.tasks)
      .add("seconds_small", small.elapsed)
      .add("seconds_large", large.elapsed)
      .print();
}

}  // namespace quadriga::bench
