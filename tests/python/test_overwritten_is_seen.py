# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_overwritten_is_seen.py: a factor is where its matrix was, for all who look.
"""`cho_factor(a, overwrite_a=True)`: tasks, linear algebra and programs see the factor in `a`."""

import numpy as np
import pytest
from test_sharing import COST, engine

import quadriga
from quadriga import linalg

__all__ = ["engine"]
N = 90


@quadriga.codelet(access=["read", "write"], cost=COST, host_only=False)
def duplicate(x, y):
    y[...] = x


def matrix():
    made = np.random.default_rng(4).standard_normal((N, N))
    return made @ made.T + N * np.eye(N)


def by_array(engine, a):
    return a


def by_data(engine, a):
    return np.asarray(engine.data(a))


def by_on_host(engine, a):
    with engine.data(a).on_host("r") as array:
        return array.copy()


def by_task(engine, a):
    found = np.zeros_like(a)
    engine.submit(duplicate, engine.data(a).read(), engine.data(found).write())
    engine.wait()
    return found


def by_alias(engine, a):
    found = np.zeros_like(a)
    for part in (slice(0, 50), slice(50, None)):
        engine.submit(duplicate, engine.data(a[part]).read(), engine.data(found[part]).write())
    engine.wait()
    return found


def by_linalg(engine, a):
    return linalg.matmul(engine.data(a), np.eye(N), engine=engine)


WAYS = [by_array, by_data, by_on_host, by_task, by_alias, by_linalg]


@pytest.mark.parametrize("look", WAYS)
@pytest.mark.parametrize("known", ["before", "resident", "later"])
def test_who_looks_at_the_matrix_sees_the_factor(engine, look, known):
    a = matrix()
    expected = np.linalg.cholesky(a)
    data = engine.data(a, resident=known == "resident") if known != "later" else None
    given = a if data is None else data
    factor = linalg.cho_factor(given, lower=True, overwrite_a=True, engine=engine, tile=40)
    np.testing.assert_allclose(np.tril(look(engine, a)), expected)
    np.testing.assert_allclose(matrix() @ factor.solve(np.ones(N)), np.ones(N))
    engine.close()
    np.testing.assert_allclose(np.tril(a), expected)


def test_what_is_written_after_the_factor_was_used_stays(engine):
    a, b = matrix(), np.ones(N)
    linalg.cho_factor(a, lower=True, overwrite_a=True, engine=engine, tile=40).solve(b)
    a[:] = 7
    linalg.matmul(np.eye(N), np.eye(N), engine=engine)
    np.testing.assert_array_equal(a, 7)
    a[:] = matrix()
    linalg.solve(a, b, assume_a="pos", overwrite_a=True, engine=engine, tile=40)
    a[:] = 7
    engine.close()
    np.testing.assert_array_equal(a, 7)


@pytest.mark.parametrize("given", [matrix(), matrix().astype(np.float32)], ids=["float", "other"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_solves_move_no_tile_that_is_there(given, overwrite):
    b = np.ones((N, 2), given.dtype)
    with quadriga.Engine("emulated:1,memory=4MiB") as engine:
        factor = linalg.cho_factor(given.copy(), overwrite_a=overwrite, tile=40)
        engine.reset_counters()
        factor.solve(b)
        assert engine.counters().bytes == 2 * b.nbytes


def test_a_copy_that_nobody_sees_stays_on_devices():
    with quadriga.Engine("emulated:1,memory=4MiB") as engine:
        factor = linalg.cho_factor(np.eye(N, dtype=int), overwrite_a=True, tile=N)
        home = [link.bytes for link in engine.counters().links if link.target_name == "host"]
        assert sum(home) == 0
        assert factor.held().devices["emulated0"] == N * N * 8
