# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_reproducible.py: results that don't depend on how many devices there are.
import numpy as np
import pytest

import quadriga
from quadriga import linalg


def products(reproducible=None, order=700):
    """The same product on one and on two cores, whose default tiles differ."""
    random = np.random.default_rng(5)
    a, b = random.standard_normal((2, order, order))
    found = []
    for cores in (1, 2):
        with quadriga.Engine(f"cpu:{cores}") as engine:
            found.append(linalg.matmul(a, b, engine=engine, reproducible=reproducible))
    return found


def tiles(**options):
    return [
        linalg.estimate("matmul", 700, 700, 700, devices=f"cpu:{cores}", **options).tile
        for cores in (1, 2)
    ]


def test_tiles_are_those_of_one():
    assert len(set(tiles())) == 2
    assert tiles(reproducible=True) == [tiles()[0]] * 2
    assert np.array_equal(*products(reproducible=True))


def test_setting_holds_where_the_argument_is_silent():
    with quadriga.config(reproducible=True):
        assert len(set(tiles())) == 1
        assert len(set(tiles(reproducible=False))) == 2


def test_the_call_wins_over_the_engine_and_that_over_the_setting():
    def tiles_of(engine_says, **call):
        found = set()
        for cores in (1, 2):
            with quadriga.Engine(f"cpu:{cores}", reproducible=engine_says) as engine:
                found.add(linalg.estimate("matmul", 700, 700, 700, engine=engine, **call).tile)
        return found

    plain, same = set(tiles()), {tiles()[0]}
    assert len(plain) == 2
    for setting in (True, False):
        with quadriga.config(reproducible=setting):
            assert tiles_of(None) == (same if setting else plain)
            assert tiles_of(True) == same
            assert tiles_of(False) == plain
            for engine_says in (None, True, False):
                assert tiles_of(engine_says, reproducible=True) == same
                assert tiles_of(engine_says, reproducible=False) == plain


def test_results_of_such_engines_are_the_same_to_the_bit():
    random = np.random.default_rng(5)
    a, b = random.standard_normal((2, 700, 700))
    found = []
    for cores in (1, 2):
        with quadriga.Engine(f"cpu:{cores}", reproducible=True):
            found.append(linalg.matmul(a, b))
    assert np.array_equal(*found)


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="reproducible is 1; expected True, False or None"):
        products(reproducible=1)
    with pytest.raises(TypeError, match="reproducible is 'yes'; expected True, False or None"):
        quadriga.Engine("cpu:1", reproducible="yes")
