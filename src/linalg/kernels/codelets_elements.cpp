// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/codelets_elements.cpp: codelets that copy, set, generate and measure tiles.
#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/tile_measure.h"

namespace quadriga::kernels {
namespace {

using enum Access;

Cost cost_of_measure(const Arguments& arguments) {
  return cost_of_elements({arguments.operands.first(1), arguments.params, arguments.stream});
}

template <class T>
void run_copy(const Arguments& arguments) {
  const auto params = arguments.param<CopyParams>();
  copy(params.op, tile<const T>(arguments, 0), tile<T>(arguments, 1), params.region);
}

template <class T>
void run_set(const Arguments& arguments) {
  const auto params = arguments.param<SetParams>();
  set(value<T>(params.value), value<T>(params.on_diagonal), tile<T>(arguments, 0), params.region);
}

template <class T>
void run_covariance(const Arguments& arguments) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto params = arguments.param<CovarianceTile>();
    params.covariance->fill(params.first_row, params.first_col, tile<T>(arguments, 0));
  } else {
    fail(Errc::invalid_argument, "covariances are float32 or float64, not complex");
  }
}

template <class T>
void run_measure(const Arguments& arguments) {
  const auto params = arguments.param<MeasureParams>();
  const auto a = tile<const T>(arguments, 0);
  const auto out = tile<double>(arguments, 1);
  const int length =
      params.measure == Measure::column_sums || params.measure == Measure::column_squares ? a.cols
      : params.measure == Measure::row_sums                                               ? a.rows
                                                                                          : 1;
  require(arguments.operands[1].dtype == DType::float64 && out.rows == length && out.cols == 1,
          "measure: the result must be a float64 column of one element for each that is measured");
  set(0.0, 0.0, out);
  const std::span<double> sums(out.data, static_cast<std::size_t>(length));
  switch (params.measure) {
    case Measure::max_abs:
      out(0, 0) = max_abs<T>(a, params.region);
      return;
    case Measure::sum_of_squares:
      out(0, 0) = sum_of_squares<T>(a, params.region);
      return;
    case Measure::sum_log_diagonal:
      out(0, 0) = sum_log_diagonal<T>(a);
      return;
    case Measure::column_sums:
      return add_column_sums<T>(a, sums, params.region);
    case Measure::row_sums:
      return add_row_sums<T>(a, sums, params.region);
    case Measure::column_squares:
      return add_column_squares<T>(a, sums, params.region);
  }
}

}  // namespace

const Codelet& copy_codelet(DType type) {
  static const Family family(
      "copy", {read, update}, []<class T>(const Arguments& a) { run_copy<T>(a); },
      cost_of_elements);
  return family[type];
}

const Codelet& copy_write_codelet(DType type) {
  static const Family family(
      "copy_write", {read, write},
      []<class T>(const Arguments& a) {
        if (a.param<CopyParams>().region.part != Part::all) set(T{}, T{}, tile<T>(a, 1));
        run_copy<T>(a);
      },
      cost_of_elements);
  return family[type];
}

const Codelet& axpby_codelet(DType type) {
  static const Family family(
      "axpby", {read, update},
      []<class T>(const Arguments& a) {
        const auto params = a.param<AxpbyParams>();
        axpby(params.op, value<T>(params.alpha), tile<const T>(a, 0), value<T>(params.beta),
              tile<T>(a, 1), params.region);
      },
      cost_of_elements);
  return family[type];
}

const Codelet& scale_codelet(DType type) {
  static const Family family(
      "scale", {update},
      []<class T>(const Arguments& a) {
        const auto params = a.param<ScaleParams>();
        scale(value<T>(params.alpha), tile<T>(a, 0), params.region);
      },
      cost_of_elements);
  return family[type];
}

const Codelet& set_codelet(DType type) {
  static const Family family(
      "set", {update}, []<class T>(const Arguments& a) { run_set<T>(a); }, cost_of_elements);
  return family[type];
}

const Codelet& set_write_codelet(DType type) {
  static const Family family(
      "set_write", {write},
      []<class T>(const Arguments& a) {
        if (a.param<SetParams>().region.part != Part::all) set(T{}, T{}, tile<T>(a, 0));
        run_set<T>(a);
      },
      cost_of_elements);
  return family[type];
}

const Codelet& add_diagonal_codelet(DType type) {
  static const Family family(
      "add_diagonal", {update},
      []<class T>(const Arguments& a) {
        const auto params = a.param<AddDiagonalParams>();
        add_diagonal(value<T>(params.value), tile<T>(a, 0), params.diagonal);
      },
      cost_of_elements);
  return family[type];
}

const Codelet& mirror_codelet(DType type) {
  static const Family family(
      "mirror", {update},
      []<class T>(const Arguments& a) {
        const auto params = a.param<MirrorParams>();
        mirror(params.stored, params.op, tile<T>(a, 0));
      },
      cost_of_elements);
  return family[type];
}

const Codelet& random_codelet(DType type) {
  static const Family family(
      "random", {write},
      []<class T>(const Arguments& a) { fill_random(a.param<RandomMatrix>(), tile<T>(a, 0)); },
      cost_of_elements);
  return family[type];
}

const Codelet& covariance_codelet(DType type) {
  static const Family family(
      "covariance", {write}, []<class T>(const Arguments& a) { run_covariance<T>(a); },
      cost_of_elements);
  require(type == DType::float32 || type == DType::float64,
          "covariances are float32 or float64, not complex");
  return family[type];
}

const Codelet& measure_codelet(DType type) {
  static const Family family(
      "measure", {read, write}, []<class T>(const Arguments& a) { run_measure<T>(a); },
      cost_of_measure);
  return family[type];
}

}  // namespace quadriga::kernels
