/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/quadriga.h: dense linear algebra on all devices, for C and Fortran.
 *
 * Names, arguments and results are those of BLAS and LAPACK, with an engine in front and 64-bit
 * sizes. Matrices lie in the caller's memory by columns; element (i, j) of A is a[i + j*lda].
 * Calls return when the result is there; matrices may be larger than any device's memory. Each may
 * also lie in the memory of a GPU of the engine, where it is used in place, once all that was
 * queued on that GPU has ended. Scalars are on the host.
 *
 * Letters, large or small: uplo 'L' or 'U'; trans 'N', 'T' or 'C' (conjugated, for real types 'T');
 * diag 'N' or 'U' (ones that aren't read).
 *
 * Every function returns what LAPACK calls info:
 *    0    done
 *   -i    the i-th argument is wrong, the engine being the first; nothing was written
 *    i    potrf, posv: the leading minor of order i is not positive definite; trtrs: the i-th
 *         diagonal element is zero
 * and one of enum quadriga_failure for what can go wrong beside. quadriga_message() says it in
 * words.
 *
 * An engine may be used by several threads at once, but for quadriga_close.
 */
#ifndef QUADRIGA_QUADRIGA_H
#define QUADRIGA_QUADRIGA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
typedef struct quadriga_engine quadriga_engine;
#define QUADRIGA_COMPLEX_FLOAT void
#define QUADRIGA_COMPLEX_DOUBLE void
#else
#include <complex.h>
typedef struct quadriga_engine quadriga_engine;
#define QUADRIGA_COMPLEX_FLOAT float complex
#define QUADRIGA_COMPLEX_DOUBLE double complex
#endif

enum quadriga_failure {
  QUADRIGA_TOO_LARGE = -1001,   /* It fits neither the devices nor the host. */
  QUADRIGA_TASK_FAILED = -1002, /* A kernel failed. */
  QUADRIGA_DEVICE_LOST = -1003,
  QUADRIGA_UNAVAILABLE = -1004, /* Not on this machine, or not in this build. */
  QUADRIGA_OTHER = -1005        /* What quadriga_message() says. */
};

/* Starts an engine on devices such as "cpu", "cuda" or "emulated:2,memory=64MiB"; NULL or "": as
 * configured by QUADRIGA_DEVICES or a file, else all of the machine. *engine is NULL on failure. */
int64_t quadriga_open(const char* devices, quadriga_engine** engine);
/* Ends it and frees what it holds. NULL is allowed. */
void quadriga_close(quadriga_engine* engine);
/* What went wrong in this thread's last call that failed; "" before one did. Valid until the next
 * call in this thread. */
const char* quadriga_message(void);

/* QUADRIGA_ROUTINES(x, T) declares the routines of one type, where x is the letter of its BLAS.
 *
 * gemm   C = alpha*op(A)*op(B) + beta*C, C being m x n and the sum k long
 * syrk   the triangle uplo of C = alpha*A*A^T + beta*C ('N', A being n x k) or A^T*A ('T', k x n)
 * potrf  the triangle uplo of A becomes its Cholesky factor; the other one isn't touched
 * potrs  B = A^-1*B by the factor that potrf left in A; B is n x nrhs
 * posv   potrf, then potrs
 * trtrs  B = op(A)^-1*B with the triangle uplo of A
 *
 * A matrix that is written overlaps no other one.
 * On info > 0 of potrf and posv the triangle's content is unspecified, and B is as it was. */
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
