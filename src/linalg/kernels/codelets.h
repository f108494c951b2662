// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/codelets.h: the tile kernels as codelets for the engine, with their parameters
// and costs.
//
// A codelet exists once for each type and lives as long as the process. Its parameters are one of
// the structs below, given to submit() as bytes. The first call of any of these functions sets the
// BLAS to one thread. Costs name kernels as machines/*.json do ("dgemm"): a product of m x k and
// k x n has volume mnk, syrk and herk (both "dsyrk") n^2 k, a solve m^2 n or m n^2, potrf n^3. What
// moves elements and hardly computes is charged as a small product, for no table lists it.
//
// With `fine`, cpu variants of gemm, syrk, herk, trsm and potrf compute on a finer grid, in which
// idle cores take part (divisions.h). The bits may differ from those without, and depend on the
// shapes alone.
#pragma once

#include "linalg/kernels/covariance.h"
#include "linalg/kernels/tile_elements.h"

#include <quadriga/codelet.h>

namespace quadriga::kernels {

using linalg::Coefficient;

struct GemmParams {
  Coefficient alpha{1, 0};
  Coefficient beta{};  ///< Ignored where C is written only.
  Op op_a = Op::none;
  Op op_b = Op::none;
  bool allow_tf32 = false;  ///< A GPU may round float32 and complex64 factors to TF32.
  bool fine = false;
  /// Where A's columns begin among the rows of op(B), of which it has as many or fewer; -1: it has
  /// as many.
  std::int32_t inner = -1;
};

struct SyrkParams {
  Coefficient alpha{1, 0};  ///< herk takes the real parts only.
  Coefficient beta{};       ///< Ignored where C is written only.
  Uplo uplo = Uplo::lower;
  Op op = Op::none;
  bool allow_tf32 = false;  ///< As in GemmParams.
  bool fine = false;
};

struct TrsmParams {
  Coefficient alpha{1, 0};
  Side side = Side::left;
  Uplo uplo = Uplo::lower;
  Op op = Op::none;
  Diag diag = Diag::non_unit;
  bool fine = false;
};

struct PotrfParams {
  std::int64_t first = 0;  ///< The tile's first row in the matrix; offset of a reported minor.
  Uplo uplo = Uplo::lower;
  bool fine = false;
};

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

/// {A read, B read, C update}: C = alpha*op(A)*op(B) + beta*C; of op(B) the rows that
/// GemmParams::inner says. Parameters: GemmParams.
const Codelet& gemm_codelet(DType type);
/// {A read, B read, C write}: C = alpha*op(A)*op(B), whatever C held.
const Codelet& gemm_write_codelet(DType type);

/// {A read, C update}: a triangle of C = alpha*op(A)*op(A)^T + beta*C. Parameters: SyrkParams.
const Codelet& syrk_codelet(DType type);
/// {A read, C write}: the same without beta*C; the other triangle is set to zero.
const Codelet& syrk_write_codelet(DType type);
/// As syrk with the conjugate transpose.
const Codelet& herk_codelet(DType type);
const Codelet& herk_write_codelet(DType type);

/// {T read, B update}: B = alpha*op(T)^-1*B or alpha*B*op(T)^-1. Parameters: TrsmParams.
const Codelet& trsm_codelet(DType type);

/// {A update}: A's Cholesky factor. Parameters: PotrfParams. The variant throws NotPositiveDefinite
/// with the minor of the whole matrix.
const Codelet& potrf_codelet(DType type);

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

}  // namespace quadriga::kernels
