// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/gemm.cpp: products of tiles: cost, division, variants for the host and
// streams.
#include "linalg/kernels/gemm.h"

#include "linalg/kernels/codelet_parts.h"
#include "linalg/kernels/divisions.h"
#include "linalg/kernels/host_blas.h"
#include "linalg/kernels/stream_blas.h"

#include <algorithm>
#include <type_traits>

namespace quadriga::kernels {
namespace {

using enum Access;

Cost gemm_cost(const Arguments& arguments) {
  const View& a = arguments.operands[0];
  const View& c = arguments.operands[2];
  const bool plain = arguments.param<GemmParams>().op_a == Op::none;
  return cost_of(gemm_names, arguments,
                 static_cast<double>(c.rows) * static_cast<double>(c.cols) *
                     static_cast<double>(plain ? a.cols : a.rows));
}

void divide_gemm(const Arguments& arguments, Division& division) {
  auto params = arguments.param<GemmParams>();
  const View& b = arguments.operands[1];
  const View& c = arguments.operands[2];
  const std::vector<FinePart> rows = fine_parts(c.rows);
  const std::vector<FinePart> columns = fine_parts(c.cols);
  if (!params.fine || rows.size() * columns.size() < 2) return;
  params.fine = false;
  for (const FinePart& across : columns) {
    const View right = params.op_b == Op::none ? columns_of(b, across) : rows_of(b, across);
    for (const FinePart& down : rows)
      division.add(
          gemm_codelet(c.dtype),
          {rows_of(arguments.operands[0], params.op_a, down), right, block_of(c, down, across)},
          params);
  }
}

/// The rows of op(B) that belong to A's columns.
template <class T>
KernelTile<const T> right_factor(const Arguments& arguments, const GemmParams& params) {
  const KernelTile<const T> a = tile<const T>(arguments, 0);
  const KernelTile<const T> b = tile<const T>(arguments, 1);
  if (params.inner < 0) return b;
  const int depth = params.op_a == Op::none ? a.cols : a.rows;
  const bool plain = params.op_b == Op::none;
  require(params.inner + depth <= (plain ? b.rows : b.cols),
          "gemm: A has more columns than op(B) has rows from there on");
  if (plain) return {b.data + params.inner, depth, b.cols, b.ld};
  return {b.column(params.inner), b.rows, depth, b.ld};
}

template <class T>
void run_gemm(const Arguments& arguments, Coefficient beta) {
  const auto params = arguments.param<GemmParams>();
  gemm(params.op_a, params.op_b, value<T>(params.alpha), tile<const T>(arguments, 0),
       right_factor<T>(arguments, params), value<T>(beta), tile<T>(arguments, 2));
}

template <class T>
void run_gemm(const Arguments& arguments, StreamBlas<T>& on, Coefficient beta) {
  const auto params = arguments.param<GemmParams>();
  queue_gemm(on, params.op_a, params.op_b, value<T>(params.alpha), tile<const T>(arguments, 0),
             right_factor<T>(arguments, params), value<T>(beta), tile<T>(arguments, 2),
             params.allow_tf32);
}

template <class T>
int inner_dimension(Op op_a, Op op_b, const KernelTile<const T>& a, const KernelTile<const T>& b,
                    const KernelTile<T>& c) {
  const int m = op_a == Op::none ? a.rows : a.cols;
  const int k = op_a == Op::none ? a.cols : a.rows;
  const int k_of_b = op_b == Op::none ? b.rows : b.cols;
  const int n = op_b == Op::none ? b.cols : b.rows;
  require(m == c.rows && n == c.cols && k == k_of_b, "gemm: the shapes of A, B and C disagree");
  return k;
}

/// B^T or B^H as a tile of its own, where products with B itself are enough faster: by a tenth at
/// an order of 4096 (H200, CUDA 13.0), and turning takes less than half of that. Empty otherwise,
/// and when the device has no memory left for it.
template <class T>
KernelTile<T> turned_factor(StreamBlas<T>& on, Op op_a, Op op_b, int rows, KernelTile<const T> b) {
  constexpr int least_rows = 4096;
  constexpr int least_edge = 1024;
  const bool pays = std::is_same_v<T, double> && op_a == Op::none && op_b != Op::none &&
                    rows >= least_rows && b.rows >= least_edge && b.cols >= least_edge;
  if (!pays) return {};
  const auto count = static_cast<std::size_t>(b.rows) * static_cast<std::size_t>(b.cols);
  std::byte* const memory = on.try_scratch(count * sizeof(T));
  if (!memory) return {};
  const KernelTile<T> turned{reinterpret_cast<T*>(memory), b.cols, b.rows, b.cols};
  on.copy(op_b, b, turned, {});
  return turned;
}

template <class T>
struct Product {
  Op op_a;
  Op op_b;
  T alpha;
  KernelTile<const T> a;
  KernelTile<const T> b;
  T beta;
  KernelTile<T> c;
  int inner() const { return op_a == Op::none ? a.cols : a.rows; }
};

/// C = alpha op(A) op(B) + beta C by as few calls as run at full rate.
///
/// Where an edge along which a matrix is stored isn't a whole number of loads of 16 bytes, cuBLAS
/// takes kernels with smaller loads for all of it: three quarters of the rate for odd orders in
/// double precision. So such an edge is cut behind its last whole load, and the rest is a product
/// of its own. Below an edge of a few hundred the rests, which are bound by memory, cost what that
/// saves. It is done whatever the leading dimensions: results follow from shapes alone.
template <class T>
class WholeLoads {
 public:
  WholeLoads(StreamBlas<T>& on, bool allow_tf32) : on_(on), allow_tf32_(allow_tf32) {}

  void multiply(const Product<T>& p) const {
    constexpr int least_edge = 512;
    if (std::min({p.c.rows, p.c.cols, p.inner()}) < least_edge) return call(p);
    if (p.inner() % unit != 0 && (p.op_a != Op::none || p.op_b == Op::none)) return cut_inner(p);
    if (p.c.rows % unit != 0 && p.op_a == Op::none) return cut_rows(p);
    if (p.c.cols % unit != 0 && p.op_b != Op::none) return cut_cols(p);
    call(p);
  }

 private:
  static constexpr int unit = std::max<int>(1, 16 / sizeof(T));

  /// Rows `from` to `to` of op(A), or columns of op(B).
  static KernelTile<const T> rows_of(Op op, const KernelTile<const T>& a, int from, int to) {
    return op == Op::none ? sub_tile(a, from, 0, to - from, a.cols)
                          : sub_tile(a, 0, from, a.rows, to - from);
  }
  static KernelTile<const T> cols_of(Op op, const KernelTile<const T>& b, int from, int to) {
    return rows_of(op == Op::none ? Op::transpose : Op::none, b, from, to);
  }

  void cut_inner(const Product<T>& p) const {
    const int all = p.inner();
    const int whole = all - all % unit;
    Product<T> part = p;
    part.a = cols_of(p.op_a, p.a, 0, whole);
    part.b = rows_of(p.op_b, p.b, 0, whole);
    multiply(part);
    part.a = cols_of(p.op_a, p.a, whole, all);
    part.b = rows_of(p.op_b, p.b, whole, all);
    part.beta = T(1);
    call(part);
  }
  void cut_rows(const Product<T>& p) const {
    const int all = p.c.rows;
    const int whole = all - all % unit;
    Product<T> part = p;
    part.a = rows_of(p.op_a, p.a, 0, whole);
    part.c = sub_tile(p.c, 0, 0, whole, p.c.cols);
    multiply(part);
    part.a = rows_of(p.op_a, p.a, whole, all);
    part.c = sub_tile(p.c, whole, 0, all - whole, p.c.cols);
    call(part);
  }
  void cut_cols(const Product<T>& p) const {
    const int all = p.c.cols;
    const int whole = all - all % unit;
    Product<T> part = p;
    part.b = cols_of(p.op_b, p.b, 0, whole);
    part.c = sub_tile(p.c, 0, 0, p.c.rows, whole);
    multiply(part);
    part.b = cols_of(p.op_b, p.b, whole, all);
    part.c = sub_tile(p.c, 0, whole, p.c.rows, all - whole);
    call(part);
  }
  void call(const Product<T>& p) const {
    on_.gemm(p.op_a, p.op_b, p.alpha, p.a, p.b, p.beta, p.c, allow_tf32_);
  }

  StreamBlas<T>& on_;
  bool allow_tf32_;
};

}  // namespace

std::span<const KernelSpec> gemm_kernels() {
  static const KernelSpec kernels[]{
      {.name = "gemm",
       .access = {read, read, update},
       .params_bytes = sizeof(GemmParams),
       .cost = gemm_cost,
       .host =
           on_host([]<class T>(const Arguments& a) { run_gemm<T>(a, a.param<GemmParams>().beta); }),
       .stream = on_stream([]<class T>(const Arguments& a, StreamBlas<T>& on) {
         run_gemm(a, on, a.param<GemmParams>().beta);
       }),
       .codelet = gemm_codelet,
       .divide = divide_gemm},
      {.name = "gemm_write",
       .access = {read, read, write},
       .params_bytes = sizeof(GemmParams),
       .cost = gemm_cost,
       .host = on_host([]<class T>(const Arguments& a) { run_gemm<T>(a, Coefficient{}); }),
       .stream = on_stream(
           []<class T>(const Arguments& a, StreamBlas<T>& on) { run_gemm(a, on, Coefficient{}); }),
       .codelet = gemm_write_codelet},
  };
  return kernels;
}

const Codelet& gemm_codelet(DType type) {
  static const Family family(gemm_kernels()[0]);
  return family[type];
}

const Codelet& gemm_write_codelet(DType type) {
  static const Family family(gemm_kernels()[1]);
  return family[type];
}

template <class T>
void gemm(Op op_a, Op op_b, Value<T> alpha, Input<T> a, Input<T> b, Value<T> beta,
          KernelTile<T> c) {
  const int k = inner_dimension(op_a, op_b, a, b, c);
  if (c.empty()) return;
  if (k == 0) return scale(beta, c);
  of_type<T>(cblas_sgemm, cblas_dgemm, cblas_cgemm, cblas_zgemm)(
      CblasColMajor, blas(op_a), blas(op_b), c.rows, c.cols, k, scalar(alpha), a.data, a.ld, b.data,
      b.ld, scalar(beta), c.data, c.ld);
}

template <class T>
void queue_gemm(StreamBlas<T>& on, Op op_a, Op op_b, Value<T> alpha, Input<T> a, Input<T> b,
                Value<T> beta, KernelTile<T> c, bool allow_tf32) {
  const int k = inner_dimension(op_a, op_b, a, b, c);
  if (c.empty()) return;
  if (k == 0) return on.scale(beta, c, {});
  if (const KernelTile<T> turned = turned_factor(on, op_a, op_b, c.rows, b); !turned.empty()) {
    b = turned;
    op_b = Op::none;
  }
  WholeLoads<T>(on, allow_tf32).multiply({op_a, op_b, alpha, a, b, beta, c});
}

#define QUADRIGA_INSTANTIATE(T)                                                                    \
  template void gemm<T>(Op, Op, T, KernelTile<const T>, KernelTile<const T>, T, KernelTile<T>);    \
  template void queue_gemm<T>(StreamBlas<T>&, Op, Op, T, KernelTile<const T>, KernelTile<const T>, \
                              T, KernelTile<T>, bool);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels
