// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tile_size.cpp: the default tile, by sizes, type, kind of device and its memory.
#include "linalg/tile_size.h"

#include "linalg/check.h"
#include "linalg/cholesky.h"
#include "linalg/team.h"

#include <algorithm>
#include <cmath>

namespace quadriga::linalg {
namespace {

/// Tiles between these orders keep a kernel busy and a device's queue filled.
struct Bounds {
  std::int64_t least;
  std::int64_t most;
};

bool is_cuda(const Engine& engine, const Team& team) {
  return engine.machine().devices[team.devices.front()].kind == DeviceKind::cuda;
}

Bounds bounds_for(const Engine& engine, const Team& team, bool is_product) {
  if (team.devices.empty()) return {128, is_product ? 1024 : 768};
  return is_cuda(engine, team) ? Bounds{512, 4096} : Bounds{128, 1024};
}

/// A BLAS packs both operands of each task anew, so tiles of a product on cores are as large as
/// leaves each core this many tiles of C.
constexpr double tiles_a_core = 8;

/// Before bounds and memory.
double wanted(const Engine& engine, const Team& team, const Problem& problem, bool alone) {
  const auto area = static_cast<double>(problem.m) * static_cast<double>(problem.n);
  const bool is_product = problem.kind == Problem::Kind::matmul;
  if (team.devices.empty() && is_product)
    return std::sqrt(area / (tiles_a_core * (alone ? 1 : engine.machine().devices.front().cores)));
  const std::int64_t longest = is_product ? std::max({problem.m, problem.n, problem.k}) : problem.m;
  if (team.devices.empty()) return static_cast<double>(longest) / 11;
  // A single GPU's time goes into its products, which like large tiles; several share the columns.
  const std::int64_t least = 4 + 4 * team.size();
  const bool few = is_cuda(engine, team) && !is_product && least < 16;
  return static_cast<double>(longest) / (few ? static_cast<double>(least) : 16);
}

std::int64_t rounded(double tile) {
  constexpr std::int64_t step = 64;
  return std::max<std::int64_t>(step, std::llround(tile / step) * step);
}

}  // namespace

std::int64_t default_tile(const Engine& engine, const Problem& problem, const Options& options) {
  const bool alone = reproducible(engine, options);
  const Team all = team_of(engine);
  const Team team = alone ? first_of(engine, all) : all;
  const bool is_product = problem.kind == Problem::Kind::matmul;
  if (!is_product)
    if (const std::int64_t tile = cholesky_tile(engine, team, problem.m, problem.dtype); tile > 0)
      return tile;
  const auto [least, most] = bounds_for(engine, team, is_product);
  double tile = std::clamp(wanted(engine, team, problem, alone), static_cast<double>(least),
                           static_cast<double>(most));
  if (!team.devices.empty()) {
    constexpr double tiles_in_memory = 40;
    const double element = static_cast<double>(size_of(problem.dtype));
    tile = std::min(tile,
                    std::sqrt(static_cast<double>(team.memory_bytes) / element / tiles_in_memory));
  }
  return rounded(tile);
}

std::int64_t tile_for(const Engine& engine, const Problem& problem, const Options& options) {
  return options.tile > 0 ? options.tile : default_tile(engine, problem, options);
}

}  // namespace quadriga::linalg
