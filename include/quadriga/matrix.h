// SPDX-License-Identifier: BSD-3-Clause
// include/quadriga/matrix.h: matrices in memory, and sources computed where they are needed.
#pragma once

#include <quadriga/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace quadriga {

struct View;

}  // namespace quadriga

namespace quadriga::linalg {

enum class Op : std::uint8_t { none, transpose, conjugate };  ///< conjugate: conjugate transpose.
enum class Uplo : std::uint8_t { lower, upper };

/// A real or complex scalar factor; doubles convert to it.
struct Coefficient {
  double real = 0;
  double imag = 0;
  constexpr Coefficient(double real_part = 0, double imaginary_part = 0) noexcept
      : real(real_part), imag(imaginary_part) {}
  constexpr bool operator==(const Coefficient&) const = default;
};

/// A matrix in the caller's memory: element (i, j) at data + (i*row_stride + j*col_stride)
/// elements. On a device it is used in place, so its columns or rows must be contiguous, and work
/// that the caller queued on other streams must have ended (Engine::synchronize).
struct MatrixView {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 1;  ///< In elements; may be zero (read only) or negative.
  std::int64_t col_stride = 0;
  DType dtype = DType::float64;
  DeviceId device = no_device;  ///< The device in whose memory `data` lies; no_device: the host.

  /// Columns one after the other (ld 0: without gaps).
  static MatrixView columns(void* data, std::int64_t rows, std::int64_t cols, DType dtype,
                            std::int64_t ld = 0) noexcept {
    return {data, rows, cols, 1, ld ? ld : rows, dtype, no_device};
  }
  /// The same matrix with rows and columns exchanged.
  MatrixView transposed() const noexcept {
    return {data, cols, rows, col_stride, row_stride, dtype, device};
  }
};

/// A matrix whose elements are computed where they are needed.
class Source {
 public:
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  DType dtype = DType::float64;
  bool hermitian = false;
  /// read() runs on one host thread at a time, as Python requires; else on any thread or device.
  bool host_only = false;

  virtual ~Source() = default;
  /// Writes elements (row + i, col + j) to out(i, j) for all of `out`; may throw.
  virtual void read(std::int64_t row, std::int64_t col, const View& out) const = 0;

 protected:
  Source() = default;
  Source(const Source&) = default;
  Source& operator=(const Source&) = default;
};

/// A source that calls a function.
std::shared_ptr<Source> from_function(
    std::int64_t rows, std::int64_t cols, DType dtype,
    std::function<void(std::int64_t row, std::int64_t col, const View& out)> function,
    bool hermitian = false, bool host_only = false);

enum class CovarianceKind : std::uint8_t { rbf, matern12, matern32, matern52 };

/// Covariances of points by their distance r, each coordinate divided by its length scale:
/// variance times
///   rbf: exp(-r^2/2)    matern12: exp(-r)    matern32: (1 + s) exp(-s), s = sqrt(3) r
///   matern52: (1 + s + s^2/3) exp(-s), s = sqrt(5) r
struct CovarianceOptions {
  CovarianceKind kind = CovarianceKind::matern32;
  double variance = 1;
  double nugget = 0;                       ///< Added on the diagonal of one set of points.
  std::vector<double> length_scale = {1};  ///< One for all dimensions, or one for each.
  DType dtype = DType::float64;            ///< Or float32; computed in float64.
};

/// The covariances of one set of points, or between two sets. Coordinates are points x dimensions,
/// point by point; they are copied.
/// Errors: invalid_argument naming the value that isn't finite, positive or complete.
std::shared_ptr<Source> covariance(const CovarianceOptions& options, std::span<const double> points,
                                   int dimensions);
std::shared_ptr<Source> covariance(const CovarianceOptions& options,
                                   std::span<const double> row_points,
                                   std::span<const double> col_points, int dimensions);

/// An input: a view, which is only read, or a source.
class Matrix {
 public:
  Matrix(const MatrixView& view) : view_(view) {}
  Matrix(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
  template <class S>
  Matrix(std::shared_ptr<S> source) : source_(std::move(source)) {}

  std::int64_t rows() const noexcept { return source_ ? source_->rows : view_.rows; }
  std::int64_t cols() const noexcept { return source_ ? source_->cols : view_.cols; }
  DType dtype() const noexcept { return source_ ? source_->dtype : view_.dtype; }
  const Source* source() const noexcept { return source_.get(); }
  const MatrixView& view() const noexcept { return view_; }

 private:
  MatrixView view_;
  std::shared_ptr<const Source> source_;
};

}  // namespace quadriga::linalg
