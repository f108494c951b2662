# SPDX-License-Identifier: BSD-3-Clause
# examples/summa.py: DGEMM on a grid of processes; checked, with a timeline of each of them.
# Run it by: quadriga launch -n 4 examples/summa.py (any number of processes; or as is)
# Source: van de Geijn and Watts, SUMMA, Concurrency: Practice and Experience 9(4), 1997.
import time

import numpy as np

import quadriga
from quadriga import linalg, message

M, N, K, PANEL, WIDTH = 1400, 1600, 1536, 192, 72


def cut(n, parts):
    """Where the parts of n rows or columns begin, and the end."""
    return [n * i // parts for i in range(parts + 1)]


def block(matrix, grid, rank):
    """A process's part of a matrix: a view of it."""
    places = zip(matrix.shape, grid, divmod(rank, grid[1]), strict=True)
    return matrix[tuple(slice(*cut(n, parts)[i : i + 2]) for n, parts, i in places)]


def summa(across, down, a, b, c, engine, note):
    """c += a @ b, of which each process has a block; panels travel along rows and columns."""
    of_a, of_b = cut(K, across.size), cut(K, down.size)
    # A panel has one owner in each row and column of the grid: it ends where an owner's part does.
    ends = sorted({*of_a, *of_b, *range(0, K, PANEL)})
    for begin, end in zip(ends, ends[1:], strict=False):
        owner_a = np.searchsorted(of_a, begin, "right") - 1
        owner_b = np.searchsorted(of_b, begin, "right") - 1
        left, right = np.empty((len(c), end - begin)), np.empty((end - begin, c.shape[1]))
        if across.rank == owner_a:
            # Columns of a resident block, far apart in memory: the view travels, without a copy.
            left = a[:, begin - of_a[owner_a] : end - of_a[owner_a]]
        if down.rank == owner_b:
            right = b[begin - of_b[owner_b] : end - of_b[owner_b]]
        across.bcast(left, owner_a)
        down.bcast(right, owner_b)
        note("-")
        linalg.matmul(left, right, c, beta=1, engine=engine)
        note("#")


def timeline(comm, begin, notes):
    """What each process did in equal slices of time: "#" computes, "-" exchanges."""
    seconds = comm.allreduce(np.array([notes[-1][0] - begin]), op="max")[0]
    slices = begin + (np.arange(WIDTH) + 0.5) * seconds / WIDTH
    place = np.searchsorted([end for end, _ in notes], slices)
    lines = comm.gather(np.array([what for _, what in notes] + [" "])[place])
    if comm.rank == 0:
        print(*(f"{rank:3} " + "".join(line) for rank, line in enumerate(lines)), sep="\n")
        print(f"{seconds * 1e3:.0f} ms, {2e-9 * M * N * K / seconds:.1f} GFLOP/s")


if __name__ == "__main__":
    with message.world(deadline=60) as comm, quadriga.Engine("cpu:1") as engine:
        high = max(p for p in range(1, 17) if comm.size % p == 0 and p * p <= comm.size)
        grid = (high, comm.size // high)
        i, j = divmod(comm.rank, grid[1])
        across, down = comm.Split(i, j), comm.Split(j, i)
        # Every process makes the whole matrices, to check at the end, and keeps its blocks of them.
        random = np.random.default_rng(1)
        whole_a, whole_b = random.standard_normal((M, K)), random.standard_normal((K, N))
        a, b = block(whole_a, grid, comm.rank).copy(), block(whole_b, grid, comm.rank).copy()
        whole_c = np.zeros((M, N))
        c = np.zeros_like(block(whole_c, grid, comm.rank))
        notes = []
        comm.barrier()
        begin = time.monotonic()
        summa(across, down, a, b, c, engine, lambda what: notes.append((time.monotonic(), what)))
        timeline(comm, begin, notes)
        comm.isend(c, 0)
        for rank in range(comm.size) if comm.rank == 0 else []:
            comm.recv(block(whole_c, grid, rank), rank)
        if comm.rank == 0:
            assert np.allclose(whole_c, whole_a @ whole_b, rtol=1e-10, atol=1e-10), "wrong product"
