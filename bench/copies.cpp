// SPDX-License-Identifier: BSD-3-Clause
// bench/copies.cpp: rates of every kind of copy that a machine has, by size.
//
// The first line tells the machine, and how many lines follow at most.
#include <fmt/format.h>
#include <quadriga/engine.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "base/cgroup.h"
#include "base/units.h"
#include "benchmarks.h"
#include "copy_flows.h"
#include "copy_ways.h"
#include "device/factory.h"
#include "device/fair_share.h"
#include "device/operation.h"
#include "line.h"

namespace quadriga::bench {
namespace {

constexpr std::string_view all_sizes = "4KiB,32KiB,256KiB,2MiB,16MiB,128MiB,1GiB";
constexpr double seconds_of_run = 0.01;
constexpr std::size_t shortest_run = std::size_t{4} << 10;
constexpr std::size_t longest_run = std::size_t{256} << 10;
constexpr std::size_t most_bytes_by_runs = std::size_t{64} << 20;

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    words.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

std::string size_text(std::size_t bytes) {
  for (const auto& [unit, shift] :
       {std::pair("GiB", 30), std::pair("MiB", 20), std::pair("KiB", 10)})
    if (bytes >> shift << shift == bytes && bytes >> shift > 0)
      return fmt::format("{}{}", bytes >> shift, unit);
  return fmt::format("{}B", bytes);
}

double memcpy_rate(std::size_t bytes) {
  std::vector<std::byte> source(bytes, std::byte{1});
  std::vector<std::byte> target(bytes, std::byte{2});
  const double begin = now();
  double end = begin;
  double moved = 0;
  while (end - begin < seconds_of_run) {
    std::memcpy(target.data(), source.data(), bytes);
    moved += static_cast<double>(bytes);
    end = now();
  }
  return moved / (end - begin);
}

// What the links allow the flows together; infinite where the machine says nothing.
double stated_rate(const Machine& machine, const std::vector<Flow>& flows, const Shape& shape) {
  std::vector<int> routes;
  std::vector<double> limits;
  for (const Flow& flow : flows) {
    const Route* const route = machine.route(flow.from, flow.to);
    if (route == nullptr) return std::numeric_limits<double>::infinity();
    routes.push_back(static_cast<int>(route - machine.routes.data()));
    limits.push_back(limit_by_runs(machine, *route, copy_of(flow, shape)));
  }
  std::vector<double> rates(flows.size());
  FairShare(machine).rates(routes, rates, limits);
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

Line& add_way(Line& line, const Way& way) {
  return line.add("kind", way.kind).add("from", way.from).add("to", way.to);
}

std::string case_name(const Way& way, const std::string& size) {
  std::string name = way.kind;
  if (!way.from.empty() && way.from != "all") {
    const bool between = way.from != "host" && way.to != "host" && way.from != way.to;
    name += "-" + (way.from == "host" ? way.to : way.from);
    if (between) name += "-" + way.to;
  }
  return size.empty() ? name : name + "-" + size;
}

class Matrix {
 public:
  Matrix(const Machine& machine, std::vector<std::size_t> sizes, int repeat, bool products)
      : backend_(make_backend(machine)),
        plain_(PlainCopies::make(machine)),
        sizes_(std::move(sizes)),
        repeat_(repeat),
        products_(products || plain_ != nullptr) {
    buffers_.emplace(*backend_, sizes_.back());
  }

  void measure(std::string_view kind) {
    if (kind == "ipc") return between_processes();
    for (const Way& way : ways_of(kind, machine(), *buffers_, plain_ != nullptr)) {
      if (!way.left_out.empty())
        leave_out(way, way.left_out);
      else if (kind.starts_with("runs-"))
        by_runs(way);
      else if (way.maker == Maker::plain_peers_off && !plain_->set_peer_access(false))
        leave_out(way, "no device sees another's memory");
      else
        for (const std::size_t bytes : sizes_) measure(way, bytes);
      if (way.maker == Maker::plain_peers_off) plain_->set_peer_access(true);
    }
  }

 private:
  const Machine& machine() const { return backend_->machine(); }

  // Copies of some time, taking what is stated for the rate, or what a first one took.
  std::size_t rounds(const Way& way, const Shape& shape, double bound) {
    if (!std::isfinite(bound)) bound = rate(way, shape, 1, way.maker);
    const double one_round = static_cast<double>(shape.bytes() * way.flows.size());
    return static_cast<std::size_t>(std::clamp(bound * seconds_of_run / one_round, 1.0, 500.0));
  }

  double rate(const Way& way, const Shape& shape, std::size_t count, Maker maker,
              Products* beside = nullptr) {
    const double seconds = maker == Maker::engine
                               ? backend_seconds(*backend_, way.flows, shape, count, beside)
                               : plain_->seconds(way.flows, shape, count);
    return static_cast<double>(shape.bytes() * way.flows.size() * count) / seconds;
  }

  // In turn with the reference, where there is one for each copy; the first of each doesn't count.
  void measure(const Way& way, std::size_t bytes) {
    const Shape shape{bytes};
    const double bound = stated_rate(machine(), way.flows, shape);
    const std::size_t count = rounds(way, shape, bound);
    const bool compare = way.maker == Maker::engine && plain_ != nullptr;
    std::vector<double> values, references;
    for (int run = 0; run <= repeat_; ++run) {
      const double value = rate(way, shape, run == 0 ? 1 : count, way.maker);
      if (run > 0) values.push_back(value);
      if (!compare) continue;
      const double reference = rate(way, shape, run == 0 ? 1 : count, Maker::plain);
      if (run > 0) references.push_back(reference);
    }
    Line line(case_name(way, size_text(bytes)));
    line.add("value", median(values)).add("unit", "bytes/s");
    if (compare)
      line.add("reference", "cudaMemcpyAsync").add("reference_value", median(references));
    else if (plain_ == nullptr)
      line.add("reference", "memcpy").add("reference_value", memcpy_of(bytes));
    line.add("bound", way.maker == Maker::engine ? bound : std::nan(""))
        .add("bytes", static_cast<double>(bytes));
    add_way(line, way).print();
  }

  // Copies by short runs and as one, which is their reference, beside products as in computations.
  void by_runs(const Way& way) {
    const std::size_t bytes = std::min(most_bytes_by_runs, sizes_.back() / 2);
    if (bytes < 2 * shortest_run)
      return leave_out(way, fmt::format("copies of {} have no runs of {}", size_text(sizes_.back()),
                                        size_text(shortest_run)));
    try {
      std::optional<Products> products;
      if (products_) products.emplace(*backend_, device_of(way));
      for (std::size_t run = shortest_run; run <= longest_run && 2 * run <= bytes; run *= 2)
        by_runs(way, {run, bytes / run, 2 * run}, products ? &*products : nullptr);
    } catch (const Error& error) {
      leave_out(way, error.what());
    }
  }

  void by_runs(const Way& way, const Shape& shape, Products* beside) {
    const Shape one_run{shape.bytes()};
    const double bound = stated_rate(machine(), way.flows, shape);
    const std::size_t count = rounds(way, shape, bound);
    std::vector<double> values, references, products;
    for (int run = 0; run <= repeat_; ++run) {
      const double reference = rate(way, one_run, run == 0 ? 1 : count, way.maker, beside);
      const double value = rate(way, shape, run == 0 ? 1 : count, way.maker, beside);
      if (run == 0) continue;
      values.push_back(value);
      references.push_back(reference);
      if (beside != nullptr) products.push_back(beside->count());
    }
    Line line(case_name(way, size_text(shape.run_bytes)));
    line.add("value", median(values)).add("unit", "bytes/s");
    line.add("reference", "one run").add("reference_value", median(references));
    line.add("bound", bound).add("bytes", static_cast<double>(shape.bytes()));
    line.add("run", static_cast<double>(shape.run_bytes));
    if (beside != nullptr) line.add("products", median(products));
    add_way(line, way).print();
  }

  DeviceId device_of(const Way& way) const {
    const std::string& name = way.from == "host" ? way.to : way.from;
    const auto found = std::ranges::find(machine().devices, name, &Device::name);
    return static_cast<DeviceId>(found - machine().devices.begin());
  }

  double memcpy_of(std::size_t bytes) {
    const auto [found, is_new] = memcpy_rates_.try_emplace(bytes, 0);
    if (is_new) found->second = memcpy_rate(bytes);
    return found->second;
  }

  static void leave_out(const Way& way, std::string_view why) {
    Line line(case_name(way, ""));
    line.add("value", std::nan("")).add("unit", "bytes/s").add("bound", std::nan(""));
    add_way(line.add("left_out", why), way).print();
  }

  void between_processes() {
    Way way{"ipc", "", ""};
    if (plain_ == nullptr)
      return leave_out(way, "memory of other processes is opened by CUDA alone");
    std::vector<std::string> names;
    for (const Device& device : machine().devices)
      if (device.kind == DeviceKind::cuda) names.push_back(device.name);
    try {
      measure_ipc(machine(), sizes_, [&](const IpcFigure& figure) {
        way.from = names[static_cast<std::size_t>(figure.from)];
        way.to = names[static_cast<std::size_t>(figure.to)];
        report(way, figure);
      });
    } catch (const Error& error) {
      leave_out(way, error.what());
    }
  }

  static void report(Way way, const IpcFigure& figure) {
    const bool is_rate = figure.what == "copy";
    if (!is_rate) way.kind = "ipc-" + figure.what;
    Line line(case_name(way, is_rate ? size_text(figure.bytes) : ""));
    line.add("value", figure.value).add("unit", is_rate ? "bytes/s" : "s");
    line.add("bound", std::nan("")).add("bytes", static_cast<double>(figure.bytes));
    add_way(line, way).print();
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<PlainCopies> plain_;
  std::optional<CopyBuffers> buffers_;  // After the backend, which it uses to its end.
  std::vector<std::size_t> sizes_;
  std::map<std::size_t, double> memcpy_rates_;
  int repeat_;
  bool products_;
};

Machine machine_in_use(const std::string& devices) {
  EngineOptions options;
  options.devices = devices;
  Machine machine = Engine(options).machine();
  if (machine.spaces() > 1) return machine;
  require(devices.empty(), fmt::format("'{}': no device has memory of its own", devices));
  const bool has_gpus = Machine::cuda_absence().empty();
  return Machine::parse(has_gpus ? "cuda" : "emulated:2,memory=256MiB,peer=6GB/s");
}

// Those asked for, as far as a quarter of the devices' and the host's memory goes.
std::vector<std::size_t> sizes_of(const Settings& settings, const Machine& machine) {
  std::vector<std::size_t> sizes;
  const std::string list = settings.text("sizes", all_sizes);
  for (const std::string_view word : split(list)) sizes.push_back(parse_bytes(word));
  const auto devices = static_cast<std::size_t>(machine.spaces() - 1);
  std::size_t most = usable_memory_bytes() / (4 * (2 * devices + 2));
  for (const Device& device : machine.devices)
    if (device.space != host_space) most = std::min(most, device.memory_bytes / 4);
  std::ranges::sort(sizes);
  require(!sizes.empty() && sizes.front() > 0, "--sizes: expected sizes above zero, as 4KiB,1MiB");
  std::erase_if(sizes, [most](std::size_t bytes) { return bytes > most; });
  require(!sizes.empty(), fmt::format("--sizes: the devices' and the host's memory allow {}",
                                      format_bytes(static_cast<double>(most))));
  return sizes;
}

}  // namespace

void copies(const Settings& settings) {
  const Machine machine = machine_in_use(settings.text("devices"));
  const std::string kinds = settings.text("kinds");
  const std::vector<std::string_view> wanted = split(kinds);
  const std::vector<std::size_t> sizes = sizes_of(settings, machine);
  Line("machine")
      .add("description", machine.to_json())
      .add("sizes", static_cast<double>(sizes.size()))
      .print();
  Matrix matrix(machine, sizes, static_cast<int>(settings.integer("repeat", 3)),
                settings.text("products") == "on");
  for (const std::string_view kind : copy_kinds)
    if (wanted.empty() || std::ranges::count(wanted, kind) > 0) matrix.measure(kind);
}

}  // namespace quadriga::bench
