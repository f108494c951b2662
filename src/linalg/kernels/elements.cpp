// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/elements.cpp: kernels that copy, set, generate and measure tiles: cost,
// variants for the host and streams.
#include "linalg/kernels/elements.h"

#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/region.h"
#include "linalg/kernels/stream_blas.h"
#include "linalg/kernels/tile_measure.h"

#include <string>

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

/// A region that isn't all of an operand that is written.
template <class P>
bool leaves_some(const Arguments& arguments) {
  return arguments.param<P>().region.part != Part::all;
}

template <class T>
void run_copy(const Arguments& arguments, StreamBlas<T>& on) {
  const auto params = arguments.param<CopyParams>();
  on.copy(params.op, tile<const T>(arguments, 0), tile<T>(arguments, 1), params.region);
}

template <class T>
void run_set(const Arguments& arguments, StreamBlas<T>& on) {
  const auto params = arguments.param<SetParams>();
  on.set(value<T>(params.value), value<T>(params.on_diagonal), tile<T>(arguments, 0),
         params.region);
}

constexpr std::string_view no_complex_covariance =
    "covariances are float32 or float64, not complex";

template <class T>
void run_covariance(const Arguments& arguments) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto params = arguments.param<CovarianceTile>();
    params.covariance->fill(params.first_row, params.first_col, tile<T>(arguments, 0));
  } else {
    fail(Errc::invalid_argument, std::string(no_complex_covariance));
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

template <class P>
KernelSpec on_elements(std::string_view name, std::vector<Access> access, HostVariants host,
                       StreamVariants stream, const Codelet& (*codelet)(DType)) {
  return {.name = name,
          .access = std::move(access),
          .params_bytes = sizeof(P),
          .cost = cost_of_elements,
          .host = host,
          .stream = stream,
          .codelet = codelet};
}

KernelSpec measure_kernel() {
  KernelSpec spec = on_elements<MeasureParams>(
      "measure", {read, write}, on_host([]<class T>(const Arguments& a) { run_measure<T>(a); }),
      on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
        require(a.operands[1].dtype == DType::float64,
                "measure: the result must be a float64 column");
        const auto params = a.param<MeasureParams>();
        on.measure(params.measure, params.region, tile<const T>(a, 0), tile<double>(a, 1));
      }),
      measure_codelet);
  spec.cost = cost_of_measure;
  return spec;
}

}  // namespace

std::span<const KernelSpec> element_kernels() {
  static const KernelSpec kernels[]{
      on_elements<CopyParams>(
          "copy", {read, update}, on_host([]<class T>(const Arguments& a) { run_copy<T>(a); }),
          on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) { run_copy(a, on); }),
          copy_codelet),
      on_elements<CopyParams>("copy_write", {read, write}, on_host([]<class T>(const Arguments& a) {
                                if (leaves_some<CopyParams>(a)) set(T{}, T{}, tile<T>(a, 1));
                                run_copy<T>(a);
                              }),
                              on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                                if (leaves_some<CopyParams>(a)) on.set(T{}, T{}, tile<T>(a, 1), {});
                                run_copy(a, on);
                              }),
                              copy_write_codelet),
      on_elements<AxpbyParams>("axpby", {read, update}, on_host([]<class T>(const Arguments& a) {
                                 const auto params = a.param<AxpbyParams>();
                                 axpby(params.op, value<T>(params.alpha), tile<const T>(a, 0),
                                       value<T>(params.beta), tile<T>(a, 1), params.region);
                               }),
                               on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                                 const auto params = a.param<AxpbyParams>();
                                 on.axpby(params.op, value<T>(params.alpha), tile<const T>(a, 0),
                                          value<T>(params.beta), tile<T>(a, 1), params.region);
                               }),
                               axpby_codelet),
      on_elements<ScaleParams>("scale", {update}, on_host([]<class T>(const Arguments& a) {
                                 const auto params = a.param<ScaleParams>();
                                 scale(value<T>(params.alpha), tile<T>(a, 0), params.region);
                               }),
                               on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                                 const auto params = a.param<ScaleParams>();
                                 on.scale(value<T>(params.alpha), tile<T>(a, 0), params.region);
                               }),
                               scale_codelet),
      on_elements<SetParams>(
          "set", {update}, on_host([]<class T>(const Arguments& a) { run_set<T>(a); }),
          on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) { run_set(a, on); }),
          set_codelet),
      on_elements<SetParams>("set_write", {write}, on_host([]<class T>(const Arguments& a) {
                               if (leaves_some<SetParams>(a)) set(T{}, T{}, tile<T>(a, 0));
                               run_set<T>(a);
                             }),
                             on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                               if (leaves_some<SetParams>(a)) on.set(T{}, T{}, tile<T>(a, 0), {});
                               run_set(a, on);
                             }),
                             set_write_codelet),
      on_elements<AddDiagonalParams>(
          "add_diagonal", {update}, on_host([]<class T>(const Arguments& a) {
            const auto params = a.param<AddDiagonalParams>();
            add_diagonal(value<T>(params.value), tile<T>(a, 0), params.diagonal);
          }),
          on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
            const auto params = a.param<AddDiagonalParams>();
            on.add_diagonal(value<T>(params.value), tile<T>(a, 0), params.diagonal);
          }),
          add_diagonal_codelet),
      on_elements<MirrorParams>("mirror", {update}, on_host([]<class T>(const Arguments& a) {
                                  const auto params = a.param<MirrorParams>();
                                  mirror(params.stored, params.op, tile<T>(a, 0));
                                }),
                                on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                                  const auto params = a.param<MirrorParams>();
                                  on.mirror(params.stored, params.op, tile<T>(a, 0));
                                }),
                                mirror_codelet),
      on_elements<RandomMatrix>("random", {write}, on_host([]<class T>(const Arguments& a) {
                                  fill_random(a.param<RandomMatrix>(), tile<T>(a, 0));
                                }),
                                on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                                  on.fill_random(a.param<RandomMatrix>(), tile<T>(a, 0));
                                }),
                                random_codelet),
      on_elements<CovarianceTile>(
          "covariance", {write}, on_host([]<class T>(const Arguments& a) { run_covariance<T>(a); }),
          on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
            require(!is_complex<T>, no_complex_covariance);
            on.covariance(a.param<CovarianceTile>(), tile<T>(a, 0));
          }),
          covariance_codelet),
      measure_kernel(),
  };
  return kernels;
}

const Codelet& copy_codelet(DType type) {
  static const Family family(element_kernels()[0]);
  return family[type];
}

const Codelet& copy_write_codelet(DType type) {
  static const Family family(element_kernels()[1]);
  return family[type];
}

const Codelet& axpby_codelet(DType type) {
  static const Family family(element_kernels()[2]);
  return family[type];
}

const Codelet& scale_codelet(DType type) {
  static const Family family(element_kernels()[3]);
  return family[type];
}

const Codelet& set_codelet(DType type) {
  static const Family family(element_kernels()[4]);
  return family[type];
}

const Codelet& set_write_codelet(DType type) {
  static const Family family(element_kernels()[5]);
  return family[type];
}

const Codelet& add_diagonal_codelet(DType type) {
  static const Family family(element_kernels()[6]);
  return family[type];
}

const Codelet& mirror_codelet(DType type) {
  static const Family family(element_kernels()[7]);
  return family[type];
}

const Codelet& random_codelet(DType type) {
  static const Family family(element_kernels()[8]);
  return family[type];
}

const Codelet& covariance_codelet(DType type) {
  static const Family family(element_kernels()[9]);
  require(type == DType::float32 || type == DType::float64, no_complex_covariance);
  return family[type];
}

const Codelet& measure_codelet(DType type) {
  static const Family family(element_kernels()[10]);
  return family[type];
}

}  // namespace quadriga::kernels
