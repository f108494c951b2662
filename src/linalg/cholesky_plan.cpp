// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky_plan.cpp: the devices and the tile of a factorization, by the machine's
// rates.
#include "linalg/check.h"
#include "linalg/cholesky_choice.h"
#include "linalg/cholesky_schedule.h"
#include "linalg/home_links.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/tile_size.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
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

/// Of a tile: copies to and from all devices at once, each by its share of their links.
std::vector<CholeskyLinks> links_of(const Machine& machine, const DeviceGroup& group, double bytes,
                                    double run_bytes) {
  HomeLinks home_links(machine, group);
  const auto seconds = [&](double rate) { return std::isfinite(rate) ? bytes / rate : 0; };
  std::vector<double> loads = home_links.load_rates(run_bytes);
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

bool knows_rates(const Engine& engine, DeviceId device, DType dtype) {
  const Machine& machine = engine.machine();
  const auto knows = [&](const kernels::Names& names) {
    return machine.has_kernel(machine.devices[device], names[kernels::type_index(dtype)]);
  };
  return knows(kernels::potrf_names) && knows(kernels::trsm_names) && knows(kernels::syrk_names) &&
         knows(kernels::gemm_names);
}

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

CholeskyPlan plan_from_host(const Engine& engine, const DeviceGroup& all, const Problem& problem,
                            const Options& options, Trials trials) {
  CholeskyPlan plan{all, options.tile};
  const PlaceOwners* const imposed = ImposedPlaces::current();
  if (trials == Trials::none || reproducible(engine, options) || (imposed && plan.tile > 0)) {
    plan.tile = tile_for(engine, problem, options, trials);
    if (imposed && trials == Trials::allowed && imposed->size() == all.places.size())
      plan.group.places = *imposed;
    return plan;
  }
  CholeskyChoice choice =
      choose_cholesky(engine, all, problem, options.tile, trials, Asked::by_call);
  plan.tile = choice.tile > 0 ? choice.tile : tile_for(engine, problem, options, trials);
  plan.group.places = std::move(choice.places);
  return plan;
}

}  // namespace

CholeskyPlan plan_cholesky(const Engine& engine, DeviceId home, const Problem& problem,
                           const Options& options, Trials trials) {
  const std::int64_t order = problem.m;
  const DType dtype = problem.dtype;
  const DeviceGroup all = group_of(engine);
  const auto usual = [&](Trials may) { return tile_for(engine, problem, options, may); };
  if (home == no_device || order == 0) return plan_from_host(engine, all, problem, options, trials);
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
