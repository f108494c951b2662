/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/quadriga.h: dense linear algebra on all devices, for C and Fortran.
 *
 * Names, arguments and results are those of BLAS and LAPACK, with an engine as first argument and
 * 64-bit sizes. Matrices are column-major in the caller's memory; element (i, j) of A is
 * a[i + j*lda]. Calls return when the result is complete; matrices may exceed any device's memory.
 * Each may also lie in the memory of a GPU of the engine, where it is used in place once all work
 * queued on that GPU has ended. Scalars are on the host.
 *
 * Letters, in either case: uplo 'L' or 'U'; trans 'N', 'T' or 'C' (conjugate transpose; for real
 * types as 'T'); diag 'N' or 'U' (unit diagonal, not read).
 *
 * Every function returns what LAPACK calls info:
 *    0    done
 *   -i    the i-th argument is wrong, the engine being the first; nothing was written
 *    i    potrf, posv: the leading minor of order i is not positive definite; trtrs: the i-th
 *         diagonal element is zero
 * or a value of enum quadriga_failure (c_errors.h) for other failures. quadriga_message() describes
 * the failure in words.
 *
 * Several threads may use an engine at once, except in quadriga_close.
 */
#ifndef QUADRIGA_QUADRIGA_H
#define QUADRIGA_QUADRIGA_H

#include <quadriga/engine_c.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define QUADRIGA_COMPLEX_FLOAT void
#define QUADRIGA_COMPLEX_DOUBLE void
#else
#include <complex.h>
#define QUADRIGA_COMPLEX_FLOAT float complex
#define QUADRIGA_COMPLEX_DOUBLE double complex
#endif

struct quadriga_engine; /* engine_c.h */

/* QUADRIGA_ROUTINES(x, T) declares the routines of one type, where x is the letter of its BLAS.
 *
 * gemm   C = alpha*op(A)*op(B) + beta*C, where C is m x n and k is the inner size
 * syrk   the triangle uplo of C = alpha*A*A^T + beta*C ('N', A being n x k) or A^T*A ('T', k x n)
 * potrf  the triangle uplo of A becomes its Cholesky factor; the other one isn't accessed
 * potrs  B = A^-1*B by the factor that potrf left in A; B is n x nrhs
 * posv   potrf, then potrs
 * trtrs  B = op(A)^-1*B with the triangle uplo of A
 *
 * A matrix that is written must not overlap any other.
 * If potrf or posv returns info > 0, the triangle's content is unspecified and B is unchanged. */
#define QUADRIGA_ROUTINES(x, T)                                                                    \
  int64_t quadriga_##x##gemm(quadriga_engine* engine, char transa, char transb, int64_t m,         \
                             int64_t n, int64_t k, const T* alpha, const T* a, int64_t lda,        \
                             const T* b, int64_t ldb, const T* beta, T* c, int64_t ldc);           \
  int64_t quadriga_##x##syrk(quadriga_engine* engine, char uplo, char trans, int64_t n, int64_t k, \
                             const T* alpha, const T* a, int64_t lda, const T* beta, T* c,         \
                             int64_t ldc);                                                         \
  int64_t quadriga_##x##potrf(quadriga_engine* engine, char uplo, int64_t n, T* a, int64_t lda);   \
  int64_t quadriga_##x##potrs(quadriga_engine* engine, char uplo, int64_t n, int64_t nrhs,         \
                              const T* a, int64_t lda, T* b, int64_t ldb);                         \
  int64_t quadriga_##x##posv(quadriga_engine* engine, char uplo, int64_t n, int64_t nrhs, T* a,    \
                             int64_t lda, T* b, int64_t ldb);                                      \
  int64_t quadriga_##x##trtrs(quadriga_engine* engine, char uplo, char trans, char diag,           \
                              int64_t n, int64_t nrhs, const T* a, int64_t lda, T* b,              \
                              int64_t ldb);

QUADRIGA_ROUTINES(s, float)
QUADRIGA_ROUTINES(d, double)
QUADRIGA_ROUTINES(c, QUADRIGA_COMPLEX_FLOAT)
QUADRIGA_ROUTINES(z, QUADRIGA_COMPLEX_DOUBLE)

/* The triangle uplo of C = alpha*A*A^H + beta*C ('N', A being n x k) or A^H*A ('C', k x n). */
int64_t quadriga_cherk(quadriga_engine* engine, char uplo, char trans, int64_t n, int64_t k,
                       float alpha, const QUADRIGA_COMPLEX_FLOAT* a, int64_t lda, float beta,
                       QUADRIGA_COMPLEX_FLOAT* c, int64_t ldc);
int64_t quadriga_zherk(quadriga_engine* engine, char uplo, char trans, int64_t n, int64_t k,
                       double alpha, const QUADRIGA_COMPLEX_DOUBLE* a, int64_t lda, double beta,
                       QUADRIGA_COMPLEX_DOUBLE* c, int64_t ldc);

#ifdef __cplusplus
}
#endif

#endif
