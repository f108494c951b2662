# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_virtual_sources.py: under the virtual clock, matrices that the host gathers or
# computes tile by tile, on described machines whose host has no times of kernels.
import numpy as np
import pytest

import quadriga
from quadriga import linalg

N = 90
MACHINES = ["h200x1.json:1", "h200x4.json:2", "idgraf.json:2,memory=1MiB"]


def function(i, j):
    return np.exp(-abs(i - j) / 5.0) + 3.0 * (i == j)


dense = function(*np.ogrid[:N, :N])
wide = np.repeat(np.repeat(dense, 2, 0), 2, 1)
OPERANDS = {
    "function": lambda: linalg.from_function(N, function),
    "reversed": lambda: dense[::-1],
    "reversed columns": lambda: dense[:, ::-1],
    "strided": lambda: wide[::2, ::2],
}


@pytest.mark.parametrize("devices", MACHINES)
@pytest.mark.parametrize("operand", OPERANDS)
def test_tiles_that_the_host_makes(devices, operand):
    a = OPERANDS[operand]()
    ends = set()
    for _ in range(2):
        with quadriga.Engine("machine=machines/" + devices, virtual_clock=True) as engine:
            product = linalg.matmul(a, np.eye(N), engine=engine, tile=40)
            ends.add(engine.now())
        np.testing.assert_allclose(product, np.asarray(a))
    assert len(ends) == 1


def test_factorizations_of_functions():
    a = linalg.from_function(N, function, hermitian=True)
    with quadriga.Engine("machine=machines/h200x1.json:1", virtual_clock=True) as engine:
        x = linalg.solve(a, np.ones(N), assume_a="pos", engine=engine, tile=40)
    np.testing.assert_allclose(dense @ x, np.ones(N))


def test_gathering_takes_time():
    def end_of(a):
        with quadriga.Engine("machine=machines/h200x1.json:1", virtual_clock=True) as engine:
            linalg.matmul(a, np.eye(N), engine=engine, tile=N)
            return engine.now()

    memory = 205e9  # Bytes per second.
    assert end_of(dense[::-1]) >= end_of(dense) + 2 * dense.nbytes / memory
