// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/kernels/blas_cuda.cpp: products, solves and Cholesky of tiles on cuBLAS and cuSOLVER.
#include "linalg/kernels/blas_cuda.h"

#include <quadriga/error.h>

#include <algorithm>
#include <type_traits>

#include "linalg/kernels/elements_cuda.h"
#include "linalg/kernels/library_cuda.h"
#include "linalg/kernels/products_cuda.h"
#include "linalg/kernels/region.h"
#include "linalg/kernels/solve_cuda.h"

namespace quadriga::kernels::cuda {
namespace {

template <class T>
struct Blas;
template <>
struct Blas<float> {
  using Native = float;
  static constexpr cudaDataType type = CUDA_R_32F;
  static constinit inline auto gemm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasSgemm_64);
  static constinit inline auto syrk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasSsyrk_64);
  static constinit inline auto& herk = syrk;
  static constinit inline auto trsm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasStrsm_64);
};
template <>
struct Blas<double> {
  using Native = double;
  static constexpr cudaDataType type = CUDA_R_64F;
  static constinit inline auto gemm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDgemm_64);
  static constinit inline auto syrk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDsyrk_64);
  static constinit inline auto& herk = syrk;
  static constinit inline auto trsm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasDtrsm_64);
};
template <>
struct Blas<std::complex<float>> {
  using Native = cuComplex;
  static constexpr cudaDataType type = CUDA_C_32F;
  static constinit inline auto gemm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCgemm_64);
  static constinit inline auto syrk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCsyrk_64);
  static constinit inline auto herk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCherk_64);
  static constinit inline auto trsm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasCtrsm_64);
};
template <>
struct Blas<std::complex<double>> {
  using Native = cuDoubleComplex;
  static constexpr cudaDataType type = CUDA_C_64F;
  static constinit inline auto gemm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasZgemm_64);
  static constinit inline auto syrk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasZsyrk_64);
  static constinit inline auto herk = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasZherk_64);
  static constinit inline auto trsm = QUADRIGA_LIBRARY_FUNCTION(cublas_library, cublasZtrsm_64);
};

constinit auto potrf_buffer_size =
    QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnXpotrf_bufferSize);
constinit auto solver_potrf = QUADRIGA_LIBRARY_FUNCTION(cusolver_library, cusolverDnXpotrf);

template <class T>
const typename Blas<T>::Native* native(const T* value) noexcept {
  return reinterpret_cast<const typename Blas<T>::Native*>(value);
}
template <class T>
typename Blas<T>::Native* native(T* value) noexcept {
  return reinterpret_cast<typename Blas<T>::Native*>(value);
}

/// A scalar as cuBLAS reads it: its complex types are aligned more strictly than std::complex.
template <class T>
struct TypedFactor {
  explicit TypedFactor(T given) : value(given) {}
  const typename Blas<T>::Native* get() const noexcept { return native(&value); }
  alignas(typename Blas<T>::Native) T value;
};

cublasOperation_t blas(Op op) {
  if (op == Op::none) return CUBLAS_OP_N;
  return op == Op::transpose ? CUBLAS_OP_T : CUBLAS_OP_C;
}
cublasFillMode_t blas(Uplo uplo) {
  return uplo == Uplo::lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
}
cublasSideMode_t blas(Side side) {
  return side == Side::left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
}
cublasDiagType_t blas(Diag diag) {
  return diag == Diag::unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
}

/// B^T or B^H as a tile of its own, where products with B itself are enough faster: by a tenth at
/// an order of 4096 (H200, CUDA 13.0), and turning takes less than half of that. Empty otherwise,
/// and when the device has no memory left for it.
template <class T>
KernelTile<T> turned_factor(Handles& on, Op op_a, Op op_b, int rows, Input<T> b) {
  constexpr int least_rows = 4096;
  constexpr int least_edge = 1024;
  const bool pays = std::is_same_v<T, double> && op_a == Op::none && op_b != Op::none &&
                    rows >= least_rows && b.rows >= least_edge && b.cols >= least_edge;
  if (!pays) return {};
  const auto count = static_cast<std::size_t>(b.rows) * static_cast<std::size_t>(b.cols);
  void* const memory = on.try_scratch(count * sizeof(T));
  if (!memory) return {};
  const KernelTile<T> turned{static_cast<T*>(memory), b.cols, b.rows, b.cols};
  copy<T>(on.stream(), op_b, b, turned, {});
  return turned;
}

/// A block of a tile.
template <class T>
KernelTile<T> block(const KernelTile<T>& tile, int row, int col, int rows, int cols) {
  return {tile.column(col) + row, rows, cols, tile.ld};
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
  WholeLoads(Handles& on, bool allow_tf32) : on_(on), allow_tf32_(allow_tf32) {}

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
    return op == Op::none ? block(a, from, 0, to - from, a.cols)
                          : block(a, 0, from, a.rows, to - from);
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
    part.c = block(p.c, 0, 0, whole, p.c.cols);
    multiply(part);
    part.a = rows_of(p.op_a, p.a, whole, all);
    part.c = block(p.c, whole, 0, all - whole, p.c.cols);
    call(part);
  }
  void cut_cols(const Product<T>& p) const {
    const int all = p.c.cols;
    const int whole = all - all % unit;
    Product<T> part = p;
    part.b = cols_of(p.op_b, p.b, 0, whole);
    part.c = block(p.c, 0, 0, p.c.rows, whole);
    multiply(part);
    part.b = cols_of(p.op_b, p.b, whole, all);
    part.c = block(p.c, 0, whole, p.c.rows, all - whole);
    call(part);
  }
  void call(const Product<T>& p) const {
    const TypedFactor<T> alpha(p.alpha), beta(p.beta);
    const ProductShape shape{Blas<T>::type,
                             allow_tf32_,
                             blas(p.op_a),
                             blas(p.op_b),
                             p.c.rows,
                             p.c.cols,
                             p.inner(),
                             p.a.ld,
                             p.b.ld,
                             p.c.ld,
                             alignment_of(p.a.data),
                             alignment_of(p.b.data),
                             alignment_of(p.c.data)};
    if (on_.products().multiply(shape, alpha.get(), p.a.data, p.b.data, beta.get(), p.c.data))
      return;
    check(Blas<T>::gemm(on_.blas(allow_tf32_), blas(p.op_a), blas(p.op_b), p.c.rows, p.c.cols,
                        p.inner(), alpha.get(), native(p.a.data), p.a.ld, native(p.b.data), p.b.ld,
                        beta.get(), native(p.c.data), p.c.ld),
          "gemm");
  }

  Handles& on_;
  bool allow_tf32_;
};

TileRegion triangle(Uplo uplo) { return {uplo == Uplo::lower ? Part::lower : Part::upper, 0}; }

}  // namespace

template <class T>
void gemm(Handles& on, Op op_a, Op op_b, Value<T> alpha, Input<T> a, Input<T> b, Value<T> beta,
          KernelTile<T> c, bool allow_tf32) {
  const int m = op_a == Op::none ? a.rows : a.cols;
  const int k = op_a == Op::none ? a.cols : a.rows;
  const int k_of_b = op_b == Op::none ? b.rows : b.cols;
  const int n = op_b == Op::none ? b.cols : b.rows;
  require(m == c.rows && n == c.cols && k == k_of_b, "gemm: the shapes of A, B and C disagree");
  if (c.empty()) return;
  if (k == 0) return scale(on.stream(), beta, c);
  if (const KernelTile<T> turned = turned_factor<T>(on, op_a, op_b, m, b); !turned.empty()) {
    b = turned;
    op_b = Op::none;
  }
  WholeLoads<T>(on, allow_tf32).multiply({op_a, op_b, alpha, a, b, beta, c});
}

template <class T>
void syrk(Handles& on, Uplo uplo, Op op, Value<T> alpha, Input<T> a, Value<T> beta, KernelTile<T> c,
          bool allow_tf32) {
  if (!is_complex<T> && op == Op::conjugate) op = Op::transpose;
  require(op != Op::conjugate, "syrk: op must be none or transpose; use herk for the adjoint");
  const int n = op == Op::none ? a.rows : a.cols;
  const int k = op == Op::none ? a.cols : a.rows;
  require(n == c.rows && n == c.cols, "syrk: the shapes of A and C disagree");
  if (n == 0) return;
  if (k == 0) return scale(on.stream(), beta, c, triangle(uplo));
  const TypedFactor<T> of_a(alpha), of_c(beta);
  check(Blas<T>::syrk(on.blas(allow_tf32), blas(uplo), blas(op), n, k, of_a.get(), native(a.data),
                      a.ld, of_c.get(), native(c.data), c.ld),
        "syrk");
}

template <class T>
void herk(Handles& on, Uplo uplo, Op op, double alpha, Input<T> a, double beta, KernelTile<T> c,
          bool allow_tf32) {
  if constexpr (!is_complex<T>) {
    return syrk(on, uplo, op, static_cast<T>(alpha), a, static_cast<T>(beta), c, allow_tf32);
  } else {
    require(op != Op::transpose, "herk: op must be none or adjoint; use syrk for the transpose");
    const int n = op == Op::none ? a.rows : a.cols;
    const int k = op == Op::none ? a.cols : a.rows;
    require(n == c.rows && n == c.cols, "herk: the shapes of A and C disagree");
    if (n == 0) return;
    using Real = typename T::value_type;
    const auto real_alpha = static_cast<Real>(alpha);
    const auto real_beta = static_cast<Real>(beta);
    if (k == 0)
      scale(on.stream(), T(real_beta), c, triangle(uplo));
    else
      check(Blas<T>::herk(on.blas(allow_tf32), blas(uplo), blas(op), n, k, &real_alpha,
                          native(a.data), a.ld, &real_beta, native(c.data), c.ld),
            "herk");
    // It may return early (alpha 0, beta 1) and leave imaginary parts on the diagonal.
    make_diagonal_real(on.stream(), c);
  }
}

namespace {

/// A triangular solve by halves: one is solved, its share is subtracted from the other by a
/// product, the other is solved. cuBLAS takes twice as long at an order of 2048.
template <class T>
class Halves {
 public:
  Halves(Handles& on, int most, Side side, Uplo uplo, Op op, Diag diag)
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
      return solve_by_substitution<T>(on_.stream(), left_ ? Side::left : Side::right, uplo_, op_,
                                      diag_, a, b);
    int half = most_;
    while (2 * half < order) half *= 2;
    const int rest = order - half;
    const KernelTile<const T> a1 = block(a, 0, 0, half, half);
    const KernelTile<const T> a2 = block(a, half, half, rest, rest);
    // What is stored of A apart from the two triangles, whatever op makes of it.
    const KernelTile<const T> other =
        uplo_ == Uplo::lower ? block(a, half, 0, rest, half) : block(a, 0, half, half, rest);
    const KernelTile<T> b1 = left_ ? block(b, 0, 0, half, b.cols) : block(b, 0, 0, b.rows, half);
    const KernelTile<T> b2 =
        left_ ? block(b, half, 0, rest, b.cols) : block(b, 0, half, b.rows, rest);
    const bool first_half_first = lower_ == left_;
    solve(first_half_first ? a1 : a2, first_half_first ? b1 : b2);
    subtract(other, first_half_first ? b1 : b2, first_half_first ? b2 : b1);
    solve(first_half_first ? a2 : a1, first_half_first ? b2 : b1);
  }

 private:
  void subtract(const KernelTile<const T>& factor, const KernelTile<T>& found,
                const KernelTile<T>& from) const {
    if (left_)
      gemm<T>(on_, op_, Op::none, T(-1), factor, found, T(1), from);
    else
      gemm<T>(on_, Op::none, op_, T(-1), found, factor, T(1), from);
  }

  Handles& on_;
  int most_;  ///< By substitution.
  bool left_;
  Uplo uplo_;
  Op op_;
  Diag diag_;
  bool lower_;  ///< op(A) is.
};

}  // namespace

template <class T>
void trsm(Handles& on, Side side, Uplo uplo, Op op, Diag diag, Value<T> alpha, Input<T> a,
          KernelTile<T> b) {
  const int order = side == Side::left ? b.rows : b.cols;
  require(a.rows == order && a.cols == order, "trsm: the shapes of A and B disagree");
  if (b.empty()) return;
  if (alpha == T{}) return scale(on.stream(), alpha, b);
  if (const int most = most_substituted<T>(); most > 0) {
    scale(on.stream(), alpha, b);
    return Halves<T>(on, most, side, uplo, op, diag).solve(a, b);
  }
  const TypedFactor<T> of_b(alpha);
  check(Blas<T>::trsm(on.blas(), blas(side), blas(uplo), blas(op), blas(diag), b.rows, b.cols,
                      of_b.get(), native(a.data), a.ld, native(b.data), b.ld),
        "trsm");
}

template <class T>
void potrf(Handles& on, Uplo uplo, KernelTile<T> a, int* info) {
  require(a.rows == a.cols, "potrf: A must be square");
  *info = 0;
  if (a.rows == 0) return;
  constexpr cudaDataType type = Blas<T>::type;
  const cusolverDnHandle_t solver = on.solver();
  std::size_t bytes = 0;
  std::size_t host_bytes = 0;
  check(potrf_buffer_size(solver, on.solver_params(), blas(uplo), a.rows, type, a.data, a.ld, type,
                          &bytes, &host_bytes),
        "asking for potrf's workspace");
  // The first line of the scratch is for cuSOLVER's own word.
  constexpr std::size_t line = 256;
  auto* const scratch = static_cast<std::byte*>(on.solver_scratch(line + bytes));
  auto* const device_info = reinterpret_cast<int*>(scratch);
  check(solver_potrf(solver, on.solver_params(), blas(uplo), a.rows, type, a.data, a.ld, type,
                     scratch + line, bytes, on.host_scratch(host_bytes), host_bytes, device_info),
        "potrf");
  report_minor(on.stream(), KernelTile<const T>(a), device_info, info);
}

#define QUADRIGA_INSTANTIATE(T)                                                                 \
  template void gemm<T>(Handles&, Op, Op, T, KernelTile<const T>, KernelTile<const T>, T,       \
                        KernelTile<T>, bool);                                                   \
  template void syrk<T>(Handles&, Uplo, Op, T, KernelTile<const T>, T, KernelTile<T>, bool);    \
  template void herk<T>(Handles&, Uplo, Op, double, KernelTile<const T>, double, KernelTile<T>, \
                        bool);                                                                  \
  template void trsm<T>(Handles&, Side, Uplo, Op, Diag, T, KernelTile<const T>, KernelTile<T>); \
  template void potrf<T>(Handles&, Uplo, KernelTile<T>, int*);
QUADRIGA_INSTANTIATE(float)
QUADRIGA_INSTANTIATE(double)
QUADRIGA_INSTANTIATE(std::complex<float>)
QUADRIGA_INSTANTIATE(std::complex<double>)
#undef QUADRIGA_INSTANTIATE

}  // namespace quadriga::kernels::cuda
