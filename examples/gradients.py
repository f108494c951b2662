# SPDX-License-Identifier: BSD-3-Clause
# examples/gradients.py: conjugate gradients over processes, on a mesh; checked, and a plot.
# Run it by: quadriga launch -n 4 examples/gradients.py (any number of processes; or as is)
import numpy as np
from scipy import sparse, spatial

from quadriga import message

POINTS, TOLERANCE = 4000, 1e-10


def matrix():
    """Diffusion between the points of an irregular mesh, which are numbered from left to right."""
    places = np.random.default_rng(1).random((POINTS, 2))
    starts, neighbours = spatial.Delaunay(places[places[:, 0].argsort()]).vertex_neighbor_vertices
    links = sparse.csr_array((np.ones(len(neighbours)), neighbours, starts))
    return (sparse.diags_array(links.sum(axis=1) + 0.01) - links).tocsr()


class Exchange:
    """Entries that others' rows need; a process's vectors have own entries, then those it needs."""

    def __init__(self, comm, ends, columns):
        own = np.arange(ends[comm.rank], ends[comm.rank + 1])
        needed = np.setdiff1d(columns, own)  # ascending: the owners' parts follow each other
        self.numbers, begins = np.concatenate([own, needed]), np.searchsorted(needed, ends)
        parts = [slice(*(len(own) + begins[rank : rank + 2])) for rank in range(comm.size)]
        self.receives = [(rank, part) for rank, part in enumerate(parts) if part.stop > part.start]
        # Each owner is told what is needed of it, and makes a layout of that.
        counts = comm.alltoall(np.diff(begins))
        asked = [comm.isend(self.numbers[part], rank) for rank, part in self.receives]
        self.sends = []
        for rank in np.flatnonzero(counts):
            numbers = np.empty(counts[rank], int)
            comm.recv(numbers, rank)
            self.sends.append((rank, message.Layout.indexed(1, numbers - own[0], "f8")))
        message.waitall(asked)

    def plan(self, comm, vector):
        """For one vector, whose entries are read and written where they are, again and again."""
        return comm.plan(
            sends=[(vector, rank, 0, which) for rank, which in self.sends],
            receives=[(vector[part], rank) for rank, part in self.receives],
        )


def solve(comm, a, b, exchange):
    """The own entries of x, a x = b, and the norms of the residuals."""
    n, x, r = len(b), np.zeros(len(b)), b.copy()
    inner, border, p = a[:, :n], a[:, n:], np.concatenate([b, np.zeros(a.shape[1] - n)])
    plan, norms = exchange.plan(comm, p), [comm.allreduce(r @ r)]
    while norms[-1] > TOLERANCE**2 * norms[0]:
        plan.start()
        q = inner @ p[:n]  # while the others' entries are on their way
        plan.wait()
        q += border @ p[n:]
        alpha = norms[-1] / comm.allreduce(p[:n] @ q)
        x += alpha * p[:n]
        r -= alpha * q
        norms.append(comm.allreduce(r @ r))
        p[:n] = r + norms[-1] / norms[-2] * p[:n]
    return x, np.sqrt(norms)


if __name__ == "__main__":
    with message.world(deadline=60) as comm:
        a, b = matrix(), np.sin(np.arange(POINTS))
        ends = [POINTS * rank // comm.size for rank in range(comm.size + 1)]
        own = slice(*ends[comm.rank : comm.rank + 2])
        exchange = Exchange(comm, ends, a[own].indices)
        x, norms = solve(comm, a[own][:, exchange.numbers], b[own], exchange)
        comm.isend(x, 0)
        if comm.rank == 0:
            x = np.empty(POINTS)
            for rank in range(comm.size):
                comm.recv(x[ends[rank] : ends[rank + 1]], rank)
            assert np.linalg.norm(b - a @ x) <= 2 * TOLERANCE * np.linalg.norm(b), "wrong solution"
            for i, norm in list(enumerate(norms / norms[0]))[:: len(norms) // 24]:
                print(f"{i:4} {norm:.1e} " + " " * round(-6 * np.log10(norm)) + "*")
