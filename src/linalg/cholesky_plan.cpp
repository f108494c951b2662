// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky_plan.cpp: the devices and the tile of a factorization, by the machine's
// rates.
#include "linalg/cholesky.h"

#include "linalg/check.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/tile_size.h"

#include <cmath>
#include <limits>

namespace quadriga::linalg {
namespace {

/// Seconds of all tasks one after the other on a device that has the matrix.
double work_seconds(const Engine& engine, const Team& team, std::int64_t order, std::int64_t tile,
                    DType dtype) {
  const CholeskyShape shape = cholesky_shape(engine, team, order, tile, dtype);
  const auto count = static_cast<double>(shape.tiles);
  const double pairs = count * (count - 1) / 2;
  return count * shape.potrf_seconds + pairs * (shape.trsm_seconds + shape.syrk_seconds) +
         pairs * (count - 2) / 3 * shape.gemm_seconds +
         cholesky_tasks(shape.tiles) * engine.machine().launch_seconds;
}

/// The tile of least work_seconds(), which are written to `seconds`.
std::int64_t best_tile(const Engine& engine, const Team& team, std::int64_t order, DType dtype,
                       double& seconds) {
  constexpr std::int64_t most_tiles = 32;
  constexpr std::int64_t step = 64;
  seconds = std::numeric_limits<double>::infinity();
  std::int64_t best = order;
  for (std::int64_t count = 1; count <= most_tiles; ++count) {
    const std::int64_t length = (order + count - 1) / count;
    const std::int64_t tile = std::min(order, (length + step - 1) / step * step);
    const double found = work_seconds(engine, team, order, tile, dtype);
    if (found >= seconds) continue;
    seconds = found;
    best = tile;
  }
  return best;
}

bool knows_rates(const Engine& engine, DeviceId device, DType dtype) {
  const Machine& machine = engine.machine();
  return machine.has_kernel(machine.devices[device],
                            kernels::potrf_names[kernels::type_index(dtype)]);
}

}  // namespace

CholeskyPlan plan_cholesky(const Engine& engine, DeviceId home, std::int64_t order, DType dtype,
                           const Options& options) {
  const Team all = team_of(engine);
  const std::int64_t usual =
      tile_for(engine, {Problem::Kind::cholesky, order, order, order, dtype}, options);
  if (home == no_device || order == 0) return {all, usual};
  const Team alone = team_at(home);
  if (options.tile > 0 || !knows_rates(engine, home, dtype)) return {alone, usual};
  double seconds = 0;
  const std::int64_t tile = best_tile(engine, alone, order, dtype, seconds);
  if (all.size() < 2 || reproducible(options)) return {alone, tile};
  const Team fed = fed_from(engine, all, home);
  // A triangle goes there, and comes back.
  const double bytes =
      static_cast<double>(order) * static_cast<double>(order) * static_cast<double>(size_of(dtype));
  const double shared =
      work_seconds(engine, all, order, usual, dtype) / static_cast<double>(all.size()) +
      bytes / static_cast<double>(all.size()) * fed.seconds_a_byte;
  return shared < seconds ? CholeskyPlan{fed, usual} : CholeskyPlan{alone, tile};
}

}  // namespace quadriga::linalg
