/* SPDX-License-Identifier: BSD-3-Clause
 * examples/ring.c: messages from C: columns of matrices travel around a ring of processes.
 * Build: cc ring.c $(pkg-config --cflags --libs quadriga)
 * Run it as is, alone, or by: quadriga launch -n 4 ./ring
 */
#include <quadriga/message_c.h>
#include <stdio.h>

enum { rows = 1000, cols = 8 };

static double a[rows][cols];

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, quadriga_message());
  return 1;
}

int main(void) {
  quadriga_communicator* comm = NULL;
  if (quadriga_world(60, &comm) != 0) return failed("can't begin");
  const int rank = quadriga_rank(comm), size = quadriga_size(comm);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const quadriga_layout* real = quadriga_element(QUADRIGA_FLOAT64);
  quadriga_layout* column = NULL;
  if (quadriga_layout_vector(rows, 1, cols, real, &column) != 0) return failed("a column");

  /* The last column goes to the right, and comes from the left as the first one. */
  for (int i = 0; i < rows; ++i) a[i][cols - 1] = rank + i;
  quadriga_request* arriving = NULL;
  quadriga_status status;
  if (quadriga_irecv(comm, a, 1, column, left, QUADRIGA_ANY_TAG, &arriving) != 0 ||
      quadriga_send(comm, &a[0][cols - 1], 1, column, right, 7) != 0 ||
      quadriga_wait(&arriving, &status) != 0)
    return failed("the ring");
  for (int i = 0; i < rows; ++i)
    if (a[i][0] != left + i) return 1;

  double sum = rank;
  if (quadriga_allreduce(comm, &sum, &sum, 1, real, QUADRIGA_SUM) != 0) return failed("the sum");
  if (rank == 0)
    printf("%d ranks, %d bytes from rank %d, sum %g\n", size, (int)status.bytes, status.source, sum);
  quadriga_layout_free(column);
  quadriga_leave(comm);
  return sum == size * (size - 1) / 2 ? 0 : 1;
}
