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


def test_other_values_are_refused():
    with pytest.raises(TypeError, match="reproducible is 1; expected True, False or None"):
        products(reproducible=1)
