/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/message_c.h: messages between the processes of one host, for C.
 *
 * Names and meaning are those of quadriga/message.h and of MPI: a place in memory is an address, a
 * number of elements and what an element is, a layout. Functions that return int64_t return 0, or a
 * value of enum quadriga_failure; quadriga_message() describes the failure in words. What they make
 * is NULL then. Calls that wait end at the communicator's deadline, withdrawn. Several threads may
 * use a communicator at once, one at a time for collectives, which all ranks call in one order.
 */
#ifndef QUADRIGA_MESSAGE_C_H
#define QUADRIGA_MESSAGE_C_H

#include <quadriga/c_errors.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quadriga_communicator quadriga_communicator;
typedef struct quadriga_layout quadriga_layout;
typedef struct quadriga_request quadriga_request;
typedef struct quadriga_plan quadriga_plan;

enum { QUADRIGA_ANY_SOURCE = -1, QUADRIGA_ANY_TAG = -1 };

enum quadriga_element_type {
  QUADRIGA_BYTES,
  QUADRIGA_BOOLEAN,
  QUADRIGA_INT8,
  QUADRIGA_INT16,
  QUADRIGA_INT32,
  QUADRIGA_INT64,
  QUADRIGA_UINT8,
  QUADRIGA_UINT16,
  QUADRIGA_UINT32,
  QUADRIGA_UINT64,
  QUADRIGA_FLOAT16,
  QUADRIGA_BFLOAT16,
  QUADRIGA_FLOAT32,
  QUADRIGA_FLOAT64,
  QUADRIGA_COMPLEX64,
  QUADRIGA_COMPLEX128
};

enum quadriga_operation {
  QUADRIGA_SUM,
  QUADRIGA_PROD,
  QUADRIGA_MIN,
  QUADRIGA_MAX,
  QUADRIGA_LAND,
  QUADRIGA_LOR,
  QUADRIGA_LXOR,
  QUADRIGA_BAND,
  QUADRIGA_BOR,
  QUADRIGA_BXOR,
  /* QUADRIGA_SUM | QUADRIGA_REPRODUCIBLE and so on: in an order that the number of ranks and the
   * root alone decide. All ranks must ask for it. */
  QUADRIGA_REPRODUCIBLE = 256
};

/* What was received. Where a function takes one, NULL is allowed. */
typedef struct quadriga_status {
  int source;
  int tag;
  int64_t bytes; /* Of the message, which may be less than there was room for. */
} quadriga_status;

/* All processes that `quadriga launch` or another launcher started, or this one alone. `deadline`:
 * seconds that a call may take; negative: for ever. */
int64_t quadriga_world(double deadline, quadriga_communicator** comm);
/* One of `size` processes that meet at "file:PATH" or "tcp:127.0.0.1:PORT" and know a token of 32
 * hexadecimal digits, which is proved, not sent. Waits 60 s for the others. */
int64_t quadriga_join(const char* address, int rank, int size, const char* token, double deadline,
                      quadriga_communicator** comm);
/* Leaves the world, once own sends have been received, after 5 s at most; what quadriga_split()
 * made is only freed. NULL is allowed. */
void quadriga_leave(quadriga_communicator* comm);
/* Which rank this is, and how many there are; -1 of NULL. */
int quadriga_rank(const quadriga_communicator* comm);
int quadriga_size(const quadriga_communicator* comm);

/* One element. It isn't freed; NULL if there is no such type. */
const quadriga_layout* quadriga_element(enum quadriga_element_type type);
/* `count` blocks of `length` elements, `stride` elements apart. */
int64_t quadriga_layout_vector(int64_t count, int64_t length, int64_t stride,
                               const quadriga_layout* of, quadriga_layout** made);
/* The part of an array of `dimensions` sizes `shape` that begins at `start`, rows first (C). */
int64_t quadriga_layout_subarray(int dimensions, const int64_t* shape, const int64_t* part,
                                 const int64_t* start, const quadriga_layout* of,
                                 quadriga_layout** made);
/* Blocks of lengths[i] elements at displacements[i] elements. */
int64_t quadriga_layout_indexed(int64_t blocks, const int64_t* lengths,
                                const int64_t* displacements, const quadriga_layout* of,
                                quadriga_layout** made);
/* The same elements with another lower bound and extent, in bytes. */
int64_t quadriga_layout_resized(const quadriga_layout* of, int64_t lower, int64_t extent,
                                quadriga_layout** made);
/* Not while a call uses it; requests don't. NULL is allowed. */
void quadriga_layout_free(quadriga_layout* layout);

/* Returns once the memory may be changed again. */
int64_t quadriga_send(quadriga_communicator* comm, const void* data, int64_t count,
                      const quadriga_layout* of, int destination, int tag);
int64_t quadriga_recv(quadriga_communicator* comm, void* data, int64_t count,
                      const quadriga_layout* of, int source, int tag, quadriga_status* status);
/* The memory must stay as it is until quadriga_wait() has returned. */
int64_t quadriga_isend(quadriga_communicator* comm, const void* data, int64_t count,
                       const quadriga_layout* of, int destination, int tag,
                       quadriga_request** request);
int64_t quadriga_irecv(quadriga_communicator* comm, void* data, int64_t count,
                       const quadriga_layout* of, int source, int tag, quadriga_request** request);
/* Waits for the end of a request, frees it and makes it NULL, but for QUADRIGA_DEADLINE: it goes on
 * then. A request that is NULL has ended. */
int64_t quadriga_wait(quadriga_request** request, quadriga_status* status);
/* Sends and receives at once. */
int64_t quadriga_sendrecv(quadriga_communicator* comm, const void* sent, int64_t send_count,
                          const quadriga_layout* send_of, int destination, int send_tag,
                          void* received, int64_t receive_count, const quadriga_layout* receive_of,
                          int source, int receive_tag, quadriga_status* status);

int64_t quadriga_barrier(quadriga_communicator* comm);
/* The root's elements become all ranks'. */
int64_t quadriga_bcast(quadriga_communicator* comm, void* data, int64_t count,
                       const quadriga_layout* of, int root);
/* Combines the ranks' elements on all ranks; `into` may be `from`. */
int64_t quadriga_allreduce(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                           const quadriga_layout* of, enum quadriga_operation operation);
/* The same on the root, where alone `into` counts. */
int64_t quadriga_reduce(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                        const quadriga_layout* of, enum quadriga_operation operation, int root);
/* `count` elements of each rank, one after the other: on the root, or on all ranks. */
int64_t quadriga_gather(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                        const quadriga_layout* of, int root);
int64_t quadriga_allgather(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                           const quadriga_layout* of);
/* Rank i gets the i-th `count` elements of the root, where alone `from` counts. */
int64_t quadriga_scatter(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                         const quadriga_layout* of, int root);
/* `count` elements for each rank and from each; `into` may be `from`. */
int64_t quadriga_alltoall(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                          const quadriga_layout* of);

/* The same, started: quadriga_wait() waits for what `request` becomes. All ranks start them in the
 * same order; a thread of the library carries them out. The memory must stay as it is meanwhile. */
int64_t quadriga_ibarrier(quadriga_communicator* comm, quadriga_request** request);
int64_t quadriga_ibcast(quadriga_communicator* comm, void* data, int64_t count,
                        const quadriga_layout* of, int root, quadriga_request** request);
int64_t quadriga_iallreduce(quadriga_communicator* comm, const void* from, void* into,
                            int64_t count, const quadriga_layout* of,
                            enum quadriga_operation operation, quadriga_request** request);
int64_t quadriga_ireduce(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                         const quadriga_layout* of, enum quadriga_operation operation, int root,
                         quadriga_request** request);
int64_t quadriga_igather(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                         const quadriga_layout* of, int root, quadriga_request** request);
int64_t quadriga_iallgather(quadriga_communicator* comm, const void* from, void* into,
                            int64_t count, const quadriga_layout* of, quadriga_request** request);
int64_t quadriga_iscatter(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                          const quadriga_layout* of, int root, quadriga_request** request);
int64_t quadriga_ialltoall(quadriga_communicator* comm, const void* from, void* into, int64_t count,
                           const quadriga_layout* of, quadriga_request** request);

/* The ranks that give the same color, ordered by key, then rank; of a negative color NULL. */
int64_t quadriga_split(quadriga_communicator* comm, int color, int key,
                       quadriga_communicator** part);

/* A message of an exchange that is set up once and started often. */
typedef struct quadriga_planned {
  void* data; /* Only read of a send. */
  int64_t count;
  const quadriga_layout* of;
  int rank; /* To which, or from which, it goes. */
  int tag;
} quadriga_planned;
/* Those between two ranks meet in the order in which both sides list them, or by their tags. The
 * memory is used from each start to the end of the wait. */
int64_t quadriga_plan_make(quadriga_communicator* comm, int64_t send_count,
                           const quadriga_planned* sends, int64_t receive_count,
                           const quadriga_planned* receives, quadriga_plan** plan);
int64_t quadriga_plan_start(quadriga_plan* plan);
/* Of a message that failed the others are withdrawn; after QUADRIGA_DEADLINE all go on. */
int64_t quadriga_plan_wait(quadriga_plan* plan);
/* Withdraws what is under way. NULL is allowed. */
void quadriga_plan_free(quadriga_plan* plan);

#ifdef __cplusplus
}
#endif

#endif
