// SPDX-License-Identifier: BSD-3-Clause
// bench/plans.cpp: whether default plans are as good for one order as for those beside it, by the
// virtual clock, on machines drawn at random or on one that is described.
//
// Kernels' times and links' rates of a description are drawn from 0.3 to 3 times what it says, each
// kernel and link by itself; memories from 1 to 150 GB. A line tells what a plan for one order
// reaches of the best of that order and five within 3 % of it; or, of orders on the machine itself,
// of the line between the powers of two beside it. `--first K --count C` measures C draws from
// number K on, so that several processes share a sweep; `--only I` measures one. `--calls C`
// measures after so many calls of each size, which improve its plan.
//
// `--without NAME` (or `each`) tells instead what a special case of the planner gains
// (src/linalg/special_cases.h): the geometric mean of a plan's rate over that of the plan without
// it, of those problems whose rate it changes. Each draw has 1 to `--devices` devices of the
// description, with its memory or, every other draw, with so much that the operands don't fit.
// `--tiles drawn` gives each problem a tile, as callers do; `--rates drawn` draws the machine's
// rates as above, links of one kind alike.
#include <fmt/format.h>
#include <quadriga/error.h>
#include <quadriga/linalg.h>
#include <quadriga/simulate.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/random.h"
#include "benchmarks.h"
#include "linalg/cholesky_choice.h"
#include "linalg/device_group.h"
#include "linalg/special_cases.h"
#include "line.h"
#include "order_line.h"

namespace quadriga::bench {
namespace {

using linalg::Problem;

double whole(double value) { return std::floor(value); }

Machine machine_of(const std::string& file, std::int64_t devices) {
  return Machine::parse(fmt::format("machine={}:{}", file, devices));
}

/// A link's name without numbers: links of one kind have one.
std::string kind_of(const Link& link) {
  std::string kind = link.name;
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  return kind;
}

/// Links and kernels, each 0.3 to 3 times as fast or slow.
void draw_rates(Machine& machine, bool alike, Random& random) {
  const auto factor = [&] { return 0.3 * std::pow(10.0, random.uniform()); };
  std::map<std::string, double> factors;
  for (Link& link : machine.links) {
    const double drawn = factor();
    link.bytes_per_second *=
        alike ? factors.try_emplace(kind_of(link), drawn).first->second : drawn;
  }
  for (auto& [name, columns] : machine.kernels) {
    const double slower = factor();
    for (auto& [column, times] : columns)
      for (auto& [order, seconds] : times) seconds *= slower;
  }
}

Machine drawn_machine(const std::string& file, std::int64_t most_devices, bool alike,
                      Random& random) {
  Machine machine = machine_of(
      file, 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most_devices))));
  draw_rates(machine, alike, random);
  const double bytes = 1e9 * std::pow(150, random.uniform());
  for (Device& device : machine.devices) device.memory_bytes = static_cast<std::size_t>(bytes);
  return machine;
}

/// What is measured: an operation, after so many calls of its size.
struct Subject {
  Problem::Kind kind;
  std::int64_t calls;
};

/// Flops a second; by the caller's tile unless that is 0.
double rate(const Machine& machine, const Subject& subject, double order, std::int64_t tile = 0) {
  EngineOptions options;
  options.machine = machine;
  options.virtual_clock = true;
  options.compute = false;
  const auto n = static_cast<std::int64_t>(order);
  Problem problem{subject.kind, n, n, n, DType::float64};
  problem.accumulate = false;
  linalg::Options by;
  by.tile = tile;
  const Engine engine(options);
  const bool is_product = subject.kind == Problem::Kind::matmul;
  for (std::int64_t call = 0; call < subject.calls && !is_product; ++call)
    linalg::choose_cholesky(engine, linalg::group_of(engine), problem, tile,
                            linalg::Trials::allowed, linalg::Asked::by_call);
  const double flops = (is_product ? 2.0 : 1.0 / 3) * std::pow(order, 3);
  return flops / linalg::estimate(engine, problem, by).seconds;
}

struct Sample {
  double share = 1;
  double rate = 0;
  Line line;
};

/// Of the best rate of the order and five beside it.
Sample beside_neighbours(const std::string& name, const Subject& subject, const Machine& machine,
                         double order, Random& random) {
  constexpr int neighbours = 5;
  constexpr double apart = 0.03;
  const double own = rate(machine, subject, order);
  double best = own;
  double best_order = order;
  for (int i = 0; i < neighbours; ++i) {
    const double near = whole(order * (1 - apart + 2 * apart * random.uniform()));
    const double found = rate(machine, subject, near);
    if (found <= best) continue;
    best = found;
    best_order = near;
  }
  Line line(name);
  line.add("value", own / best).add("n", order).add("rate", own * 1e-12);
  line.add("best", best * 1e-12).add("best_n", best_order);
  line.add("devices", machine.spaces() - 1.0);
  return {own / best, own, std::move(line)};
}

/// Of the line between the rates of the powers of two below and above it.
Sample beside_line(const std::string& name, const Subject& subject, const Machine& machine,
                   double order) {
  const double own = rate(machine, subject, order);
  const double expected =
      on_the_line(order, [&](double power) { return rate(machine, subject, power); });
  Line line(name);
  line.add("value", own / expected).add("n", order).add("rate", own * 1e-12);
  line.add("line", expected * 1e-12).add("devices", machine.spaces() - 1.0);
  return {own / expected, own, std::move(line)};
}

/// `rate`: the geometric mean of all.
void print_summary(const std::string& name, std::vector<double> shares, double rate) {
  std::ranges::sort(shares);
  const auto at = [&](double part) {
    return shares[static_cast<std::size_t>(part * static_cast<double>(shares.size() - 1))];
  };
  const auto low = std::ranges::count_if(shares, [](double share) { return share < 0.95; });
  Line(name)
      .add("value", shares.front())
      .add("unit", "of the best")
      .add("bound", 1)
      .add("five_percent", at(0.05))
      .add("median", at(0.5))
      .add("rate", rate * 1e-12)
      .add("below_0.95", static_cast<double>(low))
      .add("of", static_cast<double>(shares.size()))
      .print();
}

Problem::Kind kind_of(const std::string& operation) {
  require(operation == "gemm" || operation == "potrf",
          fmt::format("'{}': the operations are gemm and potrf", operation));
  return operation == "gemm" ? Problem::Kind::matmul : Problem::Kind::cholesky;
}

/// What a special case changes: rates with it over those without.
class Gains {
 public:
  void add(double order, double gain) {
    all_ += std::log(gain);
    ++count_;
    if (std::abs(gain - 1) < least_change) return;
    touched_ += std::log(gain);
    ++touched_count_;
    least_ = std::min(least_, gain);
    if (gain <= most_) return;
    most_ = gain;
    most_order_ = order;
  }
  void print(const std::string& name) const {
    Line(name)
        .add("value", mean(touched_, touched_count_))
        .add("unit", "of the rate without")
        .add("touched", touched_count_)
        .add("of", count_)
        .add("mean", mean(all_, count_))
        .add("least", least_)
        .add("most", most_)
        .add("most_n", most_order_)
        .print();
  }

 private:
  static constexpr double least_change = 1e-3;
  static double mean(double logarithms, double count) {
    return count > 0 ? std::exp(logarithms / count) : 1;
  }
  double all_ = 0, touched_ = 0;
  double count_ = 0, touched_count_ = 0;
  double least_ = 1, most_ = 1, most_order_ = 0;
};

/// A described machine with fewer devices, and with less memory where `is_scarce`.
Machine machine_for(const std::string& file, std::int64_t most_devices, double order,
                    bool is_scarce, Random& random) {
  const auto drawn = random.below(static_cast<std::uint64_t>(most_devices));
  Machine machine = machine_of(file, 1 + static_cast<std::int64_t>(drawn));
  constexpr double least_share = 0.1, most_share = 0.9;
  const double share = least_share + (most_share - least_share) * random.uniform();
  const double bytes = share * order * order * 8 / (machine.spaces() - 1);
  for (Device& device : machine.devices)
    if (is_scarce && device.space != host_space)
      device.memory_bytes = std::min(device.memory_bytes, static_cast<std::size_t>(bytes));
  return machine;
}

/// That a caller might give: 256 to 4096, but no more than a few tens along an edge, so that all
/// tasks are simulated; and so that each device has room for a few.
std::int64_t drawn_tile(const Machine& machine, double order, Random& random) {
  constexpr double least_tile = 256, most_along_an_edge = 40, at_once = 6;
  double most_tile = 4096;
  for (const Device& device : machine.devices)
    if (device.space != host_space)
      most_tile =
          std::min(most_tile, std::sqrt(static_cast<double>(device.memory_bytes) / (at_once * 8)));
  const double least = std::min(most_tile, std::max(least_tile, order / most_along_an_edge));
  return static_cast<std::int64_t>(least * std::pow(most_tile / least, random.uniform()));
}

void print_gains(const Settings& settings, const std::string& operation,
                 const std::string& without) {
  const Subject subject{kind_of(operation), settings.integer("calls", 0, 0)};
  const std::string file = settings.text("machine", "machines/h200x4.json");
  const std::int64_t devices = settings.integer("devices", 4);
  const std::int64_t count = settings.integer("count", 24);
  const double least = static_cast<double>(settings.integer("least", 6000));
  const double most = static_cast<double>(settings.integer("most", 40000));
  const bool has_tiles = settings.text("tiles", "default") == "drawn";
  const bool is_drawn = settings.text("rates", "described") == "drawn";
  Random random(static_cast<std::uint64_t>(settings.integer("seed", 1, 0)));
  std::vector<std::string_view> names{without};
  if (without == "each")
    names.assign(linalg::special_case_names().begin(), linalg::special_case_names().end());
  std::vector<Gains> gains(names.size());
  for (std::int64_t i = 0; i < count; ++i) {
    Random own = random.split();
    const double order = whole(least * std::pow(most / least, own.uniform()));
    Machine machine = machine_for(file, devices, order, i % 2 == 1, own);
    const std::int64_t tile = has_tiles ? drawn_tile(machine, order, own) : 0;
    if (is_drawn) draw_rates(machine, true, own);
    const double all = rate(machine, subject, order, tile);
    for (std::size_t c = 0; c < names.size(); ++c) {
      const linalg::WithoutSpecialCase left_out(names[c]);
      gains[c].add(order, all / rate(machine, subject, order, tile));
    }
  }
  for (std::size_t c = 0; c < names.size(); ++c)
    gains[c].print(fmt::format("{}-without-{}", operation, names[c]));
}

}  // namespace

void plans(const Settings& settings) {
  const std::string operation = settings.text("operation", "gemm");
  if (const std::string without = settings.text("without", ""); !without.empty())
    return print_gains(settings, operation, without);
  const Subject subject{kind_of(operation), settings.integer("calls", 0, 0)};
  const std::string run = settings.text("run", "machines");
  require(run == "machines" || run == "orders",
          fmt::format("'{}': the runs are machines and orders", run));
  const std::string file = settings.text("machine", "machines/h200x4.json");
  const std::int64_t devices = settings.integer("devices", 4);
  const std::int64_t count = settings.integer("count", run == "machines" ? 500 : 12);
  const std::int64_t first = settings.integer("first", 0, 0);
  const std::int64_t only = settings.integer("only", -1, 0);
  const std::int64_t planning = settings.integer("planning-percent", -1, 0);
  if (planning >= 0) Config::global().set("planning_percent", std::to_string(planning));
  const bool alike = settings.text("alike", "off") == "on";
  const auto seed = static_cast<std::uint64_t>(settings.integer("seed", 1, 0));
  const double least = static_cast<double>(settings.integer("least", 6000));
  const double most =
      static_cast<double>(settings.integer("most", run == "machines" ? 30000 : 65536));
  Random random(seed);
  std::vector<double> shares;
  double logarithms = 0;
  for (std::int64_t i = 0; i < first + count; ++i) {
    Random own = random.split();
    if (only >= 0 ? i != only : i < first) continue;
    const std::string name = fmt::format("{}-{}-{}", operation, run, i);
    double order = whole(least * std::pow(most / least, own.uniform()));
    Sample sample{1, 0, Line(name)};
    if (run == "machines") {
      const Machine machine = drawn_machine(file, devices, alike, own);
      sample = beside_neighbours(name, subject, machine, order, own);
    } else {
      if (i % 2 == 0) order = 2 * whole(order / 2) + 1;
      sample = beside_line(name, subject, machine_of(file, devices), order);
    }
    shares.push_back(sample.share);
    logarithms += std::log(sample.rate);
    if (sample.share < 0.95 || run == "orders" || only >= 0) sample.line.print();
  }
  if (shares.empty()) return;
  const double mean = std::exp(logarithms / static_cast<double>(shares.size()));
  print_summary(fmt::format("{}-{}", operation, run), std::move(shares), mean);
}

}  // namespace quadriga::bench
