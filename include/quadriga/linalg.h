// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/linalg.h: dense linear algebra on all devices: products, solves, Cholesky.
//
// Matrices are views of the caller's memory with any strides, or sources whose elements are
// computed or read where they are needed. Calls return when the result is in the caller's memory.
// Types are float32, float64, complex64 and complex128; all matrices of a call have one type. For
// one tile size and kind of device, results are bitwise identical for any policy and number of
// devices; the default tile size depends on that number (see Options::reproducible).
#pragma once

#include <quadriga/engine.h>
#include <quadriga/matrix.h>
#include <quadriga/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quadriga::linalg {

struct Options {
  std::int64_t tile = 0;  ///< Rows and columns of a tile; 0: chosen by sizes, type and devices.
  /// Called by the calling thread about ten times a second and at the end, with the fraction done,
  /// 0 to 1. False cancels the engine's tasks and ends the call with the error `cancelled`.
  std::function<bool(double fraction)> progress = {};
  /// Reject inputs with NaN or infinity before anything is written: invalid_argument.
  bool check_finite = false;
  /// GPUs may round float32 and complex64 factors of products to TF32; unset: the setting.
  std::optional<bool> allow_tf32 = std::nullopt;
  /// Tiles are chosen as for one core, and kept whole; unset: the engine's, else the setting.
  std::optional<bool> reproducible = std::nullopt;
};

/// C = alpha*op(A)*op(B) + beta*C; with beta 0, C isn't read.
///
/// Shapes:  op(A) is m x k, op(B) is k x n, C is m x n and shares no memory with either.
/// Errors:  invalid_argument if shapes, types or memory disagree; too_large if tiles don't fit on a
///          device; cancelled; what a source throws. C's content is unspecified after the last two.
/// Cost:    2mnk flops (real).
void matmul(Engine& engine, Coefficient alpha, const Matrix& a, Op op_a, const Matrix& b, Op op_b,
            Coefficient beta, const MatrixView& c, const Options& options = {});

/// A triangle of C = alpha*op(A)*op(A)^T + beta*C; the other one is neither read nor written.
///
/// Shapes:  op(A) is n x k, C is n x n and shares no memory with A. `op` is none or transpose.
/// Errors:  as matmul.
void syrk(Engine& engine, Coefficient alpha, const Matrix& a, Op op, Coefficient beta,
          const MatrixView& c, Uplo uplo, const Options& options = {});

/// The same with op(A)^H: `op` is none or conjugate (or transpose for real types).
void herk(Engine& engine, double alpha, const Matrix& a, Op op, double beta, const MatrixView& c,
          Uplo uplo, const Options& options = {});

/// A triangular matrix with a zero on its diagonal.
class SingularMatrix : public Error {
 public:
  explicit SingularMatrix(std::int64_t index,
                          std::source_location where = std::source_location::current());
  /// Index of the first zero on the diagonal, from 0.
  std::int64_t index() const noexcept { return index_; }

 private:
  std::int64_t index_;
};

/// B = op(A)^-1*B with A triangular; its other triangle isn't read.
///
/// Errors:  as matmul; SingularMatrix, if A is a view, and B is unchanged then.
void solve_triangular(Engine& engine, const Matrix& a, Uplo uplo, Op op, bool unit_diagonal,
                      const MatrixView& b, const Options& options = {});

/// What happens to the triangle of `out` that the factor doesn't use.
enum class Other : std::uint8_t { zero, leave };

/// The Cholesky factor of a hermitian matrix: out*out^H = A (lower), out^H*out = A (upper).
///
/// Shapes:  both n x n. Only the triangle `uplo` of A is read. `out` may be A's own memory (the
///          same view), else it shares none with A.
/// Errors:  NotPositiveDefinite with the leading minor; A is unchanged unless `out` is A. Otherwise
///          as matmul. The engine stays usable.
/// Cost:    n^3/3 flops (real).
void cholesky(Engine& engine, const Matrix& a, const MatrixView& out, Uplo uplo = Uplo::upper,
              Other other = Other::zero, const Options& options = {});

/// Where a factor's tiles are.
struct Held {
  std::size_t bytes = 0;                  ///< Of the factor: the tiles of its triangle.
  std::vector<std::size_t> device_bytes;  ///< Valid replicas on each device of the machine.
  std::size_t buffer_bytes = 0;  ///< In host buffers or the spill file, for tiles without a home.
};

struct FactorOptions {
  Uplo uplo = Uplo::upper;
  /// Factorizes a view in its own memory, which must outlive the factor and holds it from then on.
  bool overwrite = false;
  bool lazy = false;  ///< With overwrite: home only once unpacked, brought home or destroyed.
};

struct FactorContent;

/// A Cholesky factor whose tiles stay where they were computed until they are used. Cheap to move;
/// its engine must outlive it. Not thread-safe: the caller serializes calls of several threads.
class Factor {
 public:
  Factor() = default;
  explicit operator bool() const noexcept { return impl_ != nullptr; }

  std::int64_t order() const;
  std::int64_t tile() const;
  DType dtype() const;
  bool lower() const;
  Engine& engine() const;

  /// B = A^-1*B. Moves no tile of the factor to a device that holds it.
  /// Errors: as matmul.
  void solve(const MatrixView& b, const Options& options = {}) const;
  /// The logarithm of A's determinant.
  double logdet() const;
  /// The diagonal of A^-1, order() numbers. Cost: n^3/3 flops, in blocks of columns.
  void inverse_diagonal(std::span<double> out, const Options& options = {}) const;
  /// Writes the factor's triangle; the other triangle of `out` is unchanged, or set to zero.
  void unpack(const MatrixView& out, Other other = Other::leave) const;
  /// Writes a factor made with overwrite back to its memory; otherwise does nothing.
  void bring_home() const;
  /// Writes the factor to a new file in the format of docs/factor-file.md, then renames it.
  /// Errors: io naming the file and the reason, for example a full disk; no file is left then.
  void save(const std::string& path) const;
  /// Errors: io if the file is missing, not a factor, truncated or of another version.
  static Factor load(Engine& engine, const std::string& path);

  Held held() const;

 private:
  friend Factor cho_factor(Engine&, const Matrix&, const FactorOptions&, const Options&);
  friend Factor factor_from(Engine&, const MatrixView&, Uplo, const Options&);
  explicit Factor(std::shared_ptr<FactorContent> impl) : impl_(std::move(impl)) {}
  const FactorContent& impl() const;
  std::shared_ptr<FactorContent> impl_;
};

/// Factorizes A = L*L^H or U^H*U, on all devices; sources are computed tile by tile where they are
/// needed, so the matrix need not exist on the host.
///
/// Errors:  NotPositiveDefinite with the leading minor; too_large if neither the devices nor the
///          host's buffers hold it; otherwise as cholesky.
Factor cho_factor(Engine& engine, const Matrix& a, const FactorOptions& factor = {},
                  const Options& options = {});

/// Wraps a factor computed elsewhere, in memory that must outlive it; a view with contiguous rows
/// or columns is used in place.
Factor factor_from(Engine& engine, const MatrixView& c, Uplo uplo, const Options& options = {});

/// The operation and sizes that estimate() predicts.
struct Problem {
  enum class Kind : std::uint8_t { matmul, cholesky, cho_solve } kind = Kind::matmul;
  std::int64_t m = 0;  ///< Rows of C; order of a Cholesky factorization.
  std::int64_t n = 0;  ///< Columns of C; right-hand sides of cho_solve, which includes the factor.
  std::int64_t k = 0;  ///< Inner size of a product.
  DType dtype = DType::float64;
  bool from_source = false;  ///< Devices compute the matrix; nothing of it is on the host.
  bool accumulate = false;   ///< matmul: C is read.
  bool in_place = true;      ///< cholesky: the factor takes the matrix's place.
};

struct LinkBytes {
  std::string link;
  double bytes = 0;
};

struct Estimate {
  double seconds = 0;
  double bound_seconds = 0;  ///< max(work / devices, critical path, least bytes / link rate).
  double host_bytes = 0;     ///< Moved between host and devices.
  std::vector<LinkBytes> links;
  std::vector<std::size_t> device_bytes;  ///< Peak use of each device's memory.
  std::size_t buffer_bytes = 0;           ///< Peak use of host buffers or the spill file.
  std::size_t matrix_bytes = 0;           ///< Memory of the caller's matrices.
  std::int64_t tile = 0;                  ///< Rows of the largest tile, of a product's result.
  std::int64_t tile_cols = 0;             ///< Its columns: fewer in planned products.
  std::uint64_t tasks = 0;
  /// Numbers of tasks of the smaller programs simulated instead; empty if the call was simulated.
  std::vector<std::uint64_t> extrapolated_from;
  double seconds_uncertainty = 0;  ///< Relative, of `seconds`; 0 if nothing was extrapolated.
  double bytes_uncertainty = 0;    ///< Relative, of `host_bytes` and `links`.
};

/// Predicts a call by simulating its tasks without data. Calls of more than 20,000 tasks are
/// extrapolated from three smaller programs on machines scaled in proportion, with an uncertainty.
/// Kernels without times in the machine's table are measured once per process.
/// Errors: too_large if the call would raise it, or for matrices of 1 EiB or more.
Estimate estimate(const Engine& engine, const Problem& problem, const Options& options = {});

/// The tile size chosen for Options::tile = 0; planned products may use other shapes.
std::int64_t default_tile(const Engine& engine, const Problem& about, const Options& options = {});

}  // namespace quadriga::linalg
