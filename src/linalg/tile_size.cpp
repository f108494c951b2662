// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tile_size.cpp: the default tile, by sizes, type, kind of device and its memory.
#include "linalg/tile_size.h"

#include "linalg/check.h"
#include "linalg/cholesky_choice.h"
#include "linalg/device_group.h"

#include <algorithm>
#include <cmath>

namespace quadriga::linalg {
namespace {

// Where no table tells what kernels take, no figure of a machine determines the tile. These bounds
// stand for it.

/// Of a product's C for each core: a core waits for the others to end for an eighth of its time at
/// most.
constexpr double tiles_a_core = 8;
/// Along the edge of all else, whatever the number of cores or devices, so that results are the
/// same for any. Of the n(n+1)(n+2)/6 tasks of a factorization 3n-2 follow one another: with 12 ten
/// may run at once on the average, with 16 seventeen.
constexpr double tiles_an_edge_of_cores = 12;
constexpr double tiles_an_edge = 16;
/// Products of smaller tiles, of 4 Mflop, are so short that queueing them counts; of larger ones
/// three fill a core's share of most caches several times, so that nothing is gained.
constexpr double least_tile = 128;
constexpr double most_tile = 1024;
/// That a device's memory holds: three for each task that is issued or fetched ahead on a few
/// streams.
constexpr double tiles_in_memory = 40;

/// Before bounds and memory.
double wanted(const Engine& engine, const DeviceGroup& group, const Problem& problem, bool alone) {
  const bool is_product = problem.kind == Problem::Kind::matmul;
  const std::int64_t longest = is_product ? std::max({problem.m, problem.n, problem.k}) : problem.m;
  if (!group.devices.empty()) return static_cast<double>(longest) / tiles_an_edge;
  if (!is_product) return static_cast<double>(longest) / tiles_an_edge_of_cores;
  const double area = static_cast<double>(problem.m) * static_cast<double>(problem.n);
  return std::sqrt(area / (tiles_a_core * (alone ? 1 : engine.machine().devices.front().cores)));
}

std::int64_t rounded(double tile, std::int64_t granule) {
  const double granules = tile / static_cast<double>(granule);
  return std::max<std::int64_t>(1, std::llround(granules)) * granule;
}

std::int64_t tile_of(const Engine& engine, const Problem& problem, const Options& options,
                     Trials trials) {
  const bool alone = reproducible(engine, options);
  const DeviceGroup all = group_of(engine);
  const DeviceGroup group = alone ? first_of(engine, all) : all;
  const bool is_product = problem.kind == Problem::Kind::matmul;
  if (!is_product)
    if (const std::int64_t tile = choose_cholesky(engine, group, problem, 0,
                                                  alone ? Trials::none : trials, Asked::by_query)
                                      .tile;
        tile > 0)
      return tile;
  double tile = std::clamp(wanted(engine, group, problem, alone), least_tile, most_tile);
  if (!group.devices.empty()) {
    const double element = static_cast<double>(size_of(problem.dtype));
    tile = std::min(tile,
                    std::sqrt(static_cast<double>(group.memory_bytes) / element / tiles_in_memory));
  }
  return rounded(tile, group.granule);
}

}  // namespace

std::int64_t default_tile(const Engine& engine, const Problem& problem, const Options& options) {
  return tile_of(engine, problem, options, Trials::allowed);
}

std::int64_t tile_for(const Engine& engine, const Problem& problem, const Options& options,
                      Trials trials) {
  return options.tile > 0 ? options.tile : tile_of(engine, problem, options, trials);
}

}  // namespace quadriga::linalg
