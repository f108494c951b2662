// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/cuda_variants_cuda.cpp: the CUDA variants of the codelets, as a table.
#include <quadriga/error.h>

#include <map>

#include "device/preparation.h"
#include "linalg/kernels/blas_cuda.h"
#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/cuda_variants.h"
#include "linalg/kernels/elements_cuda.h"
#include "linalg/kernels/handles_cuda.h"

namespace quadriga::kernels {
namespace {

cudaStream_t stream_of(const Arguments& arguments) {
  return static_cast<cudaStream_t>(arguments.stream);
}

template <class T>
void gemm_with(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<GemmParams>();
  cuda::gemm<T>(*cuda::handles_of(arguments), params.op_a, params.op_b, value<T>(params.alpha),
                tile<const T>(arguments, 0), right_factor<T>(arguments, params), value<T>(beta),
                tile<T>(arguments, 2), params.allow_tf32);
}

template <class T>
void syrk_with(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<SyrkParams>();
  cuda::syrk<T>(*cuda::handles_of(arguments), params.uplo, params.op, value<T>(params.alpha),
                tile<const T>(arguments, 0), value<T>(beta), tile<T>(arguments, 1),
                params.allow_tf32);
}

template <class T>
void herk_with(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<SyrkParams>();
  cuda::herk<T>(*cuda::handles_of(arguments), params.uplo, params.op, params.alpha.real,
                tile<const T>(arguments, 0), beta.real, tile<T>(arguments, 1), params.allow_tf32);
}

/// What syrk and herk don't write of an operand that they must overwrite.
template <class T>
void clear_other(const Arguments& arguments) {
  const bool lower = arguments.param<SyrkParams>().uplo == Uplo::lower;
  cuda::set<T>(stream_of(arguments), T{}, T{}, tile<T>(arguments, 1),
               {lower ? Part::strict_upper : Part::strict_lower, 0});
}

template <class T>
void run_trsm(const Arguments& arguments) {
  const auto params = arguments.param<TrsmParams>();
  cuda::trsm<T>(*cuda::handles_of(arguments), params.side, params.uplo, params.op, params.diag,
                value<T>(params.alpha), tile<const T>(arguments, 0), tile<T>(arguments, 1));
}

template <class T>
void run_potrf(const Arguments& arguments) {
  const auto params = arguments.param<PotrfParams>();
  require(arguments.on_end != nullptr, "potrf: on a stream its result is known at its end only");
  const auto handles = cuda::handles_of(arguments);
  int* const info = handles->words().take();
  *arguments.on_end = [handles, info, first = params.first] {
    const int minor = *info;
    handles->words().give_back(info);
    if (minor > 0) throw NotPositiveDefinite(first + minor);
  };
  cuda::potrf<T>(*handles, params.uplo, tile<T>(arguments, 0), info);
}

template <class T>
void run_copy(const Arguments& arguments, bool overwrites) {
  const auto params = arguments.param<CopyParams>();
  if (overwrites && params.region.part != Part::all)
    cuda::set<T>(stream_of(arguments), T{}, T{}, tile<T>(arguments, 1));
  cuda::copy<T>(stream_of(arguments), params.op, tile<const T>(arguments, 0), tile<T>(arguments, 1),
                params.region);
}

template <class T>
void run_axpby(const Arguments& arguments) {
  const auto params = arguments.param<AxpbyParams>();
  cuda::axpby<T>(stream_of(arguments), params.op, value<T>(params.alpha),
                 tile<const T>(arguments, 0), value<T>(params.beta), tile<T>(arguments, 1),
                 params.region);
}

template <class T>
void run_set(const Arguments& arguments, bool overwrites) {
  const auto params = arguments.param<SetParams>();
  if (overwrites && params.region.part != Part::all)
    cuda::set<T>(stream_of(arguments), T{}, T{}, tile<T>(arguments, 0));
  cuda::set<T>(stream_of(arguments), value<T>(params.value), value<T>(params.on_diagonal),
               tile<T>(arguments, 0), params.region);
}

template <class T>
void run_scale(const Arguments& arguments) {
  const auto params = arguments.param<ScaleParams>();
  cuda::scale<T>(stream_of(arguments), value<T>(params.alpha), tile<T>(arguments, 0),
                 params.region);
}

template <class T>
void run_add_diagonal(const Arguments& arguments) {
  const auto params = arguments.param<AddDiagonalParams>();
  cuda::add_diagonal<T>(stream_of(arguments), value<T>(params.value), tile<T>(arguments, 0),
                        params.diagonal);
}

template <class T>
void run_mirror(const Arguments& arguments) {
  const auto params = arguments.param<MirrorParams>();
  cuda::mirror<T>(stream_of(arguments), params.stored, params.op, tile<T>(arguments, 0));
}

template <class T>
void run_random(const Arguments& arguments) {
  cuda::fill_random<T>(stream_of(arguments), arguments.param<RandomMatrix>(),
                       tile<T>(arguments, 0));
}

template <class T>
void run_covariance(const Arguments& arguments) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto params = arguments.param<CovarianceTile>();
    cuda::covariance<T>(stream_of(arguments), *params.covariance, params.first_row,
                        params.first_col, tile<T>(arguments, 0));
  } else {
    fail(Errc::invalid_argument, "covariances are float32 or float64, not complex");
  }
}

template <class T>
void run_measure(const Arguments& arguments) {
  const auto params = arguments.param<MeasureParams>();
  require(arguments.operands[1].dtype == DType::float64,
          "measure: the result must be a float64 column");
  cuda::measure<T>(stream_of(arguments), params.measure, params.region, tile<const T>(arguments, 0),
                   tile<double>(arguments, 1));
}

using Variant = void (*)(const Arguments&);

template <class T>
Variant find(std::string_view family) {
  static const std::map<std::string_view, Variant> variants{
      {"gemm", [](const Arguments& a) { gemm_with<T>(a, a.param<GemmParams>().beta); }},
      {"gemm_write", [](const Arguments& a) { gemm_with<T>(a, {}); }},
      {"syrk", [](const Arguments& a) { syrk_with<T>(a, a.param<SyrkParams>().beta); }},
      {"syrk_write",
       [](const Arguments& a) {
         syrk_with<T>(a, {});
         clear_other<T>(a);
       }},
      {"herk", [](const Arguments& a) { herk_with<T>(a, a.param<SyrkParams>().beta); }},
      {"herk_write",
       [](const Arguments& a) {
         herk_with<T>(a, {});
         clear_other<T>(a);
       }},
      {"trsm", run_trsm<T>},
      {"potrf", run_potrf<T>},
      {"copy", [](const Arguments& a) { run_copy<T>(a, false); }},
      {"copy_write", [](const Arguments& a) { run_copy<T>(a, true); }},
      {"axpby", run_axpby<T>},
      {"scale", run_scale<T>},
      {"set", [](const Arguments& a) { run_set<T>(a, false); }},
      {"set_write", [](const Arguments& a) { run_set<T>(a, true); }},
      {"add_diagonal", run_add_diagonal<T>},
      {"mirror", run_mirror<T>},
      {"random", run_random<T>},
      {"covariance", run_covariance<T>},
      {"measure", run_measure<T>},
  };
  const auto found = variants.find(family);
  return found == variants.end() ? nullptr : found->second;
}

const bool is_prepared = (set_preparation(DeviceKind::cuda, cuda::prepare), true);

}  // namespace

Kernel cuda_variant(std::string_view family, DType type) {
  Variant (*const finders[])(std::string_view){find<float>, find<double>, find<std::complex<float>>,
                                               find<std::complex<double>>};
  const Variant variant = finders[type_index(type)](family);
  return variant ? Kernel(variant) : Kernel();
}

}  // namespace quadriga::kernels
