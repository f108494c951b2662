// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/covariance.cpp: distances and covariance functions in blocks that the compiler
// vectorizes.
#include "linalg/kernels/covariance.h"

#include "linalg/kernels/exponential.h"

#include <fmt/format.h>
#include <quadriga/error.h>

#include <algorithm>
#include <cmath>

namespace quadriga::kernels {
namespace {

// Every loop runs over whole blocks, also at the end of a column (the coordinates are padded), so
// that each element goes through the same instructions wherever it lies in a tile. The file is
// built without fused multiplication and addition, so that all instruction sets give the same bits.
constexpr int block = Points::padding;

/// What one block of a column needs.
struct BlockTask {
  const Points& rows;
  std::int64_t first_row;
  const Points& cols;
  std::int64_t column;
  const double* inverse_scales;
  CovarianceKind kind;
  double variance;
};

/// Scaled squared distances of a column's point from `block` points of rows.
[[gnu::always_inline]] inline void squared_distances(const BlockTask& task, double* out) {
  for (int i = 0; i < block; ++i) out[i] = 0;
  for (int d = 0; d < task.rows.dimensions(); ++d) {
    const double* x = task.rows.coordinate(d) + task.first_row;
    const double y = task.cols.coordinate(d)[task.column];
    const double inverse = task.inverse_scales[d];
    for (int i = 0; i < block; ++i) {
      const double difference = (x[i] - y) * inverse;
      out[i] += difference * difference;
    }
  }
}

/// sqrt(factor * squared distance), far beyond where exp() vanishes cut off so as to stay finite.
[[gnu::always_inline]] inline double scaled_distance(double squared, double factor) {
  const double distance = std::sqrt(squared * factor);
  return distance < 1000 ? distance : 1000;
}

template <CovarianceKind kind>
[[gnu::always_inline]] inline void covariances(double variance, double* values) {
  for (int i = 0; i < block; ++i) {
    const double squared = values[i];
    if constexpr (kind == CovarianceKind::rbf) {
      values[i] = variance * exp_of_negative(-0.5 * squared);
    } else if constexpr (kind == CovarianceKind::matern12) {
      values[i] = variance * exp_of_negative(-scaled_distance(squared, 1));
    } else if constexpr (kind == CovarianceKind::matern32) {
      const double s = scaled_distance(squared, 3);
      values[i] = variance * ((1 + s) * exp_of_negative(-s));
    } else {
      const double s = scaled_distance(squared, 5);
      values[i] = variance * ((1 + s * (1 + s * (1.0 / 3))) * exp_of_negative(-s));
    }
  }
}

[[gnu::always_inline]] inline void compute_block(const BlockTask& task, double* out) {
  squared_distances(task, out);
  switch (task.kind) {
    case CovarianceKind::rbf:
      return covariances<CovarianceKind::rbf>(task.variance, out);
    case CovarianceKind::matern12:
      return covariances<CovarianceKind::matern12>(task.variance, out);
    case CovarianceKind::matern32:
      return covariances<CovarianceKind::matern32>(task.variance, out);
    case CovarianceKind::matern52:
      return covariances<CovarianceKind::matern52>(task.variance, out);
  }
}

using ComputeBlock = void (*)(const BlockTask&, double*);

void compute_block_anywhere(const BlockTask& task, double* out) { compute_block(task, out); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void compute_block_avx2(const BlockTask& task, double* out) {
  compute_block(task, out);
}
ComputeBlock best_compute_block() {
  return __builtin_cpu_supports("avx2") ? compute_block_avx2 : compute_block_anywhere;
}
#else
ComputeBlock best_compute_block() { return compute_block_anywhere; }
#endif

bool positive(double value) { return std::isfinite(value) && value > 0; }

std::vector<double> inverses(const CovarianceParams& params, int dimensions) {
  const std::vector<double>& scales = params.length_scale;
  require(
      positive(params.variance),
      fmt::format("covariance: variance is {}; expected a finite number above 0", params.variance));
  require(params.nugget == 0 || positive(params.nugget),
          fmt::format("covariance: nugget is {}; expected a finite number of at least 0",
                      params.nugget));
  if (scales.size() != 1 && scales.size() != static_cast<std::size_t>(dimensions))
    fail(Errc::invalid_argument,
         fmt::format("covariance: {} length scales for points of {} dimensions; expected one, or "
                     "one for each dimension",
                     scales.size(), dimensions));
  const auto wrong = std::find_if_not(scales.begin(), scales.end(), positive);
  if (wrong != scales.end())
    fail(Errc::invalid_argument,
         fmt::format("covariance: length_scale[{}] is {}; expected a finite number above 0",
                     wrong - scales.begin(), *wrong));
  std::vector<double> result(static_cast<std::size_t>(dimensions));
  for (std::size_t d = 0; d < result.size(); ++d)
    result[d] = 1 / scales[scales.size() == 1 ? 0 : d];
  return result;
}

}  // namespace

Points::Points(std::span<const double> coordinates, int dimensions) : dimensions_(dimensions) {
  require(dimensions >= 1, "points: dimensions must be at least 1");
  const std::size_t width = static_cast<std::size_t>(dimensions);
  if (coordinates.size() % width != 0)
    fail(Errc::invalid_argument,
         fmt::format("points: {} coordinates; expected a multiple of {}, the number of dimensions",
                     coordinates.size(), dimensions));
  const std::size_t count = coordinates.size() / width;
  count_ = static_cast<std::int64_t>(count);
  auto values = std::make_shared<std::vector<double>>((count + padding) * width);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t d = 0; d < width; ++d) {
      const double value = coordinates[i * width + d];
      if (!std::isfinite(value))
        fail(Errc::invalid_argument,
             fmt::format("points: coordinate {} of point {} is {}", d, i, value));
      (*values)[d * (count + padding) + i] = value;
    }
  values_ = std::move(values);
}

const double* Points::coordinate(int dimension) const noexcept {
  return values_->data() + dimension * (count_ + padding);
}

Covariance::Covariance(const CovarianceParams& params, const Points& points)
    : Covariance(params, points, points) {
  same_ = true;
}

Covariance::Covariance(const CovarianceParams& params, const Points& rows, const Points& cols)
    : params_(params),
      rows_(rows),
      cols_(cols),
      inverse_scales_(inverses(params, rows.dimensions())) {
  if (rows.dimensions() != cols.dimensions())
    fail(Errc::invalid_argument, fmt::format("covariance: points of {} and of {} dimensions",
                                             rows.dimensions(), cols.dimensions()));
}

template <class T>
void Covariance::fill(std::int64_t first_row, std::int64_t first_col, KernelTile<T> out) const {
  require(first_row >= 0 && first_col >= 0 && first_row + out.rows <= rows() &&
              first_col + out.cols <= cols(),
          "covariance: the tile reaches beyond the matrix");
  static const ComputeBlock compute = best_compute_block();
  alignas(64) double work[block];
  for (int j = 0; j < out.cols; ++j) {
    const std::int64_t column = first_col + j;
    T* target = out.column(j);
    for (int i = 0; i < out.rows; i += block) {
      compute({rows_, first_row + i, cols_, column, inverse_scales_.data(), params_.kind,
               params_.variance},
              work);
      const int count = std::min(block, out.rows - i);
      for (int k = 0; k < count; ++k) target[i + k] = static_cast<T>(work[k]);
    }
    const std::int64_t crossing = column - first_row;
    if (same_ && crossing >= 0 && crossing < out.rows)
      target[crossing] = static_cast<T>(params_.variance + params_.nugget);
  }
}

template void Covariance::fill<float>(std::int64_t, std::int64_t, KernelTile<float>) const;
template void Covariance::fill<double>(std::int64_t, std::int64_t, KernelTile<double>) const;

}  // namespace quadriga::kernels
