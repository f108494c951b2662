/* SPDX-License-Identifier: BSD-3-Clause
 * examples/jacobi_graph.c: Jacobi's method on a rod in C, as a graph of steps and pieces.
 * Build: cc jacobi_graph.c $(pkg-config --cflags --libs quadriga) -lm
 */
#include <math.h>
#include <quadriga/quadriga.h>
#include <quadriga/task_graph_c.h>
#include <stdio.h>
#include <stdlib.h>

enum { pieces = 6, points = 50, steps = 400 };

/* The pieces of two arrays in turn; the ends of the rod are kept at 0 and 1. */
typedef struct rod {
  double values[2][pieces * points];
  quadriga_data* data[2][pieces];
} rod;

static void check(int64_t info) {
  if (info != 0) fprintf(stderr, "info %lld: %s\n", (long long)info, quadriga_message()), exit(1);
}

static int relax(const quadriga_arguments* given) {
  const quadriga_view* views = given->views;
  const double *left = views[0].data, *here = views[1].data, *right = views[2].data;
  const int64_t piece = *(const int64_t*)given->params;
  double* next = views[3].data;
  for (int i = 0; i < points; ++i) {
    const double before = i > 0 ? here[i - 1] : piece > 0 ? left[points - 1] : 0;
    const double after = i + 1 < points ? here[i + 1] : piece + 1 < pieces ? right[0] : 1;
    next[i] = (before + after) / 2;
  }
  return 0;
}

/* The second index is the piece; there is none but that. */
static int every_piece(const int64_t* indices, int64_t known, void* context, int64_t* begin,
                       int64_t* end) {
  (void)indices, (void)known, (void)context;
  *begin = 0, *end = pieces;
  return 0;
}

static int relax_at(const int64_t* indices, int64_t count, void* context, quadriga_data** data,
                    void* params, quadriga_submit_options* options) {
  const int64_t step = indices[0], piece = indices[1];
  rod* of = context;
  (void)count, (void)options;
  data[0] = of->data[step % 2][piece > 0 ? piece - 1 : piece];
  data[1] = of->data[step % 2][piece];
  data[2] = of->data[step % 2][piece + 1 < pieces ? piece + 1 : piece];
  data[3] = of->data[(step + 1) % 2][piece];
  *(int64_t*)params = piece;
  return 0;
}

int main(void) {
  static rod of;
  const int modes[] = {QUADRIGA_READ, QUADRIGA_READ, QUADRIGA_READ, QUADRIGA_WRITE};
  quadriga_engine* engine;
  quadriga_codelet* relaxing;
  quadriga_task_graph* graph;
  int64_t submitted;
  check(quadriga_open("emulated:2", &engine));
  check(quadriga_codelet_create("relax", 4, modes, relax, NULL, NULL, 0, &relaxing));
  for (int i = 0; i < 2 * pieces; ++i)
    check(quadriga_data_register(engine, &of.values[i / pieces][i % pieces * points], points, 1,
                                 points, 'd', &of.data[i / pieces][i % pieces]));
  check(quadriga_task_graph_create(steps, &graph));
  check(quadriga_task_graph_add(graph, relaxing, 1, every_piece, relax_at, sizeof(int64_t), &of));
  check(quadriga_task_graph_submit(engine, graph, NULL, NULL, &submitted));
  check(quadriga_wait_all(engine, -1));
  quadriga_task_graph_free(graph);
  for (int i = 0; i < 2 * pieces; ++i)
    check(quadriga_data_remove(of.data[i / pieces][i % pieces]));
  quadriga_close(engine);
  quadriga_codelet_free(relaxing);

  /* The same by two loops. */
  static double plain[2][pieces * points];
  for (int step = 0; step < steps; ++step)
    for (int i = 0; i < pieces * points; ++i)
      plain[(step + 1) % 2][i] = ((i > 0 ? plain[step % 2][i - 1] : 0) +
                                  (i + 1 < pieces * points ? plain[step % 2][i + 1] : 1)) /
                                 2;
  double difference = 0;
  for (int i = 0; i < pieces * points; ++i)
    difference = fmax(difference, fabs(plain[steps % 2][i] - of.values[steps % 2][i]));
  printf("%lld tasks, difference %g\n", (long long)submitted, difference);
  return submitted == steps * pieces && difference == 0 ? 0 : 1;
}
