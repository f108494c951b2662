// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/source.cpp: sources from functions and from covariances.
#include "linalg/source.h"

#include <quadriga/linalg.h>

#include <climits>

namespace quadriga::linalg {
namespace {

template <class T>
kernels::KernelTile<T> tile_of(const View& view) {
  require(view.rows <= INT_MAX && view.cols <= INT_MAX && view.ld <= INT_MAX,
          "a tile's rows, columns and leading dimension must fit 32 bits");
  return {view.as<T>(), static_cast<int>(view.rows), static_cast<int>(view.cols),
          static_cast<int>(view.ld)};
}

class FunctionSource final : public Source {
 public:
  using Function = std::function<void(std::int64_t, std::int64_t, const View&)>;
  explicit FunctionSource(Function function) : function_(std::move(function)) {}
  void read(std::int64_t row, std::int64_t col, const View& out) const override {
    function_(row, col, out);
  }

 private:
  Function function_;
};

kernels::CovarianceParams params_of(const CovarianceOptions& options) {
  require(options.dtype == DType::float32 || options.dtype == DType::float64,
          "covariances are float32 or float64");
  kernels::CovarianceParams params;
  params.kind = options.kind;
  params.variance = options.variance;
  params.nugget = options.nugget;
  params.length_scale = options.length_scale;
  return params;
}

std::shared_ptr<Source> make(kernels::Covariance values, DType dtype, bool hermitian) {
  const std::int64_t rows = values.rows();
  const std::int64_t cols = values.cols();
  auto source = std::make_shared<CovarianceSource>(std::move(values));
  source->rows = rows;
  source->cols = cols;
  source->dtype = dtype;
  source->hermitian = hermitian;
  return source;
}

}  // namespace

void CovarianceSource::read(std::int64_t row, std::int64_t col, const View& out) const {
  if (dtype == DType::float32)
    values_.fill(row, col, tile_of<float>(out));
  else
    values_.fill(row, col, tile_of<double>(out));
}

std::shared_ptr<Source> from_function(
    std::int64_t rows, std::int64_t cols, DType dtype,
    std::function<void(std::int64_t row, std::int64_t col, const View& out)> function,
    bool hermitian, bool host_only) {
  require(function != nullptr, "a source needs a function");
  auto source = std::make_shared<FunctionSource>(std::move(function));
  source->rows = rows;
  source->cols = cols;
  source->dtype = dtype;
  source->hermitian = hermitian;
  source->host_only = host_only;
  return source;
}

std::shared_ptr<Source> covariance(const CovarianceOptions& options, std::span<const double> points,
                                   int dimensions) {
  const kernels::Points all(points, dimensions);
  return make(kernels::Covariance(params_of(options), all), options.dtype, true);
}

std::shared_ptr<Source> covariance(const CovarianceOptions& options,
                                   std::span<const double> row_points,
                                   std::span<const double> col_points, int dimensions) {
  const kernels::Points rows(row_points, dimensions);
  const kernels::Points cols(col_points, dimensions);
  return make(kernels::Covariance(params_of(options), rows, cols), options.dtype, false);
}

}  // namespace quadriga::linalg
