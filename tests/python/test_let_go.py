# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_let_go.py: bodies that drop the last reference to what waits for its tasks.
import gc

import numpy as np
import pytest

import quadriga
from quadriga import linalg, sparse

DEVICES = ["cpu:1", "emulated:1,memory=4MiB"]
held = []


@quadriga.codelet(access=["update"])
def drop(z):
    held.clear()
    gc.collect()
    z += 1


@pytest.mark.parametrize("devices", DEVICES)
def test_solvers(devices):
    matrix = sparse.poisson((20, 20))
    z = np.zeros(1)
    with quadriga.Engine(devices) as engine:
        for _ in range(5):
            held.append(sparse.Solver(matrix, engine=engine))
            held[0].solve(np.ones(400), rtol=1e-8)
            engine.submit(drop, engine.data(z).update()).result(timeout=240)
    assert z[0] == 5


# What they hold is given back: otherwise memory ends after a few.
@pytest.mark.parametrize("devices", DEVICES)
def test_factors(devices):
    z = np.zeros(1)
    with quadriga.Engine(devices, host_memory="8MiB") as engine:
        for _ in range(14):
            held.append(linalg.cho_factor(np.eye(512), engine=engine))
            engine.submit(drop, engine.data(z).update()).result(timeout=240)
    assert z[0] == 14
