/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/task_graph_c.h: graphs that are given as functions of task indices, for C.
 *
 * Such a graph is never in memory as a whole: its tasks are made in the order of the steps, in a
 * step class by class as they were added, in a class by indices, the last one fastest. Tasks that
 * access the same data follow each other in this order, so there are no cycles. task_graph.h is the
 * same for C++. Functions return as those of task_c.h. Several threads may submit a graph at the
 * same time; meanwhile nobody may add to it or free it, nor may its own functions or `stop`.
 */
#ifndef QUADRIGA_TASK_GRAPH_C_H
#define QUADRIGA_TASK_GRAPH_C_H

#include <quadriga/task_c.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quadriga_engine;  /* engine_c.h */
struct quadriga_data;    /* task_c.h */
struct quadriga_codelet; /* task_c.h */
typedef struct quadriga_task_graph quadriga_task_graph;

/* Sets the values of the index that follows `known` ones: from *begin to before *end, none if *end
 * isn't greater. indices[0] is the step. A result other than 0 ends the submission, with that number
 * in the message. */
typedef int (*quadriga_index_range)(const int64_t* indices, int64_t known, void* context,
                                    int64_t* begin, int64_t* end);
/* Says what the task of so many indices is: sets data[i] for each operand, the bytes at `params`,
 * which begin as zeros, and *options, which begin as the defaults. Results as above. */
typedef int (*quadriga_task_at)(const int64_t* indices, int64_t count, void* context,
                                quadriga_data** data, void* params,
                                quadriga_submit_options* options);
/* Other than 0 if no more tasks are wanted. */
typedef int (*quadriga_stop)(void* context);

/* A graph of so many steps, without tasks. *graph is NULL on failure. */
int64_t quadriga_task_graph_create(int64_t steps, quadriga_task_graph** graph);
/* Adds tasks of one kind: one for each step and tuple of so many further indices, whose values
 * `range` gives; NULL if there are none. `params_bytes` is the size of a task's parameters.
 * `context` is passed to both functions. The codelet must outlive the tasks. */
int64_t quadriga_task_graph_add(quadriga_task_graph* graph, const quadriga_codelet* codelet,
                                int64_t further_indices, quadriga_index_range range,
                                quadriga_task_at task_at, int64_t params_bytes, void* context);
/* Submits the tasks, and waits while the engine's window is full. Before each, `stop` is asked with
 * its context, until it says so; NULL: all are submitted. *submitted, if that isn't NULL, tells how
 * many were. A failure names the task's codelet and indices (the tasks before it are submitted, *submitted is 0); how
 * tasks end is told by quadriga_wait_all(). */
int64_t quadriga_task_graph_submit(quadriga_engine* engine, const quadriga_task_graph* graph,
                                   quadriga_stop stop, void* stop_context, int64_t* submitted);
/* Its tasks may still run. NULL is allowed. */
void quadriga_task_graph_free(quadriga_task_graph* graph);

#ifdef __cplusplus
}
#endif

#endif
