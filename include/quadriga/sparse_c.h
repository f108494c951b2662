/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/sparse_c.h: sparse systems on all devices, for C.
 *
 * Matrices are in compressed sparse row format, n x n: row i has the elements offsets[i] to
 * offsets[i + 1] of `columns` and `values`, counted from 0, in any order; duplicates are summed.
 * Indices are signed integers of 4 or 8 bytes. Types are 's' (float), 'd' (double), 'c' and 'z'
 * (complex). k vectors are stored row by row: element i of vector j at i*k + j.
 *
 * Functions return 0, -i if the i-th argument is wrong, or a value of enum quadriga_failure;
 * quadriga_message() describes the failure. One thread at a time may use a solver.
 */
#ifndef QUADRIGA_SPARSE_C_H
#define QUADRIGA_SPARSE_C_H

#include <quadriga/engine_c.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quadriga_engine; /* engine_c.h */
typedef struct quadriga_sparse quadriga_sparse;

/* How a solve ended. */
typedef struct quadriga_sparse_result {
  const char* reason; /* "converged", or why not: see docs/sparse.md. Lives forever. */
  int64_t iterations; /* Of several vectors, the most. */
  double residual;    /* Of several vectors the largest ||b - A*x||, recomputed from x. */
  double seconds;
} quadriga_sparse_result;

/* Keeps a hermitian positive definite matrix and its preconditioner on the devices. The arrays may
 * go afterwards; the engine must outlive the solver. `precondition` is NULL or "" (none), "jacobi",
 * "block_jacobi", "chebyshev" or "aggregation". *solver is NULL on failure. */
int64_t quadriga_sparse_open(quadriga_engine* engine, char type, int64_t n, int index_bytes,
                             const void* offsets, const void* columns, const void* values,
                             const char* precondition, quadriga_sparse** solver);
/* The same with a method: NULL or "" (by the machine's description), "classic", "single_reduction"
 * or "pipelined". The latter two need no, a "jacobi" or a "block_jacobi" preconditioner. */
int64_t quadriga_sparse_open_method(quadriga_engine* engine, char type, int64_t n, int index_bytes,
                                    const void* offsets, const void* columns, const void* values,
                                    const char* precondition, const char* method,
                                    quadriga_sparse** solver);
/* The method of a solver, and why that one; NULL for a NULL solver. Lives as long as the solver. */
const char* quadriga_sparse_method(const quadriga_sparse* solver);
const char* quadriga_sparse_method_reason(const quadriga_sparse* solver);
/* NULL is allowed. */
void quadriga_sparse_close(quadriga_sparse* solver);
/* Takes new values of elements at the same positions. */
int64_t quadriga_sparse_update(quadriga_sparse* solver, const void* offsets, const void* columns,
                               const void* values);
/* y = A*x, of k vectors. */
int64_t quadriga_sparse_multiply(quadriga_sparse* solver, int64_t k, const void* x, void* y);
/* Conjugate gradients for A*x = b from the given x, until ||b - A*x|| <= max(rtol*||b||, atol) for
 * each of k vectors, or for at most so many iterations; negative: ten times n. Returns 0 only if
 * that holds for the residual recomputed from x; the number of iterations, at least 1, if it
 * doesn't; QUADRIGA_BREAKDOWN if A or M isn't positive definite or a number isn't finite. x is the
 * last iterate. `result` may be NULL. */
int64_t quadriga_sparse_cg(quadriga_sparse* solver, int64_t k, const void* b, void* x, double rtol,
                           double atol, int64_t iterations, quadriga_sparse_result* result);

#ifdef __cplusplus
}
#endif

#endif
