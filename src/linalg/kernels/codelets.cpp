// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/codelets.cpp: codelets of products, solves and Cholesky.
#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/divisions.h"

namespace quadriga::kernels {
namespace {

using enum Access;

double extent(std::int64_t elements) { return static_cast<double>(elements); }

Cost gemm_cost(const Arguments& arguments) {
  const View& a = arguments.operands[0];
  const View& c = arguments.operands[2];
  const bool plain = arguments.param<GemmParams>().op_a == Op::none;
  return cost_of(gemm_names, arguments,
                 extent(c.rows) * extent(c.cols) * extent(plain ? a.cols : a.rows));
}

Cost syrk_cost(const Arguments& arguments) {
  const View& a = arguments.operands[0];
  const View& c = arguments.operands[1];
  const bool plain = arguments.param<SyrkParams>().op == Op::none;
  return cost_of(syrk_names, arguments,
                 extent(c.rows) * extent(c.cols) * extent(plain ? a.cols : a.rows));
}

Cost trsm_cost(const Arguments& arguments) {
  const View& t = arguments.operands[0];
  const View& b = arguments.operands[1];
  return cost_of(trsm_names, arguments, extent(t.rows) * extent(b.rows) * extent(b.cols));
}

Cost potrf_cost(const Arguments& arguments) {
  const double order = extent(arguments.operands[0].rows);
  return cost_of(potrf_names, arguments, order * order * order);
}

template <class T>
void run_gemm(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<GemmParams>();
  gemm(params.op_a, params.op_b, value<T>(params.alpha), tile<const T>(arguments, 0),
       right_factor<T>(arguments, params), value<T>(beta), tile<T>(arguments, 2));
}

template <class T>
void run_syrk(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<SyrkParams>();
  syrk(params.uplo, params.op, value<T>(params.alpha), tile<const T>(arguments, 0), value<T>(beta),
       tile<T>(arguments, 1));
}

template <class T>
void run_herk(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<SyrkParams>();
  herk(params.uplo, params.op, params.alpha.real, tile<const T>(arguments, 0), beta.real,
       tile<T>(arguments, 1));
}

/// What syrk and herk don't write of an operand that they must overwrite.
template <class T>
void clear_other(const Arguments& arguments) {
  const bool lower = arguments.param<SyrkParams>().uplo == Uplo::lower;
  set(T{}, T{}, tile<T>(arguments, 1), {lower ? Part::strict_upper : Part::strict_lower, 0});
}

template <class T>
void run_trsm(const Arguments& arguments) {
  const auto params = arguments.param<TrsmParams>();
  trsm(params.side, params.uplo, params.op, params.diag, value<T>(params.alpha),
       tile<const T>(arguments, 0), tile<T>(arguments, 1));
}

template <class T>
void run_potrf(const Arguments& arguments) {
  const auto params = arguments.param<PotrfParams>();
  const int info = potrf(params.uplo, tile<T>(arguments, 0));
  if (info > 0) throw NotPositiveDefinite(params.first + info);
}

}  // namespace

const Codelet& gemm_codelet(DType type) {
  static const Family family(
      "gemm", {read, read, update},
      []<class T>(const Arguments& a) { run_gemm<T>(a, a.param<GemmParams>().beta); }, gemm_cost,
      divide_gemm);
  return family[type];
}

const Codelet& gemm_write_codelet(DType type) {
  static const Family family(
      "gemm_write", {read, read, write},
      []<class T>(const Arguments& a) { run_gemm<T>(a, Coefficient{}); }, gemm_cost);
  return family[type];
}

const Codelet& syrk_codelet(DType type) {
  static const Family family(
      "syrk", {read, update},
      []<class T>(const Arguments& a) { run_syrk<T>(a, a.param<SyrkParams>().beta); }, syrk_cost,
      divide_syrk);
  return family[type];
}

const Codelet& syrk_write_codelet(DType type) {
  static const Family family(
      "syrk_write", {read, write},
      []<class T>(const Arguments& a) {
        run_syrk<T>(a, Coefficient{});
        clear_other<T>(a);
      },
      syrk_cost);
  return family[type];
}

const Codelet& herk_codelet(DType type) {
  static const Family family(
      "herk", {read, update},
      []<class T>(const Arguments& a) { run_herk<T>(a, a.param<SyrkParams>().beta); }, syrk_cost,
      divide_herk);
  return family[type];
}

const Codelet& herk_write_codelet(DType type) {
  static const Family family(
      "herk_write", {read, write},
      []<class T>(const Arguments& a) {
        run_herk<T>(a, Coefficient{});
        clear_other<T>(a);
      },
      syrk_cost);
  return family[type];
}

const Codelet& trsm_codelet(DType type) {
  static const Family family(
      "trsm", {read, update}, []<class T>(const Arguments& a) { run_trsm<T>(a); }, trsm_cost,
      divide_trsm);
  return family[type];
}

const Codelet& potrf_codelet(DType type) {
  static const Family family(
      "potrf", {update}, []<class T>(const Arguments& a) { run_potrf<T>(a); }, potrf_cost,
      divide_potrf);
  return family[type];
}

}  // namespace quadriga::kernels
