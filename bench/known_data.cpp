// SPDX-License-Identifier: BSD-3-Clause
// bench/known_data.cpp: what registering known memory again, and the host's access to it, cost.
#include <quadriga/engine.h>

#include <algorithm>
#include <vector>

#include "benchmarks.h"
#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::size_t arrays = 1000;
constexpr int rounds = 20;
constexpr int elements = 8;

EngineOptions two_devices() {
  EngineOptions options;
  options.devices = "emulated:2,memory=16MiB";
  return options;
}

Data register_array(Engine& engine, double* values) {
  return engine.data(values, elements, 1, elements, DType::float64, {.resident = true});
}

/// The best of the passes, in nanoseconds a call: others run on the same cores.
template <class Call>
double nanoseconds_a_call(long long passes, Call&& call) {
  double best = 0;
  for (long long pass = 0; pass < passes; ++pass) {
    const double begin = now();
    for (int round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < arrays; ++i) call(i);
    const double seconds = now() - begin;
    best = pass == 0 ? seconds : std::min(best, seconds);
  }
  return best / (rounds * arrays) * 1e9;
}

/// Registered arrays without tasks.
struct KnownData {
  explicit KnownData(Engine& engine) : values(arrays * elements) {
    for (std::size_t i = 0; i < arrays; ++i) data.push_back(register_array(engine, home(i)));
  }
  double* home(std::size_t i) { return values.data() + i * elements; }

  std::vector<double> values;
  std::vector<Data> data;
};

void print_calls(const char* name, double nanoseconds) {
  Line(name).add("value", nanoseconds).add("unit", "ns/call").add("bound", 0).print();
}

}  // namespace

void register_again(const Settings& settings) {
  Engine engine(two_devices());
  KnownData known(engine);
  const double nanoseconds = nanoseconds_a_call(
      settings.integer("repeat", 7), [&](std::size_t i) { register_array(engine, known.home(i)); });
  print_calls("cpp-register-again", nanoseconds);
}

void access_on_host(const Settings& settings) {
  Engine engine(two_devices());
  const KnownData known(engine);
  const double nanoseconds = nanoseconds_a_call(settings.integer("repeat", 7), [&](std::size_t i) {
    engine.on_host(known.data[i], Access::update).release();
  });
  print_calls("cpp-on-host", nanoseconds);
}

}  // namespace quadriga::bench
