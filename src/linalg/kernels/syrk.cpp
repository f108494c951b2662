// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/syrk.cpp: rank updates of tiles: cost, division, variants for the host and
// streams.
#include "linalg/kernels/syrk.h"

#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/divisions.h"
#include "linalg/kernels/gemm.h"
#include "linalg/kernels/host_blas.h"
#include "linalg/kernels/stream_blas.h"

namespace quadriga::kernels {
namespace {

using enum Access;

Cost syrk_cost(const Arguments& arguments) {
  const View& a = arguments.operands[0];
  const View& c = arguments.operands[1];
  const bool plain = arguments.param<SyrkParams>().op == Op::none;
  return cost_of(syrk_names, arguments,
                 static_cast<double>(c.rows) * static_cast<double>(c.cols) *
                     static_cast<double>(plain ? a.cols : a.rows));
}

/// `adjoint`: the op that makes the right factor of the left one.
void divide_rank_update(const Arguments& arguments, Division& division, const Codelet& diagonal,
                        Coefficient alpha, Op adjoint) {
  auto params = arguments.param<SyrkParams>();
  const View& a = arguments.operands[0];
  const View& c = arguments.operands[1];
  const std::vector<FinePart> parts = fine_parts(c.rows);
  if (!params.fine || parts.size() < 2) return;
  params.fine = false;
  const bool plain = params.op == Op::none;
  const GemmParams beside{alpha, params.beta, params.op, plain ? adjoint : Op::none};
  const DType type = c.dtype;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const View left = rows_of(a, params.op, parts[i]);
    division.add(diagonal, {left, block_of(c, parts[i], parts[i])}, params);
    for (std::size_t j = 0; j < parts.size(); ++j)
      if (params.uplo == Uplo::lower ? j < i : j > i)
        division.add(gemm_codelet(type),
                     {left, rows_of(a, params.op, parts[j]), block_of(c, parts[i], parts[j])},
                     beside);
  }
}

void divide_syrk(const Arguments& arguments, Division& division) {
  divide_rank_update(arguments, division, syrk_codelet(arguments.operands[1].dtype),
                     arguments.param<SyrkParams>().alpha, Op::transpose);
}

void divide_herk(const Arguments& arguments, Division& division) {
  const double alpha = arguments.param<SyrkParams>().alpha.real;
  divide_rank_update(arguments, division, herk_codelet(arguments.operands[1].dtype), alpha,
                     Op::conjugate);
}

template <class T>
int rank(Op op, const KernelTile<const T>& a, const KernelTile<T>& c, std::string_view disagree) {
  const int n = op == Op::none ? a.rows : a.cols;
  require(n == c.rows && n == c.cols, disagree);
  return op == Op::none ? a.cols : a.rows;
}

/// The op that syrk takes of a type.
template <class T>
Op symmetric_op(Op op) {
  if (!is_complex<T> && op == Op::conjugate) op = Op::transpose;
  require(op != Op::conjugate, "syrk: op must be none or transpose; use herk for the adjoint");
  return op;
}

constexpr std::string_view syrk_shapes = "syrk: the shapes of A and C disagree";
constexpr std::string_view herk_shapes = "herk: the shapes of A and C disagree";
constexpr std::string_view herk_ops =
    "herk: op must be none or adjoint; use syrk for the transpose";

template <class T>
void queue_syrk(StreamBlas<T>& on, Uplo uplo, Op op, T alpha, KernelTile<const T> a, T beta,
                KernelTile<T> c, bool allow_tf32) {
  op = symmetric_op<T>(op);
  const int k = rank(op, a, c, syrk_shapes);
  if (c.rows == 0) return;
  if (k == 0) return on.scale(beta, c, triangle(uplo));
  on.syrk(uplo, op, alpha, a, beta, c, allow_tf32);
}

template <class T>
void queue_herk(StreamBlas<T>& on, Uplo uplo, Op op, double alpha, KernelTile<const T> a,
                double beta, KernelTile<T> c, bool allow_tf32) {
  if constexpr (!is_complex<T>) {
    return queue_syrk(on, uplo, op, static_cast<T>(alpha), a, static_cast<T>(beta), c, allow_tf32);
  } else {
    require(op != Op::transpose, herk_ops);
    const int k = rank(op, a, c, herk_shapes);
    if (c.rows == 0) return;
    using Real = typename T::value_type;
    const auto real_beta = static_cast<Real>(beta);
    if (k == 0)
      on.scale(T(real_beta), c, triangle(uplo));
    else
      on.herk(uplo, op, static_cast<Real>(alpha), a, real_beta, c, allow_tf32);
    // It may return early (alpha 0, beta 1) and leave imaginary parts on the diagonal.
    on.make_diagonal_real(c);
  }
}

template <class T>
void run_syrk(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<SyrkParams>();
  syrk(params.uplo, params.op, value<T>(params.alpha), tile<const T>(arguments, 0), value<T>(beta),
       tile<T>(arguments, 1));
}

template <class T>
void run_syrk(const Arguments& arguments, StreamBlas<T>& on, Coefficient beta) {
  const auto params = arguments.param<SyrkParams>();
  queue_syrk(on, params.uplo, params.op, value<T>(params.alpha), tile<const T>(arguments, 0),
             value<T>(beta), tile<T>(arguments, 1), params.allow_tf32);
}

template <class T>
void run_herk(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<SyrkParams>();
  herk(params.uplo, params.op, params.alpha.real, tile<const T>(arguments, 0), beta.real,
       tile<T>(arguments, 1));
}

template <class T>
void run_herk(const Arguments& arguments, StreamBlas<T>& on, Coefficient beta) {
  const auto params = arguments.param<SyrkParams>();
  queue_herk(on, params.uplo, params.op, params.alpha.real, tile<const T>(arguments, 0), beta.real,
             tile<T>(arguments, 1), params.allow_tf32);
}

/// What syrk and herk don't write of an operand that they must overwrite.
TileRegion other_triangle(const Arguments& arguments) {
  const bool lower = arguments.param<SyrkParams>().uplo == Uplo::lower;
  return {lower ? Part::strict_upper : Part::strict_lower, 0};
}

KernelSpec updating(std::string_view name, HostVariants host, StreamVariants stream,
                    const Codelet& (*codelet)(DType), void (*divide)(const Arguments&, Division&)) {
  return {.name = name,
          .access = {read, update},
          .params_bytes = sizeof(SyrkParams),
          .cost = syrk_cost,
          .host = host,
          .stream = stream,
          .codelet = codelet,
          .divide = divide};
}

KernelSpec writing(std::string_view name, HostVariants host, StreamVariants stream,
                   const Codelet& (*codelet)(DType)) {
  KernelSpec spec = updating(name, host, stream, codelet, nullptr);
  spec.access = {read, write};
  return spec;
}

}  // namespace

std::span<const KernelSpec> syrk_kernels() {
  static const KernelSpec kernels[]{
      updating("syrk", on_host([]<class T>(const Arguments& a) {
                 run_syrk<T>(a, a.param<SyrkParams>().beta);
               }),
               on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                 run_syrk(a, on, a.param<SyrkParams>().beta);
               }),
               syrk_codelet, divide_syrk),
      writing("syrk_write", on_host([]<class T>(const Arguments& a) {
                run_syrk<T>(a, Coefficient{});
                set(T{}, T{}, tile<T>(a, 1), other_triangle(a));
              }),
              on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                run_syrk(a, on, Coefficient{});
                on.set(T{}, T{}, tile<T>(a, 1), other_triangle(a));
              }),
              syrk_write_codelet),
      updating("herk", on_host([]<class T>(const Arguments& a) {
                 run_herk<T>(a, a.param<SyrkParams>().beta);
               }),
               on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                 run_herk(a, on, a.param<SyrkParams>().beta);
               }),
               herk_codelet, divide_herk),
      writing("herk_write", on_host([]<class T>(const Arguments& a) {
                run_herk<T>(a, Coefficient{});
                set(T{}, T{}, tile<T>(a, 1), other_triangle(a));
              }),
              on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
                run_herk(a, on, Coefficient{});
                on.set(T{}, T{}, tile<T>(a, 1), other_triangle(a));
              }),
              herk_write_codelet),
  };
  return kernels;
}

const Codelet& syrk_codelet(DType type) {
  static const Family family(syrk_kernels()[0]);
  return family[type];
}

const Codelet& syrk_write_codelet(DType type) {
  static const Family family(syrk_kernels()[1]);
  return family[type];
}

const Codelet& herk_codelet(DType type) {
  static const Family family(syrk_kernels()[2]);
  return family[type];
}

const Codelet& herk_write_codelet(DType type) {
  static const Family family(syrk_kernels()[3]);
  return family[type];
}

template <class T>
void syrk(Uplo uplo, Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c) {
  op = symmetric_op<T>(op);
  const int k = rank(op, a, c, syrk_shapes);
  if (c.rows == 0) return;
  // Not every version of the BLAS ignores what C holds when beta is 0.
  if (k == 0 || beta == T{}) scale(beta, c, triangle(uplo));
  if (k == 0) return;
  of_type<T>(cblas_ssyrk, cblas_dsyrk, cblas_csyrk, cblas_zsyrk)(
      CblasColMajor, blas(uplo), blas(op), c.rows, k, scalar(alpha), a.data, a.ld, scalar(beta),
      c.data, c.ld);
}

template <class T>
void herk(Uplo uplo, Op op, double alpha, Input<T> a, double beta, KernelTile<T> c) {
  if constexpr (!is_complex<T>) {
    return syrk(uplo, op, static_cast<T>(alpha), a, static_cast<T>(beta), c);
  } else {
    require(op != Op::transpose, herk_ops);
    const int k = rank(op, a, c, herk_shapes);
    if (c.rows == 0) return;
    using Real = typename T::value_type;
    if (k == 0 || beta == 0) scale(static_cast<Real>(beta), c, triangle(uplo));
    if (k != 0)
      of_type<T>(cblas_ssyrk, cblas_dsyrk, cblas_cherk, cblas_zherk)(
          CblasColMajor, blas(uplo), blas(op), c.rows, k, static_cast<Real>(alpha), a.data, a.ld,
          static_cast<Real>(beta), c.data, c.ld);
    // The BLAS may return early (alpha 0, beta 1) and leave imaginary parts on the diagonal.
    for (int i = 0; i < c.rows; ++i) c(i, i) = std::real(c(i, i));
  }
}

#define QUADRIGA_INSTANTIATE(T)                                              \
  template void syrk<T>(Uplo, Op, T, KernelTile<const T>, T, KernelTile<T>); \
  template void herk<T>(Uplo, Op, double, KernelTile<const T>, double, KernelTile<T>);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels
