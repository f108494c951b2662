// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/elements.h: kernels that copy, set, generate and measure tiles.
//
// What moves elements and hardly computes is charged as a small product, for no table lists it.
#pragma once

#include "linalg/kernels/covariance.h"
#include "linalg/kernels/kernel_spec.h"
#include "linalg/kernels/tile_elements.h"

namespace quadriga::kernels {

struct CopyParams {
  Op op = Op::none;
  TileRegion region;
};

struct AxpbyParams {
  Coefficient alpha{1, 0};
  Coefficient beta{};
  Op op = Op::none;
  TileRegion region;
};

struct SetParams {
  Coefficient value;
  Coefficient on_diagonal;
  TileRegion region;
};

struct ScaleParams {
  Coefficient alpha;
  TileRegion region;
};

struct AddDiagonalParams {
  Coefficient value;
  std::int64_t diagonal = 0;
};

struct MirrorParams {
  Uplo stored = Uplo::lower;
  Op op = Op::conjugate;
};

/// What to measure, see tile_measure.h; the result is a column of doubles.
enum class Measure : std::uint8_t {
  max_abs,
  sum_of_squares,
  sum_log_diagonal,
  column_sums,     ///< One for each column.
  column_squares,  ///< One for each column.
  row_sums,        ///< One for each row.
};

struct MeasureParams {
  Measure measure = Measure::max_abs;
  TileRegion region;
};

struct CovarianceTile {
  const Covariance* covariance = nullptr;  ///< Must outlive the task.
  std::int64_t first_row = 0;
  std::int64_t first_col = 0;
};

/// {A read, C update}: C = op(A) in a region. Parameters: CopyParams.
const Codelet& copy_codelet(DType type);
/// {A read, C write}: C = op(A), zero outside the region.
const Codelet& copy_write_codelet(DType type);
/// {A read, C update}: C = alpha*op(A) + beta*C in a region. Parameters: AxpbyParams.
const Codelet& axpby_codelet(DType type);

/// {A update}: A = alpha*A in a region. Parameters: ScaleParams.
const Codelet& scale_codelet(DType type);
/// {A update}: sets a region. Parameters: SetParams.
const Codelet& set_codelet(DType type);
/// {A write}: sets a region, and the rest to zero. Parameters: SetParams.
const Codelet& set_write_codelet(DType type);
/// {A update}: adds to the matrix's diagonal. Parameters: AddDiagonalParams.
const Codelet& add_diagonal_codelet(DType type);
/// {A update}: fills the other triangle of a tile on the diagonal. Parameters: MirrorParams.
const Codelet& mirror_codelet(DType type);

/// {A write}: random elements. Parameters: RandomMatrix, placed at the tile.
const Codelet& random_codelet(DType type);
/// {A write}: covariances. Parameters: CovarianceTile. float32 and float64 only.
const Codelet& covariance_codelet(DType type);

/// {A read, R write}: a measure of A; R is a float64 column. Parameters: MeasureParams. `type`
/// is A's.
const Codelet& measure_codelet(DType type);

std::span<const KernelSpec> element_kernels();

}  // namespace quadriga::kernels
