// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tile_size.cpp: the default tile, by sizes, type, kind of device and its memory.
#include "linalg/tile_size.h"

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

Bounds bounds_for(const Engine& engine, const Team& team) {
  if (team.devices.empty()) return {128, 768};
  const bool cuda = engine.machine().devices[team.devices.front()].kind == DeviceKind::cuda;
  return cuda ? Bounds{1024, 4096} : Bounds{128, 1024};
}

std::int64_t rounded(double tile) {
  constexpr std::int64_t step = 64;
  return std::max<std::int64_t>(step, std::llround(tile / step) * step);
}

}  // namespace

std::int64_t default_tile(const Engine& engine, const Problem& problem) {
  const Team team = team_of(engine);
  const auto [least, most] = bounds_for(engine, team);
  const bool is_product = problem.kind == Problem::Kind::matmul;
  const std::int64_t longest = is_product ? std::max({problem.m, problem.n, problem.k}) : problem.m;
  // On cores few large tiles do for a product; a factorization needs more to share.
  const double pieces = team.devices.empty() ? (is_product ? 8 : 11) : 16;
  double tile = static_cast<double>(longest) / pieces;
  tile = std::clamp(tile, static_cast<double>(least), static_cast<double>(most));
  if (!team.devices.empty()) {
    constexpr double tiles_in_memory = 40;
    const double element = static_cast<double>(size_of(problem.dtype));
    tile = std::min(tile,
                    std::sqrt(static_cast<double>(team.memory_bytes) / element / tiles_in_memory));
  }
  return rounded(tile);
}

std::int64_t tile_for(const Engine& engine, const Problem& problem, const Options& options) {
  return options.tile > 0 ? options.tile : default_tile(engine, problem);
}

}  // namespace quadriga::linalg
