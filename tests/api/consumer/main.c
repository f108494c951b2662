/* SPDX-License-Identifier: BSD-3-Clause
 * tests/api/consumer/main.c: a user's program in C on the installed header and archive. */
#include <quadriga/message_c.h>
#include <quadriga/quadriga.h>
#include <quadriga/task_graph_c.h>
#include <stdio.h>
#include <string.h>

/* A message of the only rank to itself. */
static int message_arrives(void) {
  quadriga_communicator* comm = NULL;
  const quadriga_layout* number = quadriga_element(QUADRIGA_INT32);
  const int32_t sent[] = {3, 4};
  int32_t got[] = {0, 0};
  quadriga_status status;
  const int arrived = quadriga_world(60, &comm) == 0 && quadriga_size(comm) == 1 &&
                      quadriga_send(comm, sent, 2, number, 0, 1) == 0 &&
                      quadriga_recv(comm, got, 2, number, 0, QUADRIGA_ANY_TAG, &status) == 0;
  quadriga_leave(comm);
  return arrived && got[1] == 4 && status.tag == 1 && status.bytes == 8;
}

static int twice(const quadriga_arguments* given) {
  *(double*)given->views[0].data *= 2;
  return 0;
}

static int twice_at(const int64_t* indices, int64_t count, void* context, quadriga_data** data,
                    void* params, quadriga_submit_options* options) {
  (void)params;
  data[0] = context;
  options->priority = indices[0] + count;
  return 0;
}

/* A graph of five steps. */
static int graph_runs(quadriga_engine* engine) {
  double value = 1;
  int64_t submitted = 0;
  const int modes[] = {QUADRIGA_UPDATE};
  quadriga_data* data = NULL;
  quadriga_codelet* codelet = NULL;
  quadriga_task_graph* graph = NULL;
  const int ran =
      quadriga_data_register(engine, &value, 1, 1, 1, 'd', &data) == 0 &&
      quadriga_codelet_create("twice", 1, modes, twice, NULL, NULL, 0, &codelet) == 0 &&
      quadriga_task_graph_create(5, &graph) == 0 &&
      quadriga_task_graph_add(graph, codelet, 0, NULL, twice_at, 0, data) == 0 &&
      quadriga_task_graph_submit(engine, graph, NULL, NULL, &submitted) == 0 &&
      quadriga_wait_all(engine, 60) == 0;
  quadriga_task_graph_free(graph);
  quadriga_data_remove(data);
  quadriga_codelet_free(codelet);
  return ran && submitted == 5 && value == 32;
}

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
  const int has_run = graph_runs(engine);
  quadriga_close(engine);
  return is_right && is_refused && has_run && message_arrives() ? 0 : 1;
}
