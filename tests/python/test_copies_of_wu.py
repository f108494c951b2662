# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_copies_of_wu.py: which copies of tiles are valid, as in a table of a thesis.
"""Table 3.1 of Wu (2017): two products on a GPU share tile A; then a solve on the host takes C.

A copy's state shows in what the next task has to move: shared and modified tiles are there, invalid
ones have to be fetched.
"""

import numpy as np
import pytest

import quadriga

TILE = 16
BYTES = TILE * TILE * 8


@quadriga.codelet(["read", "read", "update"], host_only=False, cost=quadriga.Cost.of_seconds(1e-3))
def gemm(a, b, c):
    c -= a @ b.T


@quadriga.codelet(["read", "update"], cost=quadriga.Cost.of_seconds(1e-3))
def trsm(factor, c):
    c /= factor[0, 0]


@pytest.fixture
def engine():
    with quadriga.Engine("emulated:1,memory=1MiB", virtual_clock=True) as made:
        yield made


def _moved(engine):
    """Tiles to the GPU, and back."""
    moved = {link.source_name: link.bytes / BYTES for link in engine.counters().links}
    return moved.get("host", 0), moved.get("emulated0", 0)


def _gemm(engine, a, b, c):
    engine.submit(gemm, a.read(), b.read(), c.update())


def _trsm(engine, factor, c):
    engine.submit(trsm, factor.read(), c.update())


def _tiles(engine, count):
    """Arrays, and the same as data of the engine."""
    arrays = [np.full((TILE, TILE), float(number + 1), order="F") for number in range(count)]
    return arrays, [engine.data(array) for array in arrays]


def test_tiles_have_the_states_of_the_table(engine):
    arrays, (a, b, c, other, d, factor) = _tiles(engine, 6)
    expected = (arrays[2] - arrays[0] @ arrays[1].T) / arrays[5][0, 0]
    _gemm(engine, a, b, c)
    _gemm(engine, a, other, d)
    _trsm(engine, factor, c)
    engine.wait()
    # Init: all tiles are the host's alone. GEMM 1 fetches A, B and C; GEMM 2 finds A: S there.
    # C: M on the GPU goes home for TRSM, and D when all has ended.
    assert _moved(engine) == (5, 2)
    np.testing.assert_array_equal(arrays[2], expected)


def test_the_solve_leaves_a_shared_and_c_invalid_on_the_gpu(engine):
    _, (a, b, c, other, d, factor) = _tiles(engine, 6)
    _gemm(engine, a, b, c)
    _gemm(engine, a, other, d)
    _trsm(engine, factor, c)
    _gemm(engine, a, b, c)
    engine.wait()
    assert _moved(engine) == (5 + 1, 2 + 1), "C alone is fetched again, and goes home again"


def test_a_tile_that_the_host_only_read_stays_on_the_gpu(engine):
    _, (a, b, c, factor) = _tiles(engine, 4)
    _gemm(engine, a, b, c)
    _trsm(engine, c, factor)
    _gemm(engine, a, b, c)
    engine.wait()
    assert _moved(engine) == (3, 2), "C goes home for the reader, and once more at the end"
