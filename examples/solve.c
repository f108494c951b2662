/* SPDX-License-Identifier: BSD-3-Clause
 * examples/solve.c: a system of equations from C, on two devices that hold a tenth of its matrix.
 * Build: cc solve.c $(pkg-config --cflags --libs quadriga)
 */
#include <math.h>
#include <quadriga/quadriga.h>
#include <stdio.h>
#include <stdlib.h>

enum { order = 2000 };

/* A discretized Laplace operator with a heavy diagonal: element (i, j). */
static double element(int64_t i, int64_t j) {
  return i == j ? 4.0 : 1.0 / (1.0 + (double)((i - j) * (i - j)));
}

int main(void) {
  quadriga_engine* engine = NULL;
  double* a = malloc(sizeof(double) * order * order);
  double* b = malloc(sizeof(double) * order);
  if (!a || !b || quadriga_open("emulated:2,memory=2MiB", &engine) != 0) {
    fprintf(stderr, "can't begin: %s\n", quadriga_message());
    return 1;
  }
  for (int64_t j = 0; j < order; ++j)
    for (int64_t i = 0; i < order; ++i) a[i + j * order] = element(i, j);
  for (int64_t i = 0; i < order; ++i) b[i] = 1.0;

  /* The triangle becomes Cholesky's factor, b the solution. */
  int64_t info = quadriga_dposv(engine, 'L', order, 1, a, order, b, order);
  if (info != 0) fprintf(stderr, "info %lld: %s\n", (long long)info, quadriga_message());

  double worst = 0;
  for (int64_t i = 0; i < order && info == 0; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < order; ++j) sum += element(i, j) * b[j];
    worst = fmax(worst, fabs(sum - 1.0));
  }
  printf("residual %.1e\n", worst);
  quadriga_close(engine);
  free(a);
  free(b);
  return info == 0 && worst < 1e-12 ? 0 : 1;
}
