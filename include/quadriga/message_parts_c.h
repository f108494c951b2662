/* SPDX-License-Identifier: BSD-3-Clause
 * include/quadriga/message_parts_c.h: collectives of parts of any sizes that are started, for C.
 *
 * As those of message_c.h that are started: quadriga_wait() waits for what `request` becomes, and
 * the memory must stay as it is meanwhile. The arrays of counts and displacements are read at once.
 */
#ifndef QUADRIGA_MESSAGE_PARTS_C_H
#define QUADRIGA_MESSAGE_PARTS_C_H

#include <quadriga/message_c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Those of message_c.h. */
struct quadriga_communicator;
struct quadriga_layout;
struct quadriga_request;

/* MPI's collectives by counts: `of` is one element, and rank i's are counts[i] elements from
 * displacements[i] on; one after the other if `displacements` is NULL. Where only a root has them,
 * they and the address may be NULL elsewhere. What a rank gives and what another expects of it must
 * agree, or all raise. */
int64_t quadriga_igatherv(quadriga_communicator* comm, const void* from, int64_t count, void* into,
                          const int64_t* counts, const int64_t* displacements,
                          const quadriga_layout* of, int root, quadriga_request** request);
int64_t quadriga_iallgatherv(quadriga_communicator* comm, const void* from, int64_t count,
                             void* into, const int64_t* counts, const int64_t* displacements,
                             const quadriga_layout* of, quadriga_request** request);
int64_t quadriga_iscatterv(quadriga_communicator* comm, const void* from, const int64_t* counts,
                           const int64_t* displacements, void* into, int64_t count,
                           const quadriga_layout* of, int root, quadriga_request** request);
int64_t quadriga_ialltoallv(quadriga_communicator* comm, const void* from,
                            const int64_t* send_counts, const int64_t* send_displacements,
                            void* into, const int64_t* receive_counts,
                            const int64_t* receive_displacements, const quadriga_layout* of,
                            quadriga_request** request);
/* Rank i gets counts[i] elements of the ranks' combined ones, the next after those of i - 1. */
int64_t quadriga_ireduce_scatter(quadriga_communicator* comm, const void* from, void* into,
                                 const int64_t* counts, const quadriga_layout* of,
                                 enum quadriga_operation operation, quadriga_request** request);

/* Elements of any layout for a rank, or of one. */
typedef struct quadriga_part {
  void* data; /* Only read of what is sent. */
  int64_t count;
  const quadriga_layout* of;
  int rank;
} quadriga_part;
/* Of several parts for one rank the first goes to the first that is listed there. Between
 * neighbours, it is called by all ranks, also by those that have none. */
int64_t quadriga_ialltoallw(quadriga_communicator* comm, int64_t send_count,
                            const quadriga_part* sends, int64_t receive_count,
                            const quadriga_part* receives, quadriga_request** request);
int64_t quadriga_ineighbor_alltoall(quadriga_communicator* comm, int64_t send_count,
                                    const quadriga_part* sends, int64_t receive_count,
                                    const quadriga_part* receives, quadriga_request** request);

#ifdef __cplusplus
}
#endif

#endif
