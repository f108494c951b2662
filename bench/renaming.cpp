// SPDX-License-Identifier: BSD-3-Clause
// bench/renaming.cpp: what it gains that tasks which overwrite data needn't wait for readers.
//
// In each step one task makes an array, always in the same memory, and others use it, each for a
// sum of its own. All take equally long: by the virtual clock as stated, by the real one asleep.
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks.h"
#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::int64_t elements = 1 << 12;

struct Broadcast {
  double seconds = 0;
  RenamingCounters renaming;
  double sum = 0;  // Of what the users have at the end.
};

Codelet made_of(const char* name, std::vector<Access> access, double seconds, bool sleeps,
                Kernel kernel) {
  Codelet codelet;
  codelet.name = name;
  codelet.access = std::move(access);
  codelet.cpu = [kernel = std::move(kernel), seconds, sleeps](const Arguments& arguments) {
    if (sleeps) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    kernel(arguments);
  };
  codelet.cost = [seconds](const Arguments&) { return Cost::of_seconds(seconds); };
  return codelet;
}

Broadcast broadcast(const EngineOptions& options, std::int64_t steps, std::size_t users,
                    double seconds) {
  const bool sleeps = !options.virtual_clock;
  const Codelet make = made_of("make", {Access::write}, seconds, sleeps, [](const Arguments& a) {
    for (std::int64_t i = 0; i < elements; ++i)
      a.operands[0].as<double>()[i] = a.param<double>() + static_cast<double>(i);
  });
  const Codelet use =
      made_of("use", {Access::read, Access::update}, seconds, sleeps, [](const Arguments& a) {
        for (std::int64_t i = 0; i < elements; ++i)
          a.operands[1].as<double>()[i] += a.operands[0].as<double>()[i];
      });
  std::vector<double> shared(elements);
  std::vector<std::vector<double>> own(users, std::vector<double>(elements));
  Engine engine(options);
  const Data data = engine.data(shared.data(), elements, 1, elements, DType::float64);
  std::vector<Data> sums;
  for (std::vector<double>& each : own)
    sums.push_back(engine.data(each.data(), elements, 1, elements, DType::float64));
  const auto begin = engine.now();
  for (std::int64_t step = 0; step < steps; ++step) {
    engine.submit(make, {{data, Access::write}}, static_cast<double>(step), {.priority = 1});
    for (const Data& each : sums)
      engine.submit(use, {{data, Access::read}, {each, Access::update}});
  }
  engine.wait();
  Broadcast result{static_cast<double>(engine.now() - begin) * 1e-9, engine.counters().renaming};
  for (const std::vector<double>& each : own)
    for (const double value : each) result.sum += value;
  return result;
}

}  // namespace

void renaming(const Settings& settings) {
  const std::string clock = settings.text("clock", "virtual");
  require(clock == "virtual" || clock == "real",
          fmt::format("--clock {}: expected virtual or real", clock));
  const std::int64_t steps = settings.integer("steps", 100);
  EngineOptions options;
  options.devices = settings.text("devices", "cpu:4");
  options.virtual_clock = clock == "virtual";
  const double seconds = static_cast<double>(settings.integer("microseconds", 1000)) * 1e-6;
  const auto users = static_cast<std::size_t>(settings.integer("users", 3));
  const Broadcast waiting = broadcast(options, steps, users, seconds);
  options.renaming_bytes =
      static_cast<std::size_t>(settings.integer("memory", 2 * elements * sizeof(double)));
  const Broadcast renamed = broadcast(options, steps, users, seconds);
  require(waiting.sum == renamed.sum, "renaming changed the result");
  Line("renaming")
      .add("value", waiting.seconds / renamed.seconds)
      .add("unit", "times as fast")
      .add("bound", 2)  // Making and using at once.
      .add("seconds", renamed.seconds)
      .add("waiting_seconds", waiting.seconds)
      .add("renamed", static_cast<double>(renamed.renaming.renamed))
      .add("refused", static_cast<double>(renamed.renaming.refused))
      .add("copied", static_cast<double>(renamed.renaming.copied))
      .add("most_bytes", static_cast<double>(renamed.renaming.most_bytes))
      .print();
}

}  // namespace quadriga::bench
