// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky_plan.cpp: the devices and the tile of a factorization, by the machine's
// rates.
#include "linalg/cholesky.h"

#include "base/config.h"
#include "linalg/check.h"
#include "linalg/cholesky_schedule.h"
#include "linalg/home_links.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/tile_size.h"
#include "linalg/tile_trials.h"
#include "memory/copy_times.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace quadriga::linalg {
namespace {

/// Seconds of all tasks one after the other on a device that has the matrix.
double work_seconds(const Engine& engine, const DeviceGroup& group, std::int64_t order,
                    std::int64_t tile, DType dtype) {
  const CholeskyShape shape = cholesky_shape(engine, group, order, tile, dtype);
  const auto count = static_cast<double>(shape.tiles);
  const double pairs = count * (count - 1) / 2;
  return count * shape.potrf_seconds + pairs * (shape.trsm_seconds + shape.syrk_seconds) +
         pairs * (count - 2) / 3 * shape.gemm_seconds +
         cholesky_tasks(shape.tiles) * engine.machine().launch_seconds;
}

/// The tile of least work_seconds(), which are written to `seconds`.
std::int64_t best_tile(const Engine& engine, const DeviceGroup& group, std::int64_t order,
                       DType dtype, double& seconds) {
  constexpr std::int64_t most_tiles = 32;
  seconds = std::numeric_limits<double>::infinity();
  std::int64_t best = order;
  for (std::int64_t count = 1; count <= most_tiles; ++count) {
    const std::int64_t length = (order + count - 1) / count;
    const std::int64_t tile = std::min(order, group.whole(length));
    const double found = work_seconds(engine, group, order, tile, dtype);
    if (found >= seconds) continue;
    seconds = found;
    best = tile;
  }
  return best;
}

bool knows_rates(const Engine& engine, DeviceId device, DType dtype) {
  const Machine& machine = engine.machine();
  const auto knows = [&](const kernels::Names& names) {
    return machine.has_kernel(machine.devices[device], names[kernels::type_index(dtype)]);
  };
  return knows(kernels::potrf_names) && knows(kernels::trsm_names) && knows(kernels::syrk_names) &&
         knows(kernels::gemm_names);
}

/// Which device each place of the group is, and how much slower than the first it computes
/// products.
void set_speeds(const Engine& engine, const DeviceGroup& group, DType dtype, CholeskyTimes& times) {
  const std::string_view gemm = kernels::gemm_names[kernels::type_index(dtype)];
  const auto seconds = [&](DeviceId device) {
    return seconds_of_products(engine.machine(), device, gemm);
  };
  const double first = seconds(group.devices.front());
  for (const DeviceId device : group.devices) {
    const double own = seconds(device);
    times.slower.push_back(first > 0 && own > 0 ? own / first : 1);
  }
  for (const DeviceId device : group.places)
    times.device_of_place.push_back(std::ranges::find(group.devices, device) -
                                    group.devices.begin());
}

/// Devices whose tiles come or go sooner by way of another's link share the rates of both: the
/// scheduler relays them (memory/transfers.h). `alone`: without others' copies; `forward(via, at)`:
/// seconds a byte between two.
void share_links(std::vector<double>& rates, const std::vector<double>& alone,
                 const std::function<double(std::size_t, std::size_t)>& forward) {
  std::vector<bool> shares(rates.size(), false);
  for (std::size_t at = 0; at < rates.size(); ++at)
    for (std::size_t via = 0; via < rates.size(); ++via)
      if (via != at && std::isfinite(alone[via]) &&
          1 / alone[via] + forward(via, at) < 1 / alone[at])
        shares[at] = shares[via] = true;
  double sum = 0;
  double count = 0;
  for (std::size_t at = 0; at < rates.size(); ++at)
    if (shares[at]) sum += rates[at], ++count;
  for (std::size_t at = 0; at < rates.size(); ++at)
    if (shares[at]) rates[at] = sum / count;
}

/// Seconds a byte between two devices; infinite where no link joins them.
double forward_seconds(const HomeLinks& home_links, std::size_t from, std::size_t to) {
  const int route = home_links.between(from, to);
  return route < 0 ? std::numeric_limits<double>::infinity() : 1 / home_links.rate(route);
}

/// How long the runs of a copy to a device are: where one device has whole columns of tiles, some
/// of a column come with one copy (memory/staging.h).
double run_of_loads(const DeviceGroup& group, double run_bytes) {
  const bool is_joined =
      group.size() == 1 && group.share_by_runs(run_bytes) * least_gain_of_columns <= 1;
  return is_joined ? group.slowed_by_runs->runs.rbegin()->first : run_bytes;
}

/// Of a tile: copies to and from all devices at once, each by its share of their links.
std::vector<CholeskyLinks> links_of(const Machine& machine, const DeviceGroup& group, double bytes,
                                    double run_bytes) {
  HomeLinks home_links(machine, group);
  const auto seconds = [&](double rate) { return std::isfinite(rate) ? bytes / rate : 0; };
  std::vector<double> loads = home_links.load_rates(run_of_loads(group, run_bytes));
  std::vector<double> stores = home_links.store_rates(run_bytes);
  std::vector<double> load_alone;
  std::vector<double> store_alone;
  for (std::size_t at = 0; at < home_links.size(); ++at) {
    load_alone.push_back(home_links.rate(home_links.load(at)));
    store_alone.push_back(home_links.rate(home_links.store(at)));
  }
  const auto forward = [&](std::size_t from, std::size_t to) {
    return forward_seconds(home_links, from, to);
  };
  share_links(loads, load_alone, forward);
  share_links(stores, store_alone,
              [&](std::size_t via, std::size_t at) { return forward(at, via); });
  std::vector<CholeskyLinks> links;
  for (std::size_t to = 0; to < home_links.size(); ++to) {
    double receive = 0;
    for (std::size_t from = 0; from < home_links.size(); ++from) {
      if (from == to) continue;
      const int route = home_links.between(from, to);
      // By way of the host where no link joins them.
      receive +=
          route < 0 ? seconds(stores[from]) + seconds(loads[to]) : seconds(home_links.rate(route));
    }
    const double others = std::max<double>(1, static_cast<double>(home_links.size()) - 1);
    links.push_back({seconds(loads[to]), seconds(stores[to]), receive / others});
  }
  return links;
}

}  // namespace

CholeskyTimes cholesky_times(const Engine& engine, const DeviceGroup& group, std::int64_t order,
                             std::int64_t tile, DType dtype) {
  CholeskyTimes times;
  times.shape = cholesky_shape(engine, group, order, tile, dtype);
  times.tiling = {order, tile};
  const double run = static_cast<double>(tile) * static_cast<double>(size_of(dtype));
  const double bytes = run * static_cast<double>(tile);
  times.links = links_of(engine.machine(), group, bytes, tile == order ? bytes : run);
  set_speeds(engine, group, dtype, times);
  times.streams = engine.machine().devices[group.devices.front()].compute_streams;
  times.task_seconds = engine.machine().launch_seconds;
  return times;
}

namespace {

/// The search of cholesky_tile(): numbers of tiles that grow by halves or thirds until three were
/// no better than the best, then those around that; of the best of these the one that takes least
/// time by the virtual clock, where there is time for it.
class TileSearch {
 public:
  TileSearch(const Engine& engine, const DeviceGroup& group, const Problem& problem, Trials trials)
      : engine_(engine),
        group_(group),
        problem_(problem),
        order_(problem.m),
        may_try_(trials == Trials::allowed && group.size() >= 2 && can_try(engine)) {}

  std::int64_t best() {
    search();
    const std::vector<TileCandidate> worth = worth_a_trial(found_);
    const std::int64_t tried = worth.empty() ? 0 : best_by_trial(engine_, problem_, worth);
    return tried > 0 ? tried : best_;
  }

 private:
  static constexpr std::int64_t most_between = 8;

  void search() {
    constexpr auto& counts = part_counts;
    int worse = 0;
    for (auto count = counts.begin(); count != counts.end() && worse < 3; ++count)
      worse = consider(*count) || best_ == 0 ? 0 : worse + 1;
    const auto middle = std::ranges::find(counts, best_count_);
    const std::int64_t from = middle == counts.begin() ? 1 : *std::prev(middle);
    const std::int64_t to = middle >= counts.end() - 1 ? counts.back() : *std::next(middle);
    const std::int64_t step = std::max<std::int64_t>(1, (to - from) / most_between);
    for (std::int64_t count = from + step; count < to; count += step) consider(count);
  }

  /// About so many tiles, whose lengths are multiples of the machine's granule. True if they are
  /// the best so far.
  bool consider(std::int64_t count) {
    constexpr std::int64_t least_in_memory = 4;
    constexpr double near = 1.2;
    // Schedules of several devices aren't more exact; of smaller tiles less hangs on a single one.
    const double alike = group_.size() < 2 ? 1 : 1.01;
    const std::int64_t length = (order_ + count - 1) / count;
    const std::int64_t tile = std::min(order_, group_.whole(length));
    const CholeskyTimes times = cholesky_times(engine_, group_, order_, tile, problem_.dtype);
    const double limit = count > best_count_ ? alike * least_ : least_;
    // Trials look at what is a little worse, too.
    const double visible = may_try_ ? std::max(limit, near * least_) : limit;
    if (times.shape.memory < least_in_memory || cholesky_bound(times) >= visible) return false;
    const double seconds = cholesky_seconds(times, visible);
    if (seconds >= visible) return false;
    if (may_try_ && cholesky_blocks(times.shape).size() == 1)
      found_.push_back({tile, seconds, cholesky_tasks(times.shape.tiles)});
    if (seconds >= limit) return false;
    least_ = std::min(least_, seconds);
    best_ = tile;
    best_count_ = count;
    return true;
  }

  const Engine& engine_;
  const DeviceGroup& group_;
  const Problem& problem_;
  std::int64_t order_;
  bool may_try_;
  std::vector<TileCandidate> found_;
  double least_ = std::numeric_limits<double>::infinity();
  std::int64_t best_ = 0;
  std::int64_t best_count_ = 1;
};

/// The tiles of the last calls: programs repeat factorizations, and a search takes milliseconds.
class TileMemo {
 public:
  template <class Search>
  std::int64_t find(const std::vector<double>& key, Search&& search) {
    constexpr std::size_t most = 16;
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::ranges::find(tiles_, key, &Entry::first);
      if (found != tiles_.end()) {
        tiles_.splice(tiles_.begin(), tiles_, found);
        return found->second;
      }
    }
    // Others don't wait for it, even if two search for the same.
    const std::int64_t tile = search();
    const std::lock_guard lock(mutex_);
    tiles_.emplace_front(key, tile);
    if (tiles_.size() > most) tiles_.pop_back();
    return tile;
  }

 private:
  using Entry = std::pair<std::vector<double>, std::int64_t>;
  std::mutex mutex_;
  std::list<Entry> tiles_;  ///< Last used first; guarded by mutex_.
};

/// What is factorized, whatever is solved with it; a factor that stays on devices is one to solve
/// with.
Problem factorization_of(const Problem& problem) {
  Problem factorization = problem;
  if (problem.from_source) factorization.kind = Problem::Kind::cho_solve;
  if (factorization.kind == Problem::Kind::cho_solve) factorization.in_place = true;
  factorization.n = factorization.kind == Problem::Kind::cho_solve ? 0 : problem.m;
  factorization.k = problem.m;
  return factorization;
}

/// All that the search knows.
std::vector<double> key_of(const Engine& engine, const DeviceGroup& group, const Problem& problem,
                           Trials trials) {
  const Machine& machine = engine.machine();
  const Device& device = machine.devices[group.devices.front()];
  std::vector<double> key{static_cast<double>(problem.m),
                          static_cast<double>(problem.dtype),
                          static_cast<double>(problem.kind),
                          problem.from_source ? 1.0 : 0.0,
                          problem.in_place ? 1.0 : 0.0,
                          trials == Trials::allowed && can_try(engine) ? 1.0 : 0.0,
                          static_cast<double>(group.size()),
                          static_cast<double>(group.places.size()),
                          static_cast<double>(group.memory_bytes),
                          static_cast<double>(group.granule),
                          static_cast<double>(device.compute_streams),
                          group.seconds_a_byte,
                          machine.launch_seconds,
                          static_cast<double>(engine.options().window),
                          static_cast<double>(engine.options().host_memory),
                          static_cast<double>(Config::global().integer("window")),
                          static_cast<double>(Config::global().integer("planning_percent"))};
  const auto append = [&](const std::map<double, double>& table) {
    for (const auto& [at, value] : table) key.insert(key.end(), {at, value});
  };
  const std::vector<double> home_links = HomeLinks(machine, group).key();
  key.insert(key.end(), home_links.begin(), home_links.end());
  CholeskyTimes speeds;
  set_speeds(engine, group, problem.dtype, speeds);
  key.insert(key.end(), speeds.slower.begin(), speeds.slower.end());
  for (const std::ptrdiff_t place : speeds.device_of_place)
    key.push_back(static_cast<double>(place));
  for (const kernels::Names* const names :
       {&kernels::potrf_names, &kernels::trsm_names, &kernels::syrk_names, &kernels::gemm_names})
    append(machine.kernels.find((*names)[kernels::type_index(problem.dtype)])
               ->second.at(device.rates));
  return key;
}

}  // namespace

std::int64_t cholesky_tile(const Engine& engine, const DeviceGroup& group, const Problem& problem,
                           Trials trials) {
  static TileMemo memo;
  if (problem.m == 0 || group.size() == 0 ||
      !knows_rates(engine, group.devices.front(), problem.dtype))
    return 0;
  const Problem factorization = factorization_of(problem);
  return memo.find(key_of(engine, group, factorization, trials),
                   [&] { return TileSearch(engine, group, factorization, trials).best(); });
}

bool shall_pull(const Engine& engine, const DeviceGroup& group, const Problem& problem,
                std::int64_t tile) {
  static TileMemo memo;
  if (const std::optional<bool> imposed = imposed_pulling()) return *imposed;
  const bool is_plain = problem.kind == Problem::Kind::cholesky && !problem.from_source;
  if (!is_plain || group.size() < 2 || problem.m == 0 || !can_try(engine) ||
      !knows_rates(engine, group.devices.front(), problem.dtype))
    return false;
  std::vector<double> key = key_of(engine, group, problem, Trials::allowed);
  key.push_back(static_cast<double>(tile));
  const auto search = [&]() -> std::int64_t {
    const CholeskyTimes times = cholesky_times(engine, group, problem.m, tile, problem.dtype);
    return may_try(2 * cholesky_tasks(times.shape.tiles), cholesky_seconds(times)) &&
           is_sooner_pulled(engine, problem, tile);
  };
  return memo.find(key, search) != 0;
}

CholeskyPlan plan_cholesky(const Engine& engine, DeviceId home, const Problem& problem,
                           const Options& options, Trials trials) {
  const std::int64_t order = problem.m;
  const DType dtype = problem.dtype;
  const DeviceGroup all = group_of(engine);
  const auto usual = [&](Trials may) { return tile_for(engine, problem, options, may); };
  if (home == no_device || order == 0) return {all, usual(trials)};
  const DeviceGroup alone = group_at(engine, home);
  if (options.tile > 0 || !knows_rates(engine, home, dtype)) return {alone, usual(Trials::none)};
  double seconds = 0;
  const std::int64_t tile = best_tile(engine, alone, order, dtype, seconds);
  if (all.size() < 2 || reproducible(engine, options)) return {alone, tile};
  const DeviceGroup fed = fed_from(engine, all, home);
  const std::int64_t untried = usual(Trials::none);
  // A triangle goes there, and comes back.
  const double bytes =
      static_cast<double>(order) * static_cast<double>(order) * static_cast<double>(size_of(dtype));
  const double shared =
      work_seconds(engine, all, order, untried, dtype) / static_cast<double>(all.size()) +
      bytes / static_cast<double>(all.size()) * fed.seconds_a_byte;
  // Tiles are tried for those who compute by them.
  return shared < seconds ? CholeskyPlan{fed, usual(trials)} : CholeskyPlan{alone, tile};
}

}  // namespace quadriga::linalg
