/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/task_c.h: tasks on all devices, for C.
 *
 * A program registers its arrays, describes operations as codelets, and submits tasks. Tasks that
 * access the same data are ordered by submission; all others run at once, on any device that has a
 * variant. engine.h and codelet.h say more of each: functions here are theirs.
 *
 * Functions return 0, -i if the i-th argument is wrong, or a value of enum quadriga_failure;
 * quadriga_message() describes the failure. Several threads may use an engine at once.
 */
#ifndef QUADRIGA_TASK_C_H
#define QUADRIGA_TASK_C_H

#include <quadriga/engine_c.h>

#ifdef __cplusplus
extern "C" {
#endif

struct quadriga_engine; /* engine_c.h */
typedef struct quadriga_data quadriga_data;
typedef struct quadriga_codelet quadriga_codelet;
typedef struct quadriga_sequence quadriga_sequence;
typedef struct quadriga_access quadriga_access;

/* How a task accesses an operand. */
enum quadriga_mode {
  QUADRIGA_READ = 0,
  QUADRIGA_WRITE = 1,   /* Overwrites all of it; the old content isn't copied. */
  QUADRIGA_UPDATE = 2,  /* Reads and writes. */
  QUADRIGA_COMMUTE = 3, /* An update, in any order among commuting tasks; one at a time. */
  QUADRIGA_REDUCE = 4   /* Adds to a partial result; see quadriga_codelet_reduce. */
};

/* One operand as a variant sees it, in the memory of the device it runs on: element (i, j) is at
 * data + (i + j*ld) * size of an element. */
typedef struct quadriga_view {
  void* data;
  int64_t rows, cols, ld;
  int64_t type; /* 's', 'd', 'c', 'z', or 'b' for bytes. */
} quadriga_view;

/* The arguments of a variant; valid until it returns. */
typedef struct quadriga_arguments {
  int64_t operands;           /* How many views. */
  const quadriga_view* views; /* In the order of the codelet's modes. */
  const void* params;         /* A copy of the bytes that were submitted. */
  int64_t params_bytes;
  void* context; /* The codelet's. */
  void* stream;  /* The device's native stream, such as a cudaStream_t; NULL on the CPU. */
} quadriga_arguments;

/* Performs the operation, or on a GPU queues it on the stream. A result other than 0 fails the task
 * with that number in the message. */
typedef int (*quadriga_variant)(const quadriga_arguments* arguments);

/* What a codelet needs; add them up. */
enum quadriga_need {
  QUADRIGA_HOST_ONLY = 1, /* The cpu variant runs on a host thread, never on an emulated device. */
  QUADRIGA_BLOCKS = 2,    /* It may wait, as for a file; with QUADRIGA_HOST_ONLY. */
  QUADRIGA_SUBMITS = 4    /* It submits tasks; successors wait for the last of them. */
};

/* An operation on operands with these modes (enum quadriga_mode). Either variant may be NULL, not
 * both: cpu runs on cores and emulated devices, cuda on NVIDIA GPUs. `context` is passed to the
 * variants. *codelet is NULL on failure. */
int64_t quadriga_codelet_create(const char* name, int64_t operands, const int* modes,
                                quadriga_variant cpu, quadriga_variant cuda, void* context,
                                int64_t needs, quadriga_codelet** codelet);
/* For operands of mode QUADRIGA_REDUCE: `init`, with the single mode QUADRIGA_WRITE, sets a partial
 * result to the neutral element; `combine`, with QUADRIGA_UPDATE and QUADRIGA_READ, adds the second
 * operand to the first. Both must outlive the codelet. To be called before the first task. */
int64_t quadriga_codelet_reduce(quadriga_codelet* codelet, const quadriga_codelet* init,
                                const quadriga_codelet* combine);
/* All tasks of the codelet must have ended. NULL is allowed. */
void quadriga_codelet_free(quadriga_codelet* codelet);

/* Registers rows x cols elements of a type ('s', 'd', 'c', 'z' or 'b'), column-major, at `home` on
 * the host, which must outlive the data. What the program writes there after a call that waited
 * for the data's tasks, or for tasks that followed them, is what later tasks read. *data is NULL
 * on failure. */
int64_t quadriga_data_register(quadriga_engine* engine, void* home, int64_t rows, int64_t cols,
                               int64_t ld, char type, quadriga_data** data);
/* Data without a home: it lives on the devices, and on the host where they are full. */
int64_t quadriga_data_temporary(quadriga_engine* engine, int64_t rows, int64_t cols, char type,
                                quadriga_data** data);
/* Waits until the data's tasks have ended and its content is home. */
int64_t quadriga_data_wait(quadriga_data* data, double timeout);
/* The same, and forgets the data; before quadriga_close. The handle is freed even on failure. NULL
 * is allowed. */
int64_t quadriga_data_remove(quadriga_data* data);

/* Waits until the host may access the data's memory in a mode (read, write or update); tasks on
 * other data keep running. *access is NULL on failure. */
int64_t quadriga_on_host(quadriga_data* data, int mode, double timeout, quadriga_access** access);
/* Ends the access. NULL is allowed. */
void quadriga_release(quadriga_access* access);

/* Order without data: tasks of a sequence run one after the other. */
int64_t quadriga_sequence_create(quadriga_engine* engine, quadriga_sequence** sequence);
/* Waits for its tasks; before quadriga_close. The handle is freed even on failure. NULL is allowed.
 */
int64_t quadriga_sequence_remove(quadriga_sequence* sequence);

/* A task that was submitted: a handle of an engine, which may be copied and needs no end. */
typedef struct quadriga_task {
  void* task;
  uint64_t id;
} quadriga_task;

/* How a task is submitted; {0} are the defaults. */
typedef struct quadriga_submit_options {
  int64_t priority;            /* Larger runs earlier among ready tasks. */
  int64_t device;              /* 1 + index of the device that runs it; 0: the policy chooses. */
  int64_t owner;               /* 1 + index of a device that is preferred. */
  quadriga_sequence* sequence; /* Runs after the earlier tasks of it. */
  int64_t afters;              /* Runs after so many other tasks, */
  const quadriga_task* after;  /* these. */
} quadriga_submit_options;

/* Submits a task on so many operands, in the order of the codelet's modes. `params` are copied;
 * `options` and `task` may be NULL. */
int64_t quadriga_submit(quadriga_engine* engine, const quadriga_codelet* codelet, int64_t operands,
                        quadriga_data* const* data, const void* params, int64_t params_bytes,
                        const quadriga_submit_options* options, quadriga_task* task);
/* Waits for a task, at most `timeout` seconds (QUADRIGA_DEADLINE; the task goes on); negative: no
 * limit. Data that no pending task accesses are home then. If it failed: why. */
int64_t quadriga_task_wait(quadriga_engine* engine, const quadriga_task* task, double timeout);
/* *done is 1 if the task has ended, else 0. */
int64_t quadriga_task_done(quadriga_engine* engine, const quadriga_task* task, int* done);
/* Waits until all tasks have ended and results are home. If any failed since the last such wait: the
 * first failure. */
int64_t quadriga_wait_all(quadriga_engine* engine, double timeout);
/* Cancels tasks that haven't started, and waits for those that run; results of those that ended are
 * home then, and the host may write its memory, as after quadriga_wait_all(). What a cancelled task
 * should have written counts as lost until a task writes it. */
int64_t quadriga_cancel(quadriga_engine* engine);

#ifdef __cplusplus
}
#endif

#endif
