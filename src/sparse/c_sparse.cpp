// SPDX-License-Identifier: BSD-3-Clause
// src/sparse/c_sparse.cpp: sparse_c.h; arguments are checked, results are numbers.
#include <quadriga/sparse.h>
#include <quadriga/sparse_c.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/c_message.h"
#include "engine/c_engine.h"
#include "sparse/formats.h"
#include "sparse/method.h"

using quadriga::c_guarded;
using quadriga::Errc;
using quadriga::Error;
using quadriga::refuse;
namespace sparse = quadriga::sparse;

struct quadriga_sparse {
  sparse::Solver solver;
  sparse::CsrView matrix;  ///< Its sizes.
  std::string reason;      ///< Why it has its method.
};

namespace {

constexpr std::array<std::pair<std::string_view, sparse::Precondition>, 6> preconditions{{
    {"", sparse::Precondition::none},
    {"none", sparse::Precondition::none},
    {"jacobi", sparse::Precondition::jacobi},
    {"block_jacobi", sparse::Precondition::block_jacobi},
    {"chebyshev", sparse::Precondition::chebyshev},
    {"aggregation", sparse::Precondition::aggregation},
}};

sparse::Precondition precondition_of(int argument, const char* given) {
  const std::string_view name = given ? given : "";
  for (const auto& [known, value] : preconditions)
    if (known == name) return value;
  refuse(argument, "precondition is '" + std::string(name) +
                       "'; expected none, jacobi, block_jacobi, chebyshev or aggregation");
}

sparse::CgMethod method_of(int argument, const char* given) {
  using enum sparse::CgMethod;
  const std::string_view name = given ? given : "";
  if (name.empty()) return automatic;
  for (const sparse::CgMethod each : {automatic, classic, single_reduction, pipelined})
    if (sparse::name(each) == name) return each;
  refuse(argument, "method is '" + std::string(name) +
                       "'; expected automatic, classic, single_reduction or pipelined");
}

/// The caller's arrays; `first` is the argument of the offsets.
sparse::CsrView with_arrays(int first, sparse::CsrView a, const void* offsets, const void* columns,
                            const void* values) {
  if (!offsets && a.rows > 0) refuse(first, "the offsets are NULL");
  a.offsets = offsets;
  a.columns = columns;
  a.values = values;
  if (a.rows > 0)
    a.elements = a.index_bytes == 4 ? static_cast<const std::int32_t*>(offsets)[a.rows]
                                    : static_cast<const std::int64_t*>(offsets)[a.rows];
  if (a.elements > 0 && !columns) refuse(first + 1, "the columns are NULL");
  if (a.elements > 0 && !values) refuse(first + 2, "the values are NULL");
  return a;
}

const sparse::Solver& solver_of(const quadriga_sparse* solver) {
  if (!solver) refuse(1, "the solver is NULL; expected one that quadriga_sparse_open made");
  return solver->solver;
}

void check_vectors(const sparse::Solver& solver, std::int64_t k, const void* in, const void* out) {
  if (k < 1) refuse(2, std::to_string(k) + " vectors; expected 1 or more");
  if (!in && solver.rows() > 0) refuse(3, "the vectors are NULL");
  if (!out && solver.rows() > 0) refuse(4, "the vectors for the result are NULL");
}

/// What the library refuses after these checks is the matrix.
template <class Work>
void blame(int argument, Work work) {
  try {
    work();
  } catch (const Error& error) {
    if (error.code() == Errc::invalid_argument) refuse(argument, error.what());
    throw;
  }
}

bool is_breakdown(sparse::StopReason reason) noexcept {
  return reason != sparse::StopReason::converged && reason != sparse::StopReason::iterations &&
         reason != sparse::StopReason::stagnated;
}

std::int64_t tell(const sparse::SolveResult& found, quadriga_sparse_result* result) {
  const std::string_view reason = sparse::name(found.reason);  // Of a literal: it ends with 0.
  double residual = 0;
  for (const double each : found.true_residuals) residual = std::max(residual, each);
  if (result) *result = {reason.data(), found.iterations, residual, found.seconds};
  if (found.reason == sparse::StopReason::converged) return 0;
  return quadriga::c_failed(
      is_breakdown(found.reason) ? std::int64_t{QUADRIGA_BREAKDOWN}
                                 : std::max<std::int64_t>(1, found.iterations),
      std::string(reason) + " after " + std::to_string(found.iterations) + " iterations");
}

}  // namespace

extern "C" {

int64_t quadriga_sparse_open(quadriga_engine* engine, char type, int64_t n, int index_bytes,
                             const void* offsets, const void* columns, const void* values,
                             const char* precondition, quadriga_sparse** solver) {
  if (!solver)
    return c_guarded([&]() -> std::int64_t { refuse(9, "the address for the solver is NULL"); });
  return quadriga_sparse_open_method(engine, type, n, index_bytes, offsets, columns, values,
                                     precondition, nullptr, solver);
}

int64_t quadriga_sparse_open_method(quadriga_engine* engine, char type, int64_t n, int index_bytes,
                                    const void* offsets, const void* columns, const void* values,
                                    const char* precondition, const char* method,
                                    quadriga_sparse** solver) {
  return c_guarded([&]() -> std::int64_t {
    if (!solver) refuse(10, "the address for the solver is NULL");
    *solver = nullptr;
    quadriga::Engine& on = quadriga::opened(engine);
    sparse::CsrView a;
    a.dtype = quadriga::dtype_of(2, type, "sdcz");
    if (n < 0) refuse(3, "n is " + std::to_string(n) + "; expected 0 or more");
    if (index_bytes != 4 && index_bytes != 8)
      refuse(4, "indices of " + std::to_string(index_bytes) + " bytes; expected 4 or 8");
    a.rows = a.cols = n;
    a.index_bytes = index_bytes;
    a = with_arrays(5, a, offsets, columns, values);
    sparse::SolverOptions options;
    options.precondition = precondition_of(8, precondition);
    options.method = method_of(9, method);
    blame(9,
          [&] { sparse::check_method(options.method, sparse::has_steps(options.precondition)); });
    blame(7, [&] {
      const sparse::Solver made(on, a, options);
      *solver = new quadriga_sparse{made, a, made.plan().method_reason};
    });
    return 0;
  });
}

const char* quadriga_sparse_method(const quadriga_sparse* solver) {
  // Of a literal: it ends with 0.
  return solver ? sparse::name(solver->solver.plan().method).data() : nullptr;
}

const char* quadriga_sparse_method_reason(const quadriga_sparse* solver) {
  return solver ? solver->reason.c_str() : nullptr;
}

void quadriga_sparse_close(quadriga_sparse* solver) { delete solver; }

int64_t quadriga_sparse_update(quadriga_sparse* solver, const void* offsets, const void* columns,
                               const void* values) {
  return c_guarded([&]() -> std::int64_t {
    const sparse::Solver& of = solver_of(solver);
    const sparse::CsrView a = with_arrays(2, solver->matrix, offsets, columns, values);
    blame(4, [&] { of.update(a); });
    return 0;
  });
}

int64_t quadriga_sparse_multiply(quadriga_sparse* solver, int64_t k, const void* x, void* y) {
  return c_guarded([&]() -> std::int64_t {
    const sparse::Solver& of = solver_of(solver);
    check_vectors(of, k, x, y);
    blame(4, [&] { of.multiply(x, y, k); });
    return 0;
  });
}

int64_t quadriga_sparse_cg(quadriga_sparse* solver, int64_t k, const void* b, void* x, double rtol,
                           double atol, int64_t iterations, quadriga_sparse_result* result) {
  return c_guarded([&]() -> std::int64_t {
    const sparse::Solver& of = solver_of(solver);
    check_vectors(of, k, b, x);
    if (!(rtol >= 0)) refuse(5, "rtol is " + std::to_string(rtol) + "; expected 0 or more");
    if (!(atol >= 0)) refuse(6, "atol is " + std::to_string(atol) + "; expected 0 or more");
    sparse::SolveOptions options;
    options.rtol = rtol;
    options.atol = atol;
    options.iterations = iterations;
    sparse::SolveResult found;
    blame(4, [&] { found = of.cg(b, x, k, options); });
    return tell(found, result);
  });
}

}  // extern "C"
