// SPDX-License-Identifier: BSD-3-Clause
// src/linalg/c_interface.cpp: quadriga.h: arguments checked as LAPACK does, errors as numbers.
#include <quadriga/linalg.h>
#include <quadriga/quadriga.h>

#include <algorithm>
#include <complex>
#include <exception>
#include <new>
#include <string>

#include "base/c_message.h"
#include "engine/c_engine.h"
#include "linalg/view.h"

using quadriga::DType;
using quadriga::Engine;
using quadriga::Errc;
using quadriga::Error;
using quadriga::opened;
using quadriga::refuse;
namespace linalg = quadriga::linalg;

namespace {

/// Runs one call; no exception passes into C.
template <class Call>
std::int64_t guarded(Call&& call) noexcept {
  return quadriga::c_guarded([&]() -> std::int64_t {
    try {
      call();
      return 0;
    } catch (const quadriga::NotPositiveDefinite& error) {
      return quadriga::c_failed(error.minor(), error.what());
    } catch (const linalg::SingularMatrix& error) {
      return quadriga::c_failed(error.index() + 1, error.what());
    }
  });
}

/// The letter in capitals, one of those given.
char letter(int argument, const char* name, char given, const std::string& known) {
  const char capital = given >= 'a' && given <= 'z' ? static_cast<char>(given - 'a' + 'A') : given;
  if (known.find(capital) == std::string::npos)
    refuse(argument, std::string(name) + " is '" + given + "'; expected one of " + known);
  return capital;
}

linalg::Uplo uplo_of(int argument, char given) {
  return letter(argument, "uplo", given, "LU") == 'L' ? linalg::Uplo::lower : linalg::Uplo::upper;
}

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;

linalg::Op op_of(int argument, char given, const std::string& known = "NTC") {
  switch (letter(argument, "trans", given, known)) {
    case 'N':
      return linalg::Op::none;
    case 'T':
      return linalg::Op::transpose;
    default:
      return linalg::Op::conjugate;
  }
}

void check_size(int argument, const char* name, std::int64_t size) {
  if (size < 0)
    refuse(argument, std::string(name) + " is " + std::to_string(size) + "; expected at least 0");
  constexpr std::int64_t most = std::int64_t{1} << 48;  // bytes that a process can address
  if (size > most)
    refuse(argument, std::string(name) + " is " + std::to_string(size) + "; expected at most 2^48");
}

/// What is written lies apart from what is read; `argument`: the former's.
void check_apart(int argument, const char* name, const linalg::MatrixView& written,
                 const char* other_name, const linalg::MatrixView& other) {
  if (linalg::overlap(written, other))
    refuse(argument, std::string(name) + " overlaps " + other_name);
}

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::float32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::float64;
}
template <>
constexpr DType dtype_of<std::complex<float>>() {
  return DType::complex64;
}
template <>
constexpr DType dtype_of<std::complex<double>>() {
  return DType::complex128;
}

/// Where a matrix lies; on a device it is complete once this returns.
quadriga::DeviceId device_of(const Engine& engine, int argument, const void* data) try {
  const quadriga::DeviceId device = engine.device_of(data);
  if (device != quadriga::no_device) engine.synchronize(device);
  return device;
} catch (const Error& error) {
  if (error.code() == Errc::invalid_argument) refuse(argument, error.what());
  throw;
}

/// The matrix that the arguments at `argument` and behind it stand for: its address and ld.
template <class T>
linalg::MatrixView matrix(const Engine& engine, int argument, const char* name, const void* data,
                          std::int64_t rows, std::int64_t cols, std::int64_t ld) {
  if (ld < std::max<std::int64_t>(1, rows))
    refuse(argument + 1, std::string("the leading dimension of ") + name + " is " +
                             std::to_string(ld) + "; expected at least " +
                             std::to_string(std::max<std::int64_t>(1, rows)));
  if (!data && rows > 0 && cols > 0) refuse(argument, std::string(name) + " is NULL");
  constexpr std::int64_t most = INT64_MAX / static_cast<std::int64_t>(sizeof(T));
  if (cols > 0 && ld > most / cols)
    refuse(argument + 1, std::string("the leading dimension of ") + name + " is " +
                             std::to_string(ld) + ", which makes it larger than any memory");
  // Inputs are only read.
  auto view = linalg::MatrixView::columns(const_cast<void*>(data), rows, cols, dtype_of<T>(), ld);
  if (rows > 0 && cols > 0) view.device = device_of(engine, argument, data);
  return view;
}

template <class T>
linalg::Coefficient scalar(int argument, const char* name, const void* given) {
  if (!given) refuse(argument, std::string(name) + " is NULL");
  const T value = *static_cast<const T*>(given);
  return {static_cast<double>(std::real(value)), static_cast<double>(std::imag(value))};
}

template <class T>
void gemm(quadriga_engine* handle, char transa, char transb, std::int64_t m, std::int64_t n,
          std::int64_t k, const void* alpha, const void* a, std::int64_t lda, const void* b,
          std::int64_t ldb, const void* beta, void* c, std::int64_t ldc) {
  Engine& engine = opened(handle);
  const linalg::Op op_a = op_of(2, transa);
  const linalg::Op op_b = op_of(3, transb);
  check_size(4, "m", m);
  check_size(5, "n", n);
  check_size(6, "k", k);
  const linalg::Coefficient alpha_value = scalar<T>(7, "alpha", alpha);
  const bool as_is_a = op_a == linalg::Op::none;
  const bool as_is_b = op_b == linalg::Op::none;
  const auto a_view = matrix<T>(engine, 8, "A", a, as_is_a ? m : k, as_is_a ? k : m, lda);
  const auto b_view = matrix<T>(engine, 10, "B", b, as_is_b ? k : n, as_is_b ? n : k, ldb);
  const linalg::Coefficient beta_value = scalar<T>(12, "beta", beta);
  const auto c_view = matrix<T>(engine, 13, "C", c, m, n, ldc);
  check_apart(13, "C", c_view, "A", a_view);
  check_apart(13, "C", c_view, "B", b_view);
  linalg::matmul(engine, alpha_value, a_view, op_a, b_view, op_b, beta_value, c_view);
}

/// What syrk and herk share; `update` computes it.
template <class T, class Update>
void rank_update(const Engine& engine, char trans, const std::string& known, std::int64_t n,
                 std::int64_t k, const void* a, std::int64_t lda, void* c, std::int64_t ldc,
                 Update&& update) {
  linalg::Op op = op_of(3, trans, known);
  if (!is_complex<T> && op == linalg::Op::conjugate) op = linalg::Op::transpose;
  check_size(4, "n", n);
  check_size(5, "k", k);
  const bool as_is = op == linalg::Op::none;
  const auto a_view = matrix<T>(engine, 7, "A", a, as_is ? n : k, as_is ? k : n, lda);
  const auto c_view = matrix<T>(engine, 10, "C", c, n, n, ldc);
  check_apart(10, "C", c_view, "A", a_view);
  update(a_view, op, c_view);
}

template <class T>
void syrk(quadriga_engine* handle, char uplo, char trans, std::int64_t n, std::int64_t k,
          const void* alpha, const void* a, std::int64_t lda, const void* beta, void* c,
          std::int64_t ldc) {
  Engine& engine = opened(handle);
  const linalg::Uplo part = uplo_of(2, uplo);
  rank_update<T>(engine, trans, is_complex<T> ? "NT" : "NTC", n, k, a, lda, c, ldc,
                 [&](const auto& a_view, linalg::Op op, const auto& c_view) {
                   linalg::syrk(engine, scalar<T>(6, "alpha", alpha), a_view, op,
                                scalar<T>(9, "beta", beta), c_view, part);
                 });
}

template <class T>
void herk(quadriga_engine* handle, char uplo, char trans, std::int64_t n, std::int64_t k,
          double alpha, const void* a, std::int64_t lda, double beta, void* c, std::int64_t ldc) {
  Engine& engine = opened(handle);
  const linalg::Uplo part = uplo_of(2, uplo);
  rank_update<T>(engine, trans, "NC", n, k, a, lda, c, ldc,
                 [&](const auto& a_view, linalg::Op op, const auto& c_view) {
                   linalg::herk(engine, alpha, a_view, op, beta, c_view, part);
                 });
}

template <class T>
void potrf(quadriga_engine* handle, char uplo, std::int64_t n, void* a, std::int64_t lda) {
  Engine& engine = opened(handle);
  const linalg::Uplo part = uplo_of(2, uplo);
  check_size(3, "n", n);
  const auto view = matrix<T>(engine, 4, "A", a, n, n, lda);
  linalg::cholesky(engine, view, view, part, linalg::Other::leave);
}

template <class T, class Solve>
void solve(quadriga_engine* handle, char uplo, std::int64_t n, std::int64_t nrhs, const void* a,
           std::int64_t lda, void* b, std::int64_t ldb, Solve&& solve_with) {
  Engine& engine = opened(handle);
  const linalg::Uplo part = uplo_of(2, uplo);
  check_size(3, "n", n);
  check_size(4, "nrhs", nrhs);
  const auto a_view = matrix<T>(engine, 5, "A", a, n, n, lda);
  const auto b_view = matrix<T>(engine, 7, "B", b, n, nrhs, ldb);
  check_apart(7, "B", b_view, "A", a_view);
  solve_with(engine, part, a_view, b_view);
}

template <class T>
void potrs(quadriga_engine* handle, char uplo, std::int64_t n, std::int64_t nrhs, const void* a,
           std::int64_t lda, void* b, std::int64_t ldb) {
  solve<T>(handle, uplo, n, nrhs, a, lda, b, ldb,
           [](Engine& engine, linalg::Uplo part, const auto& a_view, const auto& b_view) {
             linalg::factor_from(engine, a_view, part).solve(b_view);
           });
}

template <class T>
void posv(quadriga_engine* handle, char uplo, std::int64_t n, std::int64_t nrhs, void* a,
          std::int64_t lda, void* b, std::int64_t ldb) {
  solve<T>(handle, uplo, n, nrhs, a, lda, b, ldb,
           [](Engine& engine, linalg::Uplo part, const auto& a_view, const auto& b_view) {
             const linalg::Factor factor = linalg::cho_factor(engine, a_view, {part, true, true});
             factor.solve(b_view);
             factor.bring_home();
           });
}

template <class T>
void trtrs(quadriga_engine* handle, char uplo, char trans, char diag, std::int64_t n,
           std::int64_t nrhs, const void* a, std::int64_t lda, void* b, std::int64_t ldb) {
  Engine& engine = opened(handle);
  const linalg::Uplo part = uplo_of(2, uplo);
  const linalg::Op op = op_of(3, trans);
  const bool is_unit = letter(4, "diag", diag, "NU") == 'U';
  check_size(5, "n", n);
  check_size(6, "nrhs", nrhs);
  const auto a_view = matrix<T>(engine, 7, "A", a, n, n, lda);
  const auto b_view = matrix<T>(engine, 9, "B", b, n, nrhs, ldb);
  check_apart(9, "B", b_view, "A", a_view);
  linalg::solve_triangular(engine, a_view, part, op, is_unit, b_view);
}

}  // namespace

extern "C" {

#define QUADRIGA_DEFINE(x, T, Value)                                                               \
  int64_t quadriga_##x##gemm(quadriga_engine* engine, char transa, char transb, int64_t m,         \
                             int64_t n, int64_t k, const T* alpha, const T* a, int64_t lda,        \
                             const T* b, int64_t ldb, const T* beta, T* c, int64_t ldc) {          \
    return guarded([&] {                                                                           \
      gemm<Value>(engine, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);           \
    });                                                                                            \
  }                                                                                                \
  int64_t quadriga_##x##syrk(quadriga_engine* engine, char uplo, char trans, int64_t n, int64_t k, \
                             const T* alpha, const T* a, int64_t lda, const T* beta, T* c,         \
                             int64_t ldc) {                                                        \
    return guarded([&] { syrk<Value>(engine, uplo, trans, n, k, alpha, a, lda, beta, c, ldc); });  \
  }                                                                                                \
  int64_t quadriga_##x##potrf(quadriga_engine* engine, char uplo, int64_t n, T* a, int64_t lda) {  \
    return guarded([&] { potrf<Value>(engine, uplo, n, a, lda); });                                \
  }                                                                                                \
  int64_t quadriga_##x##potrs(quadriga_engine* engine, char uplo, int64_t n, int64_t nrhs,         \
                              const T* a, int64_t lda, T* b, int64_t ldb) {                        \
    return guarded([&] { potrs<Value>(engine, uplo, n, nrhs, a, lda, b, ldb); });                  \
  }                                                                                                \
  int64_t quadriga_##x##posv(quadriga_engine* engine, char uplo, int64_t n, int64_t nrhs, T* a,    \
                             int64_t lda, T* b, int64_t ldb) {                                     \
    return guarded([&] { posv<Value>(engine, uplo, n, nrhs, a, lda, b, ldb); });                   \
  }                                                                                                \
  int64_t quadriga_##x##trtrs(quadriga_engine* engine, char uplo, char trans, char diag,           \
                              int64_t n, int64_t nrhs, const T* a, int64_t lda, T* b,              \
                              int64_t ldb) {                                                       \
    return guarded([&] { trtrs<Value>(engine, uplo, trans, diag, n, nrhs, a, lda, b, ldb); });     \
  }

QUADRIGA_DEFINE(s, float, float)
QUADRIGA_DEFINE(d, double, double)
QUADRIGA_DEFINE(c, QUADRIGA_COMPLEX_FLOAT, std::complex<float>)
QUADRIGA_DEFINE(z, QUADRIGA_COMPLEX_DOUBLE, std::complex<double>)

int64_t quadriga_cherk(quadriga_engine* engine, char uplo, char trans, int64_t n, int64_t k,
                       float alpha, const void* a, int64_t lda, float beta, void* c, int64_t ldc) {
  return guarded(
      [&] { herk<std::complex<float>>(engine, uplo, trans, n, k, alpha, a, lda, beta, c, ldc); });
}

int64_t quadriga_zherk(quadriga_engine* engine, char uplo, char trans, int64_t n, int64_t k,
                       double alpha, const void* a, int64_t lda, double beta, void* c,
                       int64_t ldc) {
  return guarded(
      [&] { herk<std::complex<double>>(engine, uplo, trans, n, k, alpha, a, lda, beta, c, ldc); });
}

}  // extern "C"
