// SPDX-License-Identifier: BSD-3-Clause
// bench/streams.cpp: pipelines under the virtual clock beside their bound.
//
// The machine is that of the paper on GPU-Chariot (IEICE Trans. E96-D(12), 2013, section 6): up to
// four GPUs on two buses, each of which carries one copy at a time, in either direction. A dummy
// kernel takes chunks in and out; r is the time of both copies over that of the kernel. Nothing is
// computed: fields are addresses that no memory stands behind.
#include <fmt/format.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "addresses.h"
#include "base/random.h"
#include "benchmarks.h"
#include "by_hand.h"
#include "line.h"
#include "paper_machine.h"

namespace quadriga::bench {
namespace {

constexpr std::size_t chunk_count = 48;
constexpr std::int64_t smallest_chunk = 3'000'000;
constexpr std::int64_t largest_chunk = 30'000'000;

/// A kernel that takes the time of both copies over `ratio`.
Machine machine_of(int devices, double ratio) {
  Machine machine = paper_machine(devices);
  machine.kernels["dummy"]["gpu"][1] = 2 / bus_bytes_per_second / ratio;  // seconds a byte
  return machine;
}

std::vector<std::int64_t> fixed_sizes() {
  return std::vector<std::int64_t>(chunk_count, (smallest_chunk + largest_chunk) / 2);
}

std::uint64_t first_seed = 1;  ///< As given: other draws show that no rule is fitted to these.

/// The draw of a number from 1.
std::vector<std::int64_t> random_sizes(std::uint64_t draw) {
  Random random(first_seed + draw - 1);
  std::vector<std::int64_t> sizes(chunk_count);
  for (std::int64_t& each : sizes)
    each = smallest_chunk + static_cast<std::int64_t>(random.below(
                                static_cast<std::uint64_t>(largest_chunk - smallest_chunk)));
  return sizes;
}

struct Run {
  int devices = 1;
  double ratio = 1;
  Order order = Order::adaptive;
  int look_ahead = static_cast<int>(chunk_count);
  bool is_announced = false;  ///< Whether the source tells sizes before content.
};

PipelineStats simulate(const Run& run, const std::vector<std::int64_t>& sizes) {
  EngineOptions options;
  options.machine = machine_of(run.devices, run.ratio);
  options.virtual_clock = true;
  options.compute = false;
  Engine engine(options);
  const Addresses memory(sizes.size() * static_cast<std::size_t>(largest_chunk));
  Codelet dummy;
  dummy.name = "dummy";
  dummy.access = {Access::update};
  dummy.cpu = [](const Arguments&) {};
  dummy.cost = [](const Arguments& arguments) {
    return Cost{"dummy", 1, static_cast<double>(arguments.operands[0].rows)};
  };
  PipelineOptions of_pipeline;
  of_pipeline.engine = &engine;
  of_pipeline.order = run.order;
  of_pipeline.look_ahead = run.look_ahead;
  of_pipeline.host_memory = "1TiB";
  Pipeline pipeline(of_pipeline);
  const Pipeline::Source read = [&](Chunk& chunk) {
    if (chunk.number() >= sizes.size()) return false;
    auto* const first = static_cast<std::byte*>(memory.get());
    const std::int64_t bytes = sizes[chunk.number()];
    chunk.lend("x", {first + static_cast<std::int64_t>(chunk.number()) * largest_chunk, bytes, 1,
                     bytes, DType::bytes});
    return true;
  };
  if (run.is_announced)
    pipeline.source({.read = read, .sizes = {sizes.begin(), sizes.end()}});
  else
    pipeline.source(read);
  return pipeline.kernel(dummy, {updates("x")}).run();
}

/// Percent over the bound.
double overhead(const PipelineStats& stats) {
  return 100 * (stats.seconds / stats.bound_seconds - 1);
}

struct Overheads {
  std::vector<double> all;
  void add(double value) { all.push_back(value); }
  double mean() const {
    return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }
  double worst() const { return *std::ranges::max_element(all); }
};

constexpr int most_devices = 4;

/// One row of a table by r, for devices 1 to 4.
void print_row(double ratio, const std::vector<double>& values, const char* unit) {
  fmt::print("  r {:3.0f} %", 100 * ratio);
  for (const double value : values) fmt::print("  {:6.2f}", value);
  fmt::print(" {}\n", unit);
}

using SizesOf = std::vector<std::int64_t> (*)(std::uint64_t seed);

/// Overheads by r (rows) and devices, the mean over seeds; a line a number of devices.
template <class OverheadOf>
void overheads_of(const std::string& name, int seeds, bool is_table, OverheadOf overhead_of) {
  std::vector<Overheads> of_all(most_devices);
  std::vector<double> worst_run(most_devices, 0.0);
  if (is_table) fmt::print("{}: percent over the bound, by devices 1 to 4\n", name);
  for (int step = 1; step <= 10; ++step) {
    const double ratio = step / 10.0;
    std::vector<double> means;
    for (int devices = 1; devices <= most_devices; ++devices) {
      Overheads here;
      for (int seed = 1; seed <= seeds; ++seed)
        here.add(overhead_of(devices, ratio, static_cast<std::uint64_t>(seed)));
      means.push_back(here.mean());
      const std::size_t place = static_cast<std::size_t>(devices) - 1;
      of_all[place].add(here.mean());
      worst_run[place] = std::max(worst_run[place], here.worst());
    }
    if (is_table) print_row(ratio, means, "%");
  }
  for (int devices = 1; devices <= most_devices; ++devices) {
    const Overheads& found = of_all[static_cast<std::size_t>(devices) - 1];
    Line(fmt::format("{}-{}", name, devices))
        .add("value", found.worst())
        .add("unit", "% over the bound")
        .add("mean", found.mean())
        .add("worst", worst_run[static_cast<std::size_t>(devices) - 1])
        .add("bound", 0)
        .print();
  }
}

void overheads(const std::string& name, Order order, int look_ahead, SizesOf sizes_of, int seeds,
               bool is_table, bool is_announced = false) {
  overheads_of(name, seeds, is_table, [&](int devices, double ratio, std::uint64_t seed) {
    return overhead(simulate({devices, ratio, order, look_ahead, is_announced}, sizes_of(seed)));
  });
}

/// Percent over the bound of programs written by hand, on as many devices with one hardware queue.
double hand_overhead(HandWay way, const Run& run, const std::vector<std::int64_t>& sizes) {
  constexpr std::size_t batch = (std::size_t{1} << 30) / static_cast<std::size_t>(largest_chunk);
  std::vector<HandTimes> chunks;
  for (const std::int64_t bytes : sizes) {
    const auto moved = static_cast<double>(bytes);
    chunks.push_back({moved, 2 * moved / bus_bytes_per_second / run.ratio, moved});
  }
  const double bound = simulate(run, sizes).bound_seconds;
  return 100 * (by_hand(way, paper_machine(run.devices, 1), chunks, batch) / bound - 1);
}

/// By r (rows) and devices, as overheads(): naive, in batches, a thread a device.
void by_hand_rows(int seeds, bool is_table) {
  constexpr std::pair<const char*, HandWay> ways[] = {
      {"naive", HandWay::naive}, {"batches", HandWay::batches}, {"threads", HandWay::threads}};
  for (const auto& [name, way] : ways)
    overheads_of(fmt::format("by-hand-{}", name), seeds, is_table,
                 [&, way = way](int devices, double ratio, std::uint64_t seed) {
                   return hand_overhead(way, {devices, ratio}, random_sizes(seed));
                 });
}

/// The rate of the default order over that of first-come on four devices, mean over r <= 50 %.
void rate_over_first_come(int seeds) {
  Overheads ratios;
  for (int step = 1; step <= 5; ++step)
    for (int seed = 1; seed <= seeds; ++seed) {
      const auto sizes = random_sizes(static_cast<std::uint64_t>(seed));
      const double first = simulate({most_devices, step / 10.0, Order::first_come}, sizes).seconds;
      ratios.add(first / simulate({most_devices, step / 10.0}, sizes).seconds);
    }
  Line("rate-4").add("value", ratios.mean()).add("unit", "of first-come's rate").print();
}

}  // namespace

void streams(const Settings& settings) {
  const std::string run = settings.text("run", "all");
  const bool is_table = settings.text("table", "off") == "on";
  const auto seeds = static_cast<int>(settings.integer("seeds", 20));
  first_seed = static_cast<std::uint64_t>(settings.integer("seed", 1));
  const auto all = static_cast<int>(chunk_count);
  const SizesOf fixed = [](std::uint64_t) { return fixed_sizes(); };
  const bool every = run == "all";
  bool is_known = every;
  const auto wants = [&](std::string_view name) {
    is_known |= run == name;
    return every || run == name;
  };
  if (wants("fixed")) overheads("fixed", Order::adaptive, all, fixed, 1, is_table);
  if (wants("random")) overheads("random", Order::adaptive, all, random_sizes, seeds, is_table);
  if (wants("ahead-8")) overheads("ahead-8", Order::adaptive, 8, random_sizes, seeds, is_table);
  if (wants("announced"))
    overheads("announced", Order::adaptive, 8, random_sizes, seeds, is_table, true);
  if (wants("first-come"))
    overheads("first-come", Order::first_come, all, random_sizes, seeds, is_table);
  if (wants("largest")) overheads("largest", Order::largest, all, random_sizes, seeds, is_table);
  if (wants("by-hand")) by_hand_rows(seeds, is_table);
  if (wants("rate")) rate_over_first_come(seeds);
  if (run == "applications") stream_applications(settings), is_known = true;
  if (run == "commands") stream_commands(settings), is_known = true;
  if (run == "figures") stream_figures(settings), is_known = true;
  if (run == "volume") stream_volume(settings), is_known = true;
  if (wants("cost")) stream_cost(settings);
  if (wants("stages")) stream_stages(settings);
  require(
      is_known,
      fmt::format(
          "--run {}: expected all, fixed, random, ahead-8, announced, "
          "first-come, largest, by-hand, rate, cost, commands, stages, applications, figures or "
          "volume",
          run));
}

}  // namespace quadriga::bench
