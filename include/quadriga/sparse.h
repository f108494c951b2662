// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/sparse.h: sparse systems on all devices: products and conjugate gradients.
//
// Rows are divided into parts, one or more per device. No row is split between devices, and sums
// use fixed blocks of rows in a fixed order, so results are bitwise identical for any number of
// devices of a kind. Vectors of k columns are stored row by row: element (i, j) at i*k + j.
#pragma once

#include <quadriga/engine.h>
#include <quadriga/sparse_matrix.h>
#include <quadriga/sparse_multigrid.h>
#include <quadriga/sparse_plan.h>
#include <quadriga/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quadriga::sparse {

/// How devices store the rows.
enum class Format : std::uint8_t {
  automatic,  ///< By the kind of device.
  csr,        ///< Compressed rows.
  sell,       ///< SELL-C-sigma: slices of rows of similar length, stored by columns.
  blocks,     ///< SELL-C-sigma of dense blocks of 2 x 2 to 4 x 4 elements.
};

/// "automatic", "csr" and so on.
std::string_view name(Format format) noexcept;

/// M, which approximates the inverse of A.
enum class Precondition : std::uint8_t {
  none,
  jacobi,        ///< The inverse of A's diagonal.
  diagonal,      ///< SolverOptions::diagonal.
  block_jacobi,  ///< The inverses of A's diagonal blocks of SolverOptions::inverse_rows.
  chebyshev,     ///< A polynomial of SolverOptions::degree of A scaled by its diagonal.
  aggregation,   ///< A cycle through levels that smoothed aggregation makes of A.
  hierarchy,     ///< The same through SolverOptions::levels.
};

struct SolverOptions {
  Format format = Format::automatic;
  Precondition precondition = Precondition::none;
  const void* diagonal = nullptr;  ///< Of M: as many elements of A's type as A has rows.
  /// Of a block of block_jacobi: 2, 3 or 4, a divisor of the rows; 0: those of the format's dense
  /// blocks, else the largest that divides the rows.
  int inverse_rows = 0;
  /// Parts of rows; 0: one per device or core, more if a device's memory requires it.
  int parts = 0;
  CgMethod method = CgMethod::automatic;
  /// Whether the number of devices may decide how iterations are arranged, and with it the bits of
  /// results: the automatic method is then the shortest on the devices that get rows.
  bool fast = false;
  /// Whether iterations are recorded: several run as one task a part, on GPUs as one graph that is
  /// launched repeatedly. It needs a device for each part, whose memory kernels of the others can
  /// use, and with several parts an M of blocks of rows. Unset: where that can be, but for several
  /// emulated devices.
  std::optional<bool> recorded = {};
  /// Whether the constructor records the iterations of one right side, so that no solve waits for
  /// that: it is off where few solves follow, or none.
  bool records_ahead = true;
  Exchange exchange = Exchange::automatic;
  CopyRoute route = CopyRoute::automatic;
  /// By columns, M is blocks of rows, and iterations of several parts aren't recorded.
  Split split = Split::rows;
  /// Whether rows, or columns, that need nothing of other parts are multiplied while the halo
  /// travels.
  /// Unset: where devices have a memory of their own and the model predicts no loss.
  std::optional<bool> overlap = {};
  /// Of chebyshev's polynomial, which takes one product less, or of those that smooth on levels.
  /// 0: 4, and 2 on levels.
  int degree = 0;
  Aggregation aggregation = {};
  std::vector<CoarseLevel> levels = {};  ///< Below A. Only read by the constructor.
  /// A file that holds the stored parts on the host, instead of memory. It must not exist yet, and
  /// is removed in the end.
  std::string spill = {};
};

/// Why a solve ended.
enum class StopReason : std::uint8_t {
  converged,                  ///< ||b - A*x||, recomputed, meets the tolerance.
  iterations,                 ///< The limit was reached first.
  not_positive_definite,      ///< p^H*A*p <= 0.
  indefinite_preconditioner,  ///< r^H*M*r <= 0.
  not_finite,                 ///< NaN or infinity in A, b, x or their products.
  diverged,                   ///< ||r|| has grown 1e16 times: A is singular, or nearly so.
  stagnated,                  ///< Rounding keeps ||b - A*x|| above the tolerance.
};

/// "converged" and so on.
std::string_view name(StopReason reason) noexcept;

struct SolveOptions {
  double rtol = 1e-5;
  double atol = 0;
  std::int64_t iterations = -1;  ///< Limit; negative: ten times the rows.
  bool zero_start = false;       ///< x is zero: saves one product.
  bool checked = true;  ///< False: ends by the recurrence, whose residuals are the result's.
  /// Called occasionally with the iterations so far; false ends the call with error `cancelled`.
  std::function<bool(std::int64_t iterations)> progress = {};
};

struct SolveResult {
  StopReason reason = StopReason::converged;  ///< With several columns: of the first not converged.
  std::int64_t iterations = 0;                ///< With several columns: their maximum.
  std::vector<double> tolerances;             ///< max(atol, rtol*||b||) of each column.
  std::vector<double> true_residuals;         ///< ||b - A*x|| of each column, recomputed.
  /// ||r|| before the first iteration and after each, by the recurrence; columns side by side.
  std::vector<double> residuals;
  /// Estimates from below of the condition number of M*A, one a column, by the coefficients of the
  /// iterations (Lanczos); 1 without any.
  std::vector<double> conditions;
  CgMethod method = CgMethod::classic;  ///< Of the last iteration: classic ones may follow others.
  std::int64_t replacements = 0;        ///< Residuals computed anew on the way.
  double seconds = 0;
};

struct SolverContent;
struct SolveContent;

/// A solve in steps. Its solver, b and x must outlive it. One thread at a time.
class Solve {
 public:
  Solve(Solve&&) noexcept;
  Solve& operator=(Solve&&) = delete;
  /// Cancels running work; x is unspecified unless finish() returned. In a task's body, of another
  /// task than made it, the engine does so later: b and x must live until a wait outside of bodies.
  ~Solve();
  /// Performs up to this many iterations; true once the solve has ended. x is at home afterwards.
  /// Errors: what a task threw; cancelled.
  bool advance(std::int64_t iterations);
  /// Iterations so far; with several columns: their maximum.
  std::int64_t iterations() const noexcept;
  /// Runs to the end. Afterwards only iterations() and resume() may be called.
  SolveResult finish();
  /// After finish() of an unchecked solve: another one, from x = 0, for what b holds now: the
  /// residual of all x so far, as the caller computed it. The direction of the recurrence stays.
  /// Errors: invalid_argument if the solve was checked or hasn't finished, or for a negative rtol.
  void resume(double rtol, std::int64_t iterations);

 private:
  friend class Solver;
  explicit Solve(std::shared_ptr<SolveContent> content);
  std::shared_ptr<SolveContent> content_;
};

/// Keeps a hermitian positive definite matrix, its plan of exchange and preconditioner on the
/// devices, for many solves. The engine must outlive it; the caller's matrix need not. A handle,
/// cheap to copy. Calls from several threads may overlap.
class Solver {
 public:
  /// Errors: invalid_argument if A isn't square, offsets aren't ascending, a column is out of
  ///         range, or the diagonal of M has a zero or isn't finite, naming the row; if
  ///         iterations are to be recorded and can't; if a split by columns meets an M of
  ///         several steps; if the number of rows isn't a multiple of 2, 3 or 4 for format
  ///         `blocks`; or if levels don't fit.
  Solver(Engine& engine, const CsrView& a, const SolverOptions& options = {});
  /// The same of rows that are read range by range: at most a part's at once. M isn't aggregation.
  /// Errors: also what the source throws; invalid_argument if it reads other sizes than asked for.
  Solver(Engine& engine, const RowSource& a, const SolverOptions& options = {});

  /// Takes new values of a matrix with elements at the same positions, and the new diagonal of a
  /// diagonal preconditioner. Aggregates stay; levels that were given stay as they are. No other
  /// call of this solver may be in progress.
  /// Errors: invalid_argument if elements are elsewhere or M's diagonal is invalid; nothing has
  ///         changed then.
  void update(const CsrView& a, const void* diagonal = nullptr) const;
  void update(const RowSource& a, const void* diagonal = nullptr) const;
  /// y = A*x.
  /// Shapes: x and y have as many rows as A, and `columns` columns, row by row.
  void multiply(const void* x, void* y, std::int64_t columns = 1) const;
  /// Conjugate gradients for A*x = b, starting from the given x (Hestenes and Stiefel, 1952).
  SolveResult cg(const void* b, void* x, std::int64_t columns = 1,
                 const SolveOptions& options = {}) const;
  /// The same in steps.
  Solve begin_cg(const void* b, void* x, std::int64_t columns = 1,
                 const SolveOptions& options = {}) const;

  std::int64_t rows() const noexcept;
  DType dtype() const noexcept;
  Format format() const noexcept;
  PlanReport plan() const;
  /// Seconds of one of `count` products of vectors that stay on the devices.
  double measure_product(std::int64_t count, std::int64_t columns = 1,
                         ProductMode mode = ProductMode::planned) const;

 private:
  friend class Matrix;
  std::shared_ptr<SolverContent> content_;
};

}  // namespace quadriga::sparse
