# SPDX-License-Identifier: BSD-3-Clause
# examples/wave.py: a wave on a drum, on 4 processes; equal to one process to the bit, and drawn.
# Run it as is, or by: quadriga launch -n 4 examples/wave.py
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
    """The part of this rank: a block of a grid of 2 x 2, or all of it alone."""
    side = 2 if comm.size == 4 else 1
    row, col = divmod(comm.rank, side)
    size = N // side
    places = [np.arange(i * size - 1, (i + 1) * size + 1) for i in (row, col)]
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
    near = [(r * side + c, own, to) for (r, c), own, to in borders if {r, c} <= set(range(side))]
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
    blocks = comm.gather(now[inner, inner])
    return (
        None
        if blocks is None
        else np.block([list(blocks[i : i + side]) for i in range(0, side * side, side)])
    )


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
