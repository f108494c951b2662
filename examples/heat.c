/* SPDX-License-Identifier: BSD-3-Clause
 * examples/heat.c: heat in a rod from C. Its pieces are tasks on two devices, ordered by what they read.
 * Build: cc heat.c $(pkg-config --cflags --libs quadriga) -lm
 */
#include <math.h>
#include <quadriga/quadriga.h>
#include <quadriga/task_c.h>
#include <stdio.h>
#include <stdlib.h>

enum { pieces = 8, points = 1000, steps = 200 };

static void check(int64_t info) {
  if (info != 0) fprintf(stderr, "info %lld: %s\n", (long long)info, quadriga_message()), exit(1);
}

/* Of one piece, from it and its neighbours; adds the change to a sum. */
static int step(const quadriga_arguments* given) {
  const quadriga_view* views = given->views;
  const double *left = views[0].data, *here = views[1].data, *right = views[2].data;
  double *next = views[3].data, *change = views[4].data;
  for (int i = 0; i < points; ++i) {
    const double before = i > 0 ? here[i - 1] : left[points - 1];
    next[i] = here[i] + 0.25 * (before - 2 * here[i] + (i + 1 < points ? here[i + 1] : right[0]));
    *change += fabs(next[i] - here[i]);
  }
  return 0;
}

static int zero(const quadriga_arguments* given) {
  *(double*)given->views[0].data = 0;
  return 0;
}

static int add(const quadriga_arguments* given) {
  *(double*)given->views[0].data += *(const double*)given->views[1].data;
  return 0;
}

int main(void) {
  static double rod[2][pieces][points]; /* Now and next. */
  double change = 0, heat = 0;
  rod[0][pieces / 2][0] = 1000;

  quadriga_engine* engine;
  check(quadriga_open("emulated:2", &engine));
  const int modes[] = {QUADRIGA_READ, QUADRIGA_READ, QUADRIGA_READ, QUADRIGA_WRITE, QUADRIGA_REDUCE};
  const int of_zero[] = {QUADRIGA_WRITE}, of_add[] = {QUADRIGA_UPDATE, QUADRIGA_READ};
  quadriga_codelet *stepping, *zeroing, *adding;
  check(quadriga_codelet_create("step", 5, modes, step, NULL, NULL, 0, &stepping));
  check(quadriga_codelet_create("zero", 1, of_zero, zero, NULL, NULL, 0, &zeroing));
  check(quadriga_codelet_create("add", 2, of_add, add, NULL, NULL, 0, &adding));
  check(quadriga_codelet_reduce(stepping, zeroing, adding));

  quadriga_data *piece[2][pieces], *sum;
  for (int i = 0; i < 2 * pieces; ++i)
    check(quadriga_data_register(engine, rod[i / pieces][i % pieces], points, 1, points, 'd',
                                 &piece[i / pieces][i % pieces]));
  check(quadriga_data_register(engine, &change, 1, 1, 1, 'd', &sum));

  /* The ends are joined: the rod is a ring. Nothing here waits; who reads what orders the tasks. */
  for (int k = 0; k < steps; ++k)
    for (int p = 0; p < pieces; ++p) {
      quadriga_data** now = piece[k % 2];
      quadriga_data* operands[] = {now[(p + pieces - 1) % pieces], now[p], now[(p + 1) % pieces],
                                   piece[(k + 1) % 2][p], sum};
      check(quadriga_submit(engine, stepping, 5, operands, NULL, 0, NULL, NULL));
    }
  check(quadriga_wait_all(engine, -1));
  for (int i = 0; i < pieces * points; ++i) heat += rod[steps % 2][i / points][i % points];
  printf("%d steps: heat %.6f, moved %.3f in all\n", steps, heat, change);
  for (int i = 0; i < 2 * pieces; ++i) check(quadriga_data_remove(piece[i / pieces][i % pieces]));
  check(quadriga_data_remove(sum));
  quadriga_close(engine);
  quadriga_codelet_free(stepping);
  quadriga_codelet_free(zeroing);
  quadriga_codelet_free(adding);
  return fabs(heat - 1000) < 1e-6 && change > 0 ? 0 : 1;
}
