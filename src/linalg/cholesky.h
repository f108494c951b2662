// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/cholesky.h: the tiled Cholesky factorization that cholesky() and cho_factor() share.
#pragma once

#include "linalg/cholesky_schedule.h"
#include "linalg/device_group.h"
#include "linalg/order.h"
#include "linalg/tile_size.h"
#include "linalg/tiles.h"

namespace quadriga::linalg {

/// The matrix that is factorized, in its stored orientation: tiles of its triangle `uplo`.
struct Triangle {
  Tiles* tiles = nullptr;
  Uplo uplo = Uplo::lower;

  bool lower() const noexcept { return uplo == Uplo::lower; }
  /// Row and column of the stored tile for the lower triangle's (i,j).
  std::pair<std::int64_t, std::int64_t> stored(std::int64_t i, std::int64_t j) const noexcept {
    return lower() ? std::pair(i, j) : std::pair(j, i);
  }
  Data read(std::int64_t i, std::int64_t j, SubmitOptions where) const {
    const auto [row, col] = stored(i, j);
    return tiles->read(row, col, where);
  }
  Data update(std::int64_t i, std::int64_t j, SubmitOptions where) const {
    const auto [row, col] = stored(i, j);
    return tiles->update(row, col, where);
  }
};

/// What the time of a factorization by tiles of this order follows from.
CholeskyTimes cholesky_times(const Engine& engine, const DeviceGroup& group, std::int64_t order,
                             std::int64_t tile, DType dtype);

/// Whether the machine's table tells the times of a factorization's kernels on the device.
bool knows_rates(const Engine& engine, DeviceId device, DType dtype);

/// The shape for orders, with the times that the machine's table gives.
CholeskyShape cholesky_shape(const Engine& engine, const DeviceGroup& group, std::int64_t order,
                             std::int64_t tile, DType dtype);
double cholesky_tasks(std::int64_t tiles) noexcept;

/// Brings a tile's elements into place before its first use.
using Fill = std::function<void(std::int64_t i, std::int64_t j, SubmitOptions where)>;

/// Submits tasks that set to zero what isn't in the triangle `uplo` of `out`, which lies on a
/// device: beside the tiles on the diagonal, and if these are the triangle's own, in place, in
/// them. Tiles elsewhere are written whole.
void submit_clear_other(Run& run, const Triangle& triangle, const MatrixView& out, Uplo uplo,
                        bool in_place);

/// Submits the tasks that factorize the triangle. `fill`, if any, is called for the lower
/// triangle's (i,j) before the first task that uses the tile.
void submit_cholesky(Run& run, const Triangle& triangle, const CholeskyShape& shape,
                     const DeviceGroup& group, const Fill& fill);

/// Who factorizes, with who has which place, and by which tile.
struct CholeskyPlan {
  DeviceGroup group;
  std::int64_t tile = 0;
};

/// `home`: the device in whose memory the matrix lies and stays, or no_device. There it is that
/// device alone, by the tile that takes least time by the machine's table (which may be the whole
/// matrix), or all devices by the default tile, if their share of the work and the way to them
/// take less.
CholeskyPlan plan_cholesky(const Engine& engine, DeviceId home, const Problem& problem,
                           const Options& options, Trials trials);

/// What a tile on the diagonal gets outside the triangle when it is filled.
enum class Rest : std::uint8_t { any, zero, leave };

/// Fills tiles of `to` from A's triangle `uplo`; `transposed`: they are tiles of A's transpose.
class TriangleFiller {
 public:
  TriangleFiller(Run& run, const Matrix& a, Uplo uplo, Tiles& to, bool transposed, Rest rest);
  /// The tile that stands for the lower triangle's (i,j).
  void operator()(std::int64_t i, std::int64_t j, SubmitOptions where);

 private:
  void gather(std::int64_t row, std::int64_t col, Data target, SubmitOptions where);
  void copy(Data from, Data target, Op op, bool diagonal, SubmitOptions where);

  Run& run_;
  Uplo stored_;
  Tiles& to_;
  Rest rest_;
  std::unique_ptr<HomeTiles> from_;
  bool turned_ = false;  ///< `from_` holds the transpose of what `to_` holds.
  std::shared_ptr<Origin> origin_;
  Data order_;
  std::byte home_of_order_{};
};

inline Uplo flipped(Uplo uplo) noexcept { return uplo == Uplo::lower ? Uplo::upper : Uplo::lower; }

}  // namespace quadriga::linalg
