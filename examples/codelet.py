# SPDX-License-Identifier: BSD-3-Clause
# examples/codelet.py: an operation of one's own in Python: blurs an image tile by tile, as a graph.
"""Three blurs of an image cut into tiles; each tile needs the edges of its neighbours."""

import numpy as np

import quadriga

TILE, COUNT, ROUNDS = 64, 4, 3


@quadriga.codelet(access=["read", "read", "read", "write"])
def blur(above, here, below, out):
    """The mean of each row and its neighbours; the image ends where tiles are repeated."""
    up = np.vstack([above[-1:], here[:-1]])
    down = np.vstack([here[1:], below[:1]])
    out[...] = (up + here + down) / 3


@quadriga.codelet(access=["read", "reduce"])
def add_up(tile, total):
    total += tile.sum()


def blurred_plainly(image):
    # The first and the last tile are their own neighbours.
    for _ in range(ROUNDS):
        edges = np.vstack([image[TILE - 1 : TILE], image, image[-TILE : 1 - TILE]])
        image = (edges[:-2] + edges[1:-1] + edges[2:]) / 3
    return image


def main():
    image = np.random.default_rng(1).random((TILE * COUNT, TILE))
    result, total = np.empty_like(image), np.zeros(1)
    with quadriga.Engine() as engine:
        tiles = [engine.data(part) for part in np.split(image, COUNT)]
        for done in range(1, ROUNDS + 1):
            # The last round goes to the result; the others exist only while they are needed.
            if done == ROUNDS:
                fresh = [engine.data(part) for part in np.split(result, COUNT)]
            else:
                fresh = [engine.temporary((TILE, TILE)) for _ in tiles]
            for i, out in enumerate(fresh):
                above, below = tiles[max(i - 1, 0)], tiles[min(i + 1, COUNT - 1)]
                engine.submit(blur, above.read(), tiles[i].read(), below.read(), out.write())
            tiles = fresh
        sums = engine.data(total)
        for tile in tiles:
            engine.submit(add_up, tile.read(), sums.reduce())
        engine.wait()
        print(engine.counters())
    assert np.allclose(result, blurred_plainly(image))
    assert np.allclose(total, result.sum())
    print(f"mean brightness {total[0] / result.size:.4f}, as without tiles")


main()
