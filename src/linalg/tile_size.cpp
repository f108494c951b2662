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

/// Tiles between these orders keep a kernel busy and a device's queue filled.
struct Bounds {
  double least = 128;
  double most = 1024;
};

/// Where no table tells what kernels take: tiles of a product for each core, and along the edge of
/// all else. The latter doesn't follow the number of cores or devices: results are the same then.
constexpr double tiles_a_core = 8;
constexpr double tiles_an_edge_of_cores = 12;
constexpr double tiles_an_edge = 16;

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
  constexpr Bounds bounds;
  double tile = std::clamp(wanted(engine, group, problem, alone), bounds.least, bounds.most);
  if (!group.devices.empty()) {
    constexpr double tiles_in_memory = 40;
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
