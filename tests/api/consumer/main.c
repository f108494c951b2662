/* SPDX-License-Identifier: BSD-3-Clause
 * tests/api/consumer/main.c: a user's program in C on the installed header and archive. */
#include <quadriga/quadriga.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  quadriga_engine* engine = NULL;
  if (quadriga_open("emulated:1,memory=1MiB", &engine) != 0) {
    fprintf(stderr, "%s\n", quadriga_message());
    return 1;
  }
  /* 4 = 2*2, and 9 = 3*3; the triangle above isn't touched. */
  double a[] = {4, 0, -1, 9};
  const int64_t info = quadriga_dpotrf(engine, 'L', 2, a, 2);
  const int is_right = info == 0 && a[0] == 2 && a[1] == 0 && a[2] == -1 && a[3] == 3;
  double complex z[] = {-1.0};
  const int is_refused =
      quadriga_zpotrf(engine, 'L', 1, z, 1) == 1 && strlen(quadriga_message()) > 0;
  quadriga_close(engine);
  return is_right && is_refused ? 0 : 1;
}
