# SPDX-License-Identifier: BSD-3-Clause
# examples/wave.py: a wave on a drum, by processes; equal to one process to the bit, and drawn.
# Run it as is (it starts four processes, to compare); or: quadriga launch -n 4 examples/wave.py
import subprocess
import sys

import numpy as np

from quadriga import message

N, STEPS, SPEED = 256, 200, 0.25


def start(rows, cols):
    """A bump that is let go."""
    y, x = np.meshgrid(rows, cols, indexing="ij")
    return np.exp(-((y - 0.3 * N) ** 2 + (x - 0.6 * N) ** 2) / 60.0)


def step(now, before):
    """The next state, inside of the borders."""
    near = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
    inner = now[1:-1, 1:-1]
    return 2 * inner - before[1:-1, 1:-1] + SPEED * (near - 4 * inner)


def run(comm):
    """The part of this rank: a block of a grid of processes."""
    high = max(p for p in range(1, 17) if comm.size % p == 0 and p * p <= comm.size)
    row, col = divmod(comm.rank, wide := comm.size // high)
    ends = [[N * i // parts for i in range(parts + 1)] for parts in (high, wide)]
    places = [np.arange(ends[k][i] - 1, ends[k][i + 1] + 1) for k, i in ((0, row), (1, col))]
    now = start(*places)
    for k, at in ((0, places[0]), (1, places[1])):
        np.moveaxis(now, k, 0)[(at < 0) | (at >= N)] = 0  # the drum's rim
    before = now.copy()
    # Own cells beside a border, and where the neighbour's go: rows lie together, columns don't.
    inner = slice(1, -1)
    borders = [
        ((row - 1, col), now[1, inner], (0, inner)),
        ((row + 1, col), now[-2, inner], (-1, inner)),
        ((row, col - 1), now[inner, 1], (inner, 0)),
        ((row, col + 1), now[inner, -2], (inner, -1)),
    ]
    near = [
        (r * wide + c, own, to) for (r, c), own, to in borders if 0 <= r < high and 0 <= c < wide
    ]
    exchange = comm.plan(
        sends=[(own, other) for other, own, _ in near],
        receives=[(now[to], other) for other, _, to in near],
    )
    for _ in range(STEPS):
        exchange.start()
        exchange.wait()
        after = step(now, before)
        before[...] = now
        now[inner, inner] = after
    comm.isend(now[inner, inner], 0)
    if comm.rank != 0:
        return None
    wave = np.empty((N, N))
    for rank, (i, j) in enumerate(np.ndindex(high, wide)):
        comm.recv(wave[slice(*ends[0][i : i + 2]), slice(*ends[1][j : j + 2])], rank)
    return wave


if __name__ == "__main__":
    with message.world() as comm:
        wave = run(comm)
        if wave is not None:
            np.save(f"wave-{comm.size}.npy", wave)
    if comm.size == 1:
        subprocess.run(
            [sys.executable, "-m", "quadriga", "launch", "-n", "4", __file__], check=True
        )
        assert (np.load("wave-4.npy") == wave).all(), "four processes differ from one"
        shades = " .:-=+*#%@"
        for line in (wave[::16, ::8] * 40 + 5).clip(0, 9).astype(int):
            print("".join(shades[each] for each in line))
