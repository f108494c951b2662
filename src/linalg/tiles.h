// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/tiles.h: a matrix as the engine's tiles: at home, without a home, or in slots that are
// filled when a tile is needed.
//
// The algorithms ask for tiles in the order in which they submit tasks. read(), update() and
// write() return data that may be used until three more tiles were asked for: a slot may be filled
// anew then, which the engine orders after the tasks submitted so far.
#pragma once

#include "linalg/kernels/tile.h"
#include "linalg/move.h"
#include "linalg/run.h"
#include "linalg/tiling.h"

#include <list>
#include <map>
#include <span>

namespace quadriga::linalg {

class Tiles {
 public:
  Tiles(Tiling rows, Tiling cols, DType dtype) noexcept
      : rows_(std::move(rows)), cols_(std::move(cols)), dtype_(dtype) {}
  virtual ~Tiles() = default;
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;

  const Tiling& rows() const noexcept { return rows_; }
  const Tiling& cols() const noexcept { return cols_; }
  DType dtype() const noexcept { return dtype_; }

  /// The tile's content is wanted. `where`: of the first task that uses it.
  virtual Data read(std::int64_t i, std::int64_t j, SubmitOptions where) = 0;
  /// It is wanted and changed.
  virtual Data update(std::int64_t i, std::int64_t j, SubmitOptions where) = 0;
  /// It is overwritten.
  virtual Data write(std::int64_t i, std::int64_t j, SubmitOptions where) = 0;
  /// No task submitted later changes the tile.
  virtual void final(std::int64_t i, std::int64_t j) = 0;

 private:
  Tiling rows_;
  Tiling cols_;
  DType dtype_;
};

/// Tiles of a view with contiguous columns, registered when they are first asked for.
class HomeTiles final : public Tiles {
 public:
  HomeTiles(Run& run, const MatrixView& view, Tiling rows, Tiling cols);
  Data read(std::int64_t i, std::int64_t j, SubmitOptions) override { return tile(i, j); }
  Data update(std::int64_t i, std::int64_t j, SubmitOptions) override { return tile(i, j); }
  Data write(std::int64_t i, std::int64_t j, SubmitOptions) override { return tile(i, j); }
  void final(std::int64_t i, std::int64_t j) override;

 private:
  Data tile(std::int64_t i, std::int64_t j);

  Run& run_;
  MatrixView view_;
  std::vector<Data> tiles_;
};

/// Tiles of a matrix that is computed, or whose elements lie apart, in as many slots as
/// were allowed.
class SlotTiles final : public Tiles {
 public:
  SlotTiles(Run& run, std::shared_ptr<const Origin> origin, Tiling rows, Tiling cols, DType dtype,
            std::int64_t slots);
  Data read(std::int64_t i, std::int64_t j, SubmitOptions where) override;
  Data update(std::int64_t i, std::int64_t j, SubmitOptions where) override;
  Data write(std::int64_t i, std::int64_t j, SubmitOptions where) override;
  void final(std::int64_t i, std::int64_t j) override;
  /// Writes all that is changed to where it came from.
  void finish_all();

 private:
  using Place = std::pair<std::int64_t, std::int64_t>;
  struct Slot {
    Data data;
    Place place{-1, -1};
    bool changed = false;
  };
  using Slots = std::list<Slot>;  ///< Least recently used first.

  Slot& find(Place place, bool fill, SubmitOptions where);
  Slot& take(Place place);
  void empty(Slot& slot);
  void fill(Slot& slot, SubmitOptions where);
  Data order_of(Place place);

  Run& run_;
  std::shared_ptr<const Origin> origin_;
  std::int64_t most_;
  std::map<std::pair<std::int64_t, std::int64_t>, Slots> by_shape_;
  std::map<Place, Slots::iterator> found_;
  std::map<Place, Data> orders_;
};

/// In how many slots a matrix's tiles pass: as many as the devices hold, at least a row's and a
/// column's, which orders use again, and two for each core, one that its task uses and one that is
/// filled for the next: no core waits for another's.
std::int64_t slots_for(const Machine& machine, const Tiling& rows, const Tiling& cols, DType dtype);

/// The tiles of a matrix, and how a kernel must take them to see what is meant.
struct Input {
  std::unique_ptr<Tiles> tiles;
  bool transposed = false;
  Op op = Op::none;

  Data read(std::int64_t i, std::int64_t j, SubmitOptions where) const {
    return transposed ? tiles->read(j, i, where) : tiles->read(i, j, where);
  }
};

/// What is meant by an operand: perhaps transposed, perhaps conjugated.
struct Form {
  bool transpose = false;
  bool conjugate = false;
};

Form form_of(Op op, DType dtype) noexcept;

/// Which of Op the kernels take.
enum class Accepts : std::uint8_t { all, none_or_transpose, none_or_adjoint };

/// The same view, whose elements tasks on the host are to gather. Errors: invalid_argument if it is
/// on a device, which nothing does behind the caller's back.
const MatrixView& gathered(const MatrixView& view);

/// Tiles of the matrix `form`(A), cut as `rows` and `cols` say.
Input input_tiles(Run& run, const Matrix& a, Form form, Tiling rows, Tiling cols,
                  Accepts accepts = Accepts::all);
/// Tiles of a matrix that is written: at home if its columns are contiguous, else in slots.
std::unique_ptr<Tiles> output_tiles(Run& run, const MatrixView& view, Tiling rows, Tiling cols);
/// Writes what slots still hold to the matrix; nothing for tiles at home.
void finish_all(Tiles& tiles);

}  // namespace quadriga::linalg
