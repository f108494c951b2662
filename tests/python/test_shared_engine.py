# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_shared_engine.py: calls of several threads, and of bodies, on one engine.
import contextlib
import threading

import numpy as np
import pytest
from codelets_of_tests import increment

import quadriga
from quadriga import linalg


def definite(n):
    a = np.random.default_rng(1).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def test_failures_are_told_to_who_called(engine):
    a, b = definite(150), np.ones(150)
    bad = -definite(100)
    good = threading.Event()
    outcomes = []

    def fail():
        while not good.is_set():
            try:
                linalg.cholesky(bad, engine=engine, tile=16)
                outcomes.append("no failure")
            except quadriga.NotPositiveDefinite:
                outcomes.append("not positive definite")
            except Exception as error:
                outcomes.append(repr(error))

    other = threading.Thread(target=fail)
    other.start()
    try:
        for _ in range(15):
            x = linalg.solve(a, b, assume_a="pos", engine=engine, tile=16)
            np.testing.assert_allclose(a @ x, b)
            y = np.zeros(4)
            engine.submit(increment, engine.data(y).update()).result(timeout=240)
            engine.wait(240)
            assert (y == 1).all()
    finally:
        good.set()
        other.join()
    assert set(outcomes) == {"not positive definite"}


def test_a_body_that_calls_without_saying_so_is_refused(engine):
    def calls(x):
        linalg.matmul(x, x, engine=engine)

    task = engine.submit(quadriga.codelet(["update"])(calls), engine.data(np.eye(3)).update())
    with pytest.raises(quadriga.Error, match=r"'calls' submits tasks and has to|can't wait"):
        task.result(timeout=240)
    with pytest.raises(quadriga.Error):
        engine.wait(240)
    works(engine)


def works(engine):
    x = np.zeros(2)
    engine.submit(increment, engine.data(x).update())
    engine.wait(240)
    assert (x == 1).all()


def test_a_call_that_fails_in_a_body_ends():
    engine = quadriga.Engine("cpu:2")

    def calls(x):
        linalg.cholesky(-np.eye(40), engine=engine, tile=8)

    codelet = quadriga.codelet(["update"], submits=True)(calls)
    task = engine.submit(codelet, engine.data(np.eye(3)).update())
    with pytest.raises(quadriga.NotPositiveDefinite):
        task.result(timeout=240)
    with pytest.raises(quadriga.NotPositiveDefinite):
        engine.wait(240)
    works(engine)


def test_a_body_that_cancels_leaves_an_engine_that_works(engine):
    def cancels(x):
        with contextlib.suppress(quadriga.Unavailable):  # on devices, where no task can wait
            engine.cancel()
        x += 1

    x = np.zeros(2)
    engine.submit(quadriga.codelet(["update"])(cancels), engine.data(x).update())
    engine.wait(240)
    assert (x == 1).all()
    works(engine)
