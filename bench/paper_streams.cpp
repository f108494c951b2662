// SPDX-License-Identifier: BSD-3-Clause
// bench/paper_streams.cpp: figures 5 to 9 of the paper on GPU-Chariot, by pipelines and by hand.
//
// Pipelines run by the virtual clock on the paper's machine. The protein search and the FFT take
// their times from the paper's tables 1 and 2. By hand: a thread a device that takes the next chunk
// when it has done with one, as the paper's OpenMP programs do; all copies in, all kernels, all
// copies out on one device, as its manual programs do; chunk by chunk on two streams a device, as
// its figure A.1. By hand, devices have one hardware queue unless a row says otherwise. Speed-ups
// are over one device that overlaps nothing.
//
// Source:  Ino, Nakagawa, Hagihara, GPU-Chariot, IEICE Trans. E96-D(12), 2013, section 6.
#include <fmt/format.h>
#include <quadriga/pipeline.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "addresses.h"
#include "base/random.h"
#include "benchmarks.h"
#include "by_hand.h"
#include "line.h"
#include "paper_machine.h"

namespace quadriga::bench {
namespace {

constexpr int most_devices = 4;
constexpr int cores = 12;

/// Seconds of a chunk's parts: file, copy in, kernel, copy out, file.
struct Work {
  double read = 0;
  double in = 0;
  double kernel = 0;
  double out = 0;
  double write = 0;
  double all() const { return read + in + kernel + out + write; }
};
using Works = std::vector<Work>;

double in_all(const Works& works) {
  double sum = 0;
  for (const Work& each : works) sum += each.all();
  return sum;
}

std::int64_t bytes_of(double seconds) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(seconds * bus_bytes_per_second));
}

Codelet timed_kernel(const Works& works) {
  Codelet kernel;
  kernel.name = "dummy";
  kernel.access = {Access::read, Access::write};
  kernel.cpu = [](const Arguments&) {};
  kernel.cost = [&works](const Arguments& arguments) {
    return Cost::of_seconds(works[arguments.param<std::size_t>()].kernel);
  };
  return kernel;
}

PipelineStats simulate(const Works& works, int devices, Order order, int hardware_queues = 0) {
  EngineOptions options;
  options.machine = paper_machine(devices, hardware_queues);
  options.machine->devices.push_back(Machine::parse(fmt::format("cpu:{}", cores)).devices.front());
  options.virtual_clock = true;
  options.compute = false;
  Engine engine(options);
  constexpr std::size_t apart = std::size_t{1} << 31;
  const Addresses memory(works.size() * apart);
  const Codelet kernel = timed_kernel(works);
  Pipeline pipeline({.host_memory = "1TiB",
                     .engine = &engine,
                     .order = order,
                     .look_ahead = static_cast<int>(works.size())});
  const auto field = [&](Chunk& chunk, const char* name, double seconds, std::size_t place) {
    const std::int64_t bytes = bytes_of(seconds);
    auto* const first = static_cast<std::byte*>(memory.get()) + chunk.number() * apart + place;
    chunk.lend(name, {first, bytes, 1, bytes, DType::bytes});
  };
  const bool has_files = works.front().read > 0;
  pipeline.source([&](Chunk& chunk) {
    if (chunk.number() >= works.size()) return false;
    field(chunk, "x", works[chunk.number()].in, 0);
    field(chunk, "y", works[chunk.number()].out, apart / 2);
    return true;
  });
  const auto number = [](const Chunk& chunk) {
    const std::size_t value = chunk.number();
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return std::vector(bytes.begin(), bytes.end());
  };
  const auto shape = [](const Chunk& chunk) {
    return FieldShape{chunk["y"].rows, 1, DType::bytes};
  };
  pipeline.kernel(kernel, {reads("x"), writes("y", shape)}, Pipeline::Params(number));
  if (has_files) {
    pipeline.serial([](Chunk&) {}, "write");
    pipeline.takes("source", [&](const Chunk& chunk) { return works[chunk.number()].read; });
    pipeline.takes("write", [&](const Chunk& chunk) { return works[chunk.number()].write; });
  }
  return pipeline.run();
}

/// A thread a device passes chunk after chunk: the file, the device's bus and the device wait for
/// nobody else's turn, but one at a time.
double by_threads(const Works& works, int devices) {
  struct Thread {
    double time = 0;
    std::size_t chunk = 0;
    int part = 5;  // of the chunk, that comes next; 5: it takes another chunk
  };
  std::vector<Thread> threads(static_cast<std::size_t>(devices));
  double file = 0;
  std::array<double, 2> buses{};
  std::size_t next = 0;
  double last = 0;
  while (true) {
    const auto earliest = std::ranges::min_element(threads, {}, &Thread::time);
    Thread& thread = *earliest;
    if (thread.time > 1e30) return last;
    if (thread.part == 5) {
      if (next == works.size()) {
        thread.time = 1e31;
        continue;
      }
      thread = {thread.time, next++, 0};
    }
    const Work& work = works[thread.chunk];
    const double seconds = std::array{work.read, work.in, work.kernel, work.out,
                                      work.write}[static_cast<std::size_t>(thread.part)];
    double own = thread.time;
    double& bus = buses[static_cast<std::size_t>(earliest - threads.begin()) % 2];
    double& resource = thread.part % 4 == 0 ? file : thread.part == 2 ? own : bus;
    thread.time = resource = std::max(thread.time, resource) + seconds;
    last = std::max(last, thread.time);
    ++thread.part;
  }
}

std::vector<HandTimes> hand_times(const Works& works) {
  std::vector<HandTimes> times;
  for (const Work& each : works)
    times.push_back({static_cast<double>(bytes_of(each.in)), each.kernel,
                     static_cast<double>(bytes_of(each.out))});
  return times;
}

/// One device: all copies in, all kernels, all copies out; without files.
double by_loops(const Works& works) {
  return by_hand(HandWay::batches, paper_machine(1, 1), hand_times(works), works.size());
}

using Values = std::vector<double>;

struct Table {
  std::string figure;
  bool is_shown = false;
};

/// A row of a figure: values for 1 to 4 devices, or as many as there are.
void print(const Table& table, const std::string& row, const Values& values) {
  Line line(table.figure);
  line.add("row", row);
  for (std::size_t i = 0; i < values.size(); ++i)
    line.add(fmt::format("devices_{}", i + 1), values[i]);
  line.print();
  if (!table.is_shown) return;
  fmt::print("  {:8} {:28}", table.figure, row);
  for (const double value : values) fmt::print(" {:6.2f}", value);
  fmt::print("\n");
}

Values by_devices(const std::function<double(int devices)>& value) {
  Values values;
  for (int devices = 1; devices <= most_devices; ++devices) values.push_back(value(devices));
  return values;
}

/// Chunks of 3 to 30 MB; `seed` 0: of equal size.
Works dummy_work(double ratio, std::uint64_t seed) {
  Random random(seed);
  Works works(48);
  for (Work& each : works) {
    const double megabytes =
        seed == 0 ? 16.5 : 3 + 27e-6 * static_cast<double>(random.below(1'000'000));
    each.in = each.out = 1e6 * megabytes / bus_bytes_per_second;
    each.kernel = (each.in + each.out) / ratio;
  }
  return works;
}

void figure_5(bool is_shown) {
  for (const int percent : {10, 50, 60, 70, 100}) {
    const Works works = dummy_work(percent / 100.0, 0);
    const double one = in_all(works);
    const std::string r = fmt::format("r = {} %", percent);
    print({"5a", is_shown}, r, by_devices([&](int devices) {
            return one / simulate(works, devices, Order::first_come).seconds;
          }));
    print({"5b", is_shown}, r,
          by_devices([&](int devices) { return one / by_threads(works, devices); }));
    print({"5 loops", is_shown}, r, {one / by_loops(works)});
    for (const int queues : {1, 0})
      print({queues == 1 ? "5 naive, one queue" : "5 naive", is_shown}, r,
            by_devices([&](int devices) {
              return one /
                     by_hand(HandWay::naive, paper_machine(devices, queues), hand_times(works));
            }));
    print({"5a, one queue", is_shown}, r, by_devices([&](int devices) {
            return one / simulate(works, devices, Order::first_come, 1).seconds;
          }));
  }
}

void figures_6_and_7(bool is_shown, int seeds) {
  constexpr std::array orders{Order::first_come, Order::largest, Order::smallest, Order::adaptive};
  constexpr std::array names{"6b", "6c", "6d", "6 ours"};
  constexpr std::array gains{"", "7a", "7b", "7 ours"};
  for (const int percent : {10, 50, 70, 100}) {
    const double ratio = percent / 100.0;
    const std::string r = fmt::format("r = {} %", percent);
    const Works equal = dummy_work(ratio, 0);
    print({"6a", is_shown}, r, by_devices([&](int devices) {
            const PipelineStats stats = simulate(equal, devices, Order::first_come);
            return 100 * (stats.seconds / stats.bound_seconds - 1);
          }));
    std::array<Values, orders.size()> over;
    std::array<Values, orders.size()> gain;
    for (int devices = 1; devices <= most_devices; ++devices) {
      std::array<double, orders.size()> sums{};
      std::array<double, orders.size()> times{};
      for (int seed = 1; seed <= seeds; ++seed) {
        const Works works = dummy_work(ratio, static_cast<std::uint64_t>(seed));
        for (std::size_t o = 0; o < orders.size(); ++o) {
          const PipelineStats stats = simulate(works, devices, orders[o]);
          sums[o] += 100 * (stats.seconds / stats.bound_seconds - 1) / seeds;
          times[o] += stats.seconds;
        }
      }
      for (std::size_t o = 0; o < orders.size(); ++o) {
        over[o].push_back(sums[o]);
        gain[o].push_back(times.front() / times[o]);
      }
    }
    for (std::size_t o = 0; o < orders.size(); ++o) print({names[o], is_shown}, r, over[o]);
    for (std::size_t o = 1; o < orders.size(); ++o) print({gains[o], is_shown}, r, gain[o]);
  }
}

/// Table 1: 66 chunks of 8192 sequences, whose lengths in all differ by a fifth here.
Works proteins(const Work& whole) {
  Random random(1);
  std::vector<double> sizes(66);
  double sum = 0;
  for (double& each : sizes) sum += each = 0.8 + 0.4e-3 * static_cast<double>(random.below(1001));
  Works works;
  for (const double each : sizes) {
    const double part = each / sum;
    works.push_back({part * whole.read, part * whole.in, part * whole.kernel, part * whole.out,
                     part * whole.write});
  }
  return works;
}

void figure_8(bool is_shown) {
  constexpr std::array queries{std::pair{"63 residues", Work{1.90, 0.05, 0.80, 0.03, 0.22}},
                               std::pair{"511 residues", Work{1.90, 0.05, 8.18, 0.23, 0.80}}};
  for (const auto& [name, whole] : queries) {
    const Works works = proteins(whole);
    const double one = in_all(works);
    print({"8a", is_shown}, name, by_devices([&](int devices) {
            return one / simulate(works, devices, Order::adaptive).seconds;
          }));
    print({"8a bound", is_shown}, name, by_devices([&](int devices) {
            return one / simulate(works, devices, Order::adaptive).bound_seconds;
          }));
    print({"8b", is_shown}, name,
          by_devices([&](int devices) { return one / by_threads(works, devices); }));
  }
}

/// Table 2: columns, then rows, of a matrix in 16 parts each.
void figure_9(bool is_shown) {
  const auto phase = [](double kernel) {
    return Works(16, {0, 0.1316 / 16, kernel / 16, 0.1170 / 16, 0});
  };
  const Works columns = phase(0.0183);
  const Works rows = phase(0.0115);
  const double one = in_all(columns) + in_all(rows);
  const auto both = [&](const auto& seconds) { return one / (seconds(columns) + seconds(rows)); };
  print({"9 ours", is_shown}, "8192 x 8192", by_devices([&](int devices) {
          return both([&](const Works& works) {
            return simulate(works, devices, Order::first_come).seconds;
          });
        }));
  print({"9 threads", is_shown}, "8192 x 8192", by_devices([&](int devices) {
          return both([&](const Works& works) { return by_threads(works, devices); });
        }));
  print({"9 loops", is_shown}, "8192 x 8192", {both(by_loops)});
}

}  // namespace

void stream_figures(const Settings& settings) {
  const bool is_shown = settings.text("table", "off") == "on";
  figure_5(is_shown);
  figures_6_and_7(is_shown, static_cast<int>(settings.integer("seeds", 20)));
  figure_8(is_shown);
  figure_9(is_shown);
}

}  // namespace quadriga::bench
