# SPDX-License-Identifier: BSD-3-Clause
# examples/block_cyclic.py: a transpose between two block-cyclic distributions; checked and drawn.
# Run it by: quadriga launch -n 4 examples/block_cyclic.py (any number of processes; or as is)
import numpy as np

from quadriga import message
from quadriga.message import Layout

ROWS, COLS = 96, 160


class Distribution:
    """A matrix dealt out in blocks to a grid of processes, as in ScaLAPACK."""

    def __init__(self, shape, block, grid):
        self.shape, self.block, self.grid = shape, block, grid

    def owned(self, rank, k):
        """The rows (k = 0) or columns (k = 1) of a rank, in the order of its local array."""
        index, place = np.arange(self.shape[k]), divmod(rank, self.grid[1])[k]
        return index[index // self.block[k] % self.grid[k] == place]

    def layout(self, rank):
        """Where the whole matrix has the elements of a rank, in the order of its local array."""
        place = divmod(rank, self.grid[1])
        return Layout.block_cyclic(self.shape, self.block, self.grid, place, "f8")


def crossing(rows, row_step, columns, column_step):
    """The elements at some rows and columns of a local array, row by row; steps in elements."""
    row = Layout.indexed(1, columns * column_step, "f8")
    return Layout.indexed(1, rows * row_step, row.resized(0, 8))


def shared(mine, theirs):
    """Where a local array has the rows or columns that the other process has, too."""
    return np.flatnonzero(np.isin(mine, theirs))


def transpose(comm, a, of_a, b, of_b):
    """b = a.T, straight from each process's part of a to the parts of b."""
    me, requests = comm.rank, []
    for other in range(comm.size):
        # A row of a is a column of b. Both sides walk their common elements row by row of a: their
        # layouts differ, the elements and their order don't, and so the transpose travels.
        rows = shared(of_b.owned(me, 1), of_a.owned(other, 0))
        columns = shared(of_b.owned(me, 0), of_a.owned(other, 1))
        into = crossing(rows, 1, columns, b.shape[1])
        requests.append(comm.irecv(b, other, layout=into))
        rows = shared(of_a.owned(me, 0), of_b.owned(other, 1))
        columns = shared(of_a.owned(me, 1), of_b.owned(other, 0))
        requests.append(comm.isend(a, other, layout=crossing(rows, a.shape[1], columns, 1)))
    message.waitall(requests)


def drawn(distribution, ranks):
    """The ranks that own some of the elements."""
    owner = np.empty(distribution.shape, int)
    for rank in ranks:
        owner[np.ix_(distribution.owned(rank, 0), distribution.owned(rank, 1))] = rank
    return "\n".join("".join(chr(ord("0") + each) for each in row) for row in owner[::8, ::4])


if __name__ == "__main__":
    with message.world() as comm:
        ranks, high = range(comm.size), max(p for p in (1, 2, 3) if comm.size % p == 0)
        of_a = Distribution((ROWS, COLS), (8, 16), (high, comm.size // high))
        of_b = Distribution((COLS, ROWS), (24, 12), (1, comm.size))
        rows, columns = of_a.owned(comm.rank, 0), of_a.owned(comm.rank, 1)
        a = np.add.outer(COLS * rows, columns).astype("f8")
        b = np.zeros([len(of_b.owned(comm.rank, k)) for k in (0, 1)])
        transpose(comm, a, of_a, b, of_b)
        comm.isend(b, 0)  # closing the communicator waits for it
        if comm.rank == 0:
            result = np.zeros((COLS, ROWS))
            for rank in ranks:
                comm.recv(result, rank, layout=of_b.layout(rank))
            assert (result.T.ravel() == np.arange(ROWS * COLS)).all(), "it isn't the transpose"
            print(drawn(of_a, ranks), drawn(of_b, ranks), sep="\n\ntransposed:\n\n")
