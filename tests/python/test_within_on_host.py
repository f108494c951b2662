# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_within_on_host.py: what a thread does while it has access to data on the host.
"""Tasks that follow the access: asked for, forgotten, beyond the window; access within access."""

import gc

import numpy as np
import pytest
from test_sharing import COST, ENGINES, engine, increase

import quadriga

__all__ = ["engine"]


def test_asking_for_a_task_that_waits_for_the_access_leaves_the_task_as_it_is(engine):
    x = np.zeros(8)
    data = engine.data(x, resident=True)
    with data.on_host("rw"):
        future = engine.submit(increase, data.update())
        with pytest.raises(quadriga.Unavailable, match="leave it before you wait"):
            future.result(timeout=120)
        with pytest.raises(quadriga.Unavailable):
            future.exception(timeout=120)
        assert not future.done()
    assert future.result(timeout=120) is None
    engine.wait()
    assert x[0] == 1


def test_a_task_that_was_asked_for_and_forgotten_still_runs(engine):
    x = np.zeros(8)
    data = engine.data(x, resident=True)
    with data.on_host("rw"):
        future = engine.submit(increase, data.update())
        with pytest.raises(quadriga.Unavailable):
            future.result(timeout=120)
        del future
        gc.collect()
    engine.wait(timeout=120)
    assert x[0] == 1


@pytest.mark.parametrize("where", ENGINES)
def test_more_tasks_than_the_window_has_room_for(where):
    x = np.zeros(8)
    with quadriga.Engine(**ENGINES[where], window=32) as small:
        data = small.data(x, resident=True)
        with data.on_host("rw"):
            for _ in range(100):
                small.submit(increase, data.update())
            assert x[0] == 0
        small.wait(timeout=120)
    assert x[0] == 100


def test_access_to_two_parts_of_an_array_and_then_to_all_of_it(engine):
    x = np.zeros(16)
    whole, left, right = (engine.data(part, resident=True) for part in (x, x[:8], x[8:]))
    engine.submit(increase, left.update())
    engine.submit(increase, right.update())
    with left.on_host("rw") as first, right.on_host("rw") as second:
        first += 1
        second += 2
        with whole.on_host("rw") as array:
            np.testing.assert_array_equal(array, [2] * 8 + [3] * 8)
            array += 10
        engine.submit(increase, right.update())
    engine.wait()
    np.testing.assert_array_equal(x, [12] * 8 + [14] * 8)


def test_what_an_access_does_not_touch_stays_where_it_is(engine):
    x = np.zeros(16)
    whole, left, right = (engine.data(part, resident=True) for part in (x, x[:8], x[8:]))
    engine.submit(increase, left.update()).result(timeout=120)
    with right.on_host("rw") as array:
        engine.submit(increase, right.update())
        array += 5
    whole.wait()
    np.testing.assert_array_equal(x, [1] * 8 + [6] * 8)


def test_a_body_that_asks_for_a_task_on_a_device_leaves_that_as_it_is():
    x, y = np.zeros(4), np.zeros(4)
    with quadriga.Engine("emulated:1") as engine:
        first = engine.data(x)
        told = []

        @quadriga.codelet(access=["update"], cost=COST, submits=True)
        def asks(y):
            later = engine.submit(increase, first.update())
            try:
                later.result(timeout=120)
            except quadriga.Unavailable as error:
                told.append(str(error))
            y += 1

        engine.submit(asks, engine.data(y).update())
        engine.wait(timeout=120)
        assert told and "can't wait" in told[0]
    assert (x[0], y[0]) == (1, 1)
