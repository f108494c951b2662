// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/trsm.cpp: triangular solves of tiles: cost, division, variants for the host
// and streams.
#include "linalg/kernels/trsm.h"

#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/divisions.h"
#include "linalg/kernels/gemm.h"
#include "linalg/kernels/host_blas.h"
#include "linalg/kernels/stream_blas.h"

namespace quadriga::kernels {
namespace {

using enum Access;

Cost trsm_cost(const Arguments& arguments) {
  const View& t = arguments.operands[0];
  const View& b = arguments.operands[1];
  return cost_of(
      trsm_names, arguments,
      static_cast<double>(t.rows) * static_cast<double>(b.rows) * static_cast<double>(b.cols));
}

void divide_trsm(const Arguments& arguments, Division& division) {
  auto params = arguments.param<TrsmParams>();
  const View& factor = arguments.operands[0];
  const View& b = arguments.operands[1];
  const bool left = params.side == Side::left;
  const std::vector<FinePart> parts = fine_parts(left ? b.cols : b.rows);
  if (!params.fine || parts.size() < 2) return;
  params.fine = false;
  for (const FinePart& part : parts)
    division.add(trsm_codelet(b.dtype), {factor, left ? columns_of(b, part) : rows_of(b, part)},
                 params);
}

template <class T>
void require_shapes(Side side, const KernelTile<const T>& a, const KernelTile<T>& b) {
  const int order = side == Side::left ? b.rows : b.cols;
  require(a.rows == order && a.cols == order, "trsm: the shapes of A and B disagree");
}

/// A triangular solve by halves: one is solved, its share is subtracted from the other by a
/// product, the other is solved. cuBLAS takes twice as long at an order of 2048.
template <class T>
class Halves {
 public:
  Halves(StreamBlas<T>& on, int most, Side side, Uplo uplo, Op op, Diag diag)
      : on_(on),
        most_(most),
        left_(side == Side::left),
        uplo_(uplo),
        op_(op),
        diag_(diag),
        lower_((uplo == Uplo::lower) == (op == Op::none)) {}

  void solve(const KernelTile<const T>& a, const KernelTile<T>& b) const {
    const int order = a.rows;
    if (order <= most_)
      return on_.substitute(left_ ? Side::left : Side::right, uplo_, op_, diag_, a, b);
    int half = most_;
    while (2 * half < order) half *= 2;
    const int rest = order - half;
    const KernelTile<const T> a1 = sub_tile(a, 0, 0, half, half);
    const KernelTile<const T> a2 = sub_tile(a, half, half, rest, rest);
    // What is stored of A apart from the two triangles, whatever op makes of it.
    const KernelTile<const T> other =
        uplo_ == Uplo::lower ? sub_tile(a, half, 0, rest, half) : sub_tile(a, 0, half, half, rest);
    const KernelTile<T> b1 =
        left_ ? sub_tile(b, 0, 0, half, b.cols) : sub_tile(b, 0, 0, b.rows, half);
    const KernelTile<T> b2 =
        left_ ? sub_tile(b, half, 0, rest, b.cols) : sub_tile(b, 0, half, b.rows, rest);
    const bool first_half_first = lower_ == left_;
    solve(first_half_first ? a1 : a2, first_half_first ? b1 : b2);
    subtract(other, first_half_first ? b1 : b2, first_half_first ? b2 : b1);
    solve(first_half_first ? a2 : a1, first_half_first ? b2 : b1);
  }

 private:
  void subtract(const KernelTile<const T>& factor, const KernelTile<T>& found,
                const KernelTile<T>& from) const {
    if (left_)
      queue_gemm<T>(on_, op_, Op::none, T(-1), factor, found, T(1), from);
    else
      queue_gemm<T>(on_, Op::none, op_, T(-1), found, factor, T(1), from);
  }

  StreamBlas<T>& on_;
  int most_;  ///< By substitution.
  bool left_;
  Uplo uplo_;
  Op op_;
  Diag diag_;
  bool lower_;  ///< op(A) is.
};

template <class T>
void queue_trsm(StreamBlas<T>& on, Side side, Uplo uplo, Op op, Diag diag, T alpha,
                KernelTile<const T> a, KernelTile<T> b) {
  require_shapes(side, a, b);
  if (b.empty()) return;
  if (alpha == T{}) return on.scale(alpha, b, {});
  if (const int most = on.most_substituted(); most > 0) {
    on.scale(alpha, b, {});
    return Halves<T>(on, most, side, uplo, op, diag).solve(a, b);
  }
  on.trsm(side, uplo, op, diag, alpha, a, b);
}

template <class T>
void run_trsm(const Arguments& arguments) {
  const auto params = arguments.param<TrsmParams>();
  trsm(params.side, params.uplo, params.op, params.diag, value<T>(params.alpha),
       tile<const T>(arguments, 0), tile<T>(arguments, 1));
}

template <class T>
void run_trsm(const Arguments& arguments, StreamBlas<T>& on) {
  const auto params = arguments.param<TrsmParams>();
  queue_trsm(on, params.side, params.uplo, params.op, params.diag, value<T>(params.alpha),
             tile<const T>(arguments, 0), tile<T>(arguments, 1));
}

}  // namespace

std::span<const KernelSpec> trsm_kernels() {
  static const KernelSpec kernels[]{{
      .name = "trsm",
      .access = {read, update},
      .params_bytes = sizeof(TrsmParams),
      .cost = trsm_cost,
      .host = on_host([]<class T>(const Arguments& a) { run_trsm<T>(a); }),
      .stream = on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) { run_trsm(a, on); }),
      .codelet = trsm_codelet,
      .divide = divide_trsm,
  }};
  return kernels;
}

const Codelet& trsm_codelet(DType type) {
  static const Family family(trsm_kernels()[0]);
  return family[type];
}

template <class T>
void trsm(Side side, Uplo uplo, Op op, Diag diag, Value<T> alpha, Input<T> a, KernelTile<T> b) {
  require_shapes(side, a, b);
  if (b.empty()) return;
  if (alpha == T{}) return scale(alpha, b);
  of_type<T>(cblas_strsm, cblas_dtrsm, cblas_ctrsm, cblas_ztrsm)(
      CblasColMajor, blas(side), blas(uplo), blas(op), blas(diag), b.rows, b.cols, scalar(alpha),
      a.data, a.ld, b.data, b.ld);
}

template void trsm<float>(Side, Uplo, Op, Diag, float, KernelTile<const float>, KernelTile<float>);
template void trsm<double>(Side, Uplo, Op, Diag, double, KernelTile<const double>,
                           KernelTile<double>);
template void trsm<std::complex<float>>(Side, Uplo, Op, Diag, std::complex<float>,
                                        KernelTile<const std::complex<float>>,
                                        KernelTile<std::complex<float>>);
template void trsm<std::complex<double>>(Side, Uplo, Op, Diag, std::complex<double>,
                                         KernelTile<const std::complex<double>>,
                                         KernelTile<std::complex<double>>);

}  // namespace quadriga::kernels
