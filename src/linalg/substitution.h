// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/substitution.h: forward and backward substitution on tiles.
#pragma once

#include "linalg/tiles.h"

namespace quadriga::linalg {

/// Where a task runs that uses the triangle's tile (i,j), i >= j, and column `c` of B's tiles.
using Where = std::function<SubmitOptions(std::int64_t i, std::int64_t j, std::int64_t c)>;

/// A triangular matrix E that is to be inverted, by the tiles that store it.
struct TriangularTiles {
  Tiling rows;
  bool lower = true;    ///< What is stored; read() then gives the stored tile (i,j), else (j,i).
  bool forward = true;  ///< E is lower triangular.
  bool unit = false;    ///< Its diagonal is 1 and isn't read.
  Op op = Op::none;     ///< Applied to what is stored, it gives E.
  std::function<Data(std::int64_t i, std::int64_t j, SubmitOptions)> read;  ///< i >= j
};

/// The right-hand sides B: tiles of a view, or without a home.
class RightSides {
 public:
  /// `needs_plain`: what is applied to B includes a conjugate transpose, which B^T has no
  /// kernel for.
  RightSides(Run& run, const MatrixView& view, Tiling rows, Tiling cols, bool needs_plain);
  /// Tiles without a home, for columns of the identity.
  RightSides(Run& run, Tiling rows, std::int64_t width, DType dtype);

  /// Columns `column` of tiles of the identity; rows above aren't touched.
  void set_identity(std::int64_t column);
  Data read(std::int64_t i, std::int64_t c, SubmitOptions where = {});
  Data update(std::int64_t i, std::int64_t c, SubmitOptions where);
  /// No later task changes the tile.
  void final(std::int64_t i, std::int64_t c);
  void finish();

  DType dtype() const noexcept { return dtype_; }
  std::int64_t columns() const noexcept { return cols_.count(); }
  /// The tiles hold B^T.
  bool turned() const noexcept { return turned_; }

 private:
  Run& run_;
  Tiling rows_;
  Tiling cols_;
  DType dtype_;
  bool turned_ = false;
  std::unique_ptr<Tiles> tiles_;
  std::vector<Data> loose_;
};

struct SubstitutionRange {
  bool last = false;       ///< B's tiles are final afterwards.
  std::int64_t first = 0;  ///< Rows of tiles above are zero, and stay untouched.
};

/// B = E^-1*B.
void substitute(Run& run, const TriangularTiles& triangle, RightSides& sides, const Where& where,
                SubstitutionRange range);
double substitution_tasks(const Tiling& rows, const Tiling& cols) noexcept;

}  // namespace quadriga::linalg
