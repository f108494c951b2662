# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_ended_is_home.py: what a program may do once it knows that tasks ended.
"""A program that is right on cores is right on devices with memory of their own, whichever call
told it that its tasks have ended: arrays that no pending task accesses are the program's."""

import asyncio
import concurrent.futures
import contextlib
import threading

import numpy as np
import pytest
from test_sharing import COST, ENGINES, double, increase

import quadriga
from quadriga import linalg


@pytest.fixture(params=ENGINES)
def engine(request):
    with quadriga.Engine(**ENGINES[request.param]) as made:
        yield made


@pytest.fixture
def devices():
    with quadriga.Engine(**ENGINES["emulated"]) as made:
        yield made


total = quadriga.codelet(access=["read"], name="total", cost=COST)(np.sum)


def by_callback(future, data):
    told = threading.Event()
    future.add_done_callback(lambda _: told.set())
    if future._tasks.is_driven_by_waits:  # nobody else drives it
        future.result()
    assert told.wait(60)


def on_host(future, data):
    with data.on_host("r"):
        pass


async def awaited(future):
    await future


#: What tells a program that a task which wrote `data` has ended.
WAYS = {
    "result": lambda future, data: future.result(),
    "exception": lambda future, data: future.exception(),
    "await": lambda future, data: asyncio.run(awaited(future)),
    "concurrent.futures": lambda future, data: concurrent.futures.wait([future]),
    "callback": by_callback,
    "wait of its data": lambda future, data: data.wait(),
    "on_host": on_host,
    "asarray": lambda future, data: np.asarray(data),
    "linalg": lambda future, data: linalg.matmul(
        data.known.reshape(-1, 1), np.ones((1, 1)), engine=data.engine
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_that_feeds_an_input_and_reads_a_result(engine, way):
    x, y = np.zeros(8), np.zeros(8)
    a, b = engine.data(x), engine.data(y)
    found = []
    for step in range(4):
        x[:] = step
        WAYS[way](engine.submit(double, a.read(), b.write()), b)
        found.append(y[3])
    assert found == [0, 2, 4, 6]


@pytest.mark.parametrize("way", WAYS)
def test_what_the_program_writes_between_updates_is_not_lost(engine, way):
    x = np.zeros(8)
    a = engine.data(x)
    for _ in range(3):
        WAYS[way](engine.submit(increase, a.update()), a)
        x *= 10
    assert x[0] == 1110


@pytest.mark.parametrize("way", WAYS)
def test_what_the_tasks_before_it_read_and_wrote(engine, way):
    """The program knows that these have ended, too: the task followed them."""
    x, y, z = np.zeros(8), np.zeros(8), np.zeros(8)
    a, b, c = (engine.data(each) for each in (x, y, z))
    for step in range(3):
        x[:] = step
        y[:] = -1
        engine.submit(double, a.read(), b.write())
        WAYS[way](engine.submit(double, b.read(), c.write()), c)
        assert (y[0], z[0]) == (2 * step, 4 * step)


def test_views_are_as_current_as_their_array(engine):
    x = np.zeros((4, 6))
    part = engine.data(x[1:3])
    whole = engine.data(x)
    for step in range(3):
        x[...] = step
        engine.submit(increase, part.update()).result()
        x[0] = 7
        assert engine.submit(total, whole.read()).result() == 42 + 12 * (step + 1) + 6 * step
        np.testing.assert_array_equal(x[1:3], step + 1)


def test_what_pending_tasks_read_can_be_read(devices):
    """A later task reads the result of an earlier one for a while: so may the program."""
    x, y = np.ones(8), np.zeros(8)
    go, begun = threading.Event(), threading.Event()

    @quadriga.codelet(access=["read"], host_only=False)
    def look(y):
        begun.set()
        assert go.wait(60)
        return y.sum()

    b = devices.data(y)
    first = devices.submit(double, devices.data(x).read(), b.write())
    second = devices.submit(look, b.read())
    assert begun.wait(60)
    first.result()
    assert y[0] == 2
    go.set()
    assert second.result() == 16


def test_the_failure_of_a_task_hides_no_result_of_others(devices):
    x, y = np.zeros(8), np.zeros(8)
    a = devices.data(x)

    @quadriga.codelet(access=["read", "update"], host_only=False)
    def fail(x, y):
        raise KeyError("no")

    devices.submit(increase, a.update())
    with pytest.raises(KeyError):
        devices.submit(fail, a.read(), devices.data(y).update()).result()
    assert x[0] == 1
    x[:] = 5
    assert devices.submit(total, a.read()).result() == 40
    with contextlib.suppress(KeyError):
        devices.wait()


def test_resident_arrays_stay_on_devices(devices):
    x = np.zeros(8)
    a = devices.data(x, resident=True)
    devices.submit(increase, a.update()).result()
    moved = sum(link.bytes for link in devices.counters().links)
    for _ in range(5):
        devices.submit(increase, a.update()).result()
    assert sum(link.bytes for link in devices.counters().links) == moved
    assert not a.array.flags.writeable


def test_what_has_come_home_is_not_copied_again(devices):
    arrays = [np.zeros(1000) for _ in range(5)]
    data = [devices.data(each) for each in arrays]
    futures = [devices.submit(increase, each.update(), device=0) for each in data]
    for future in futures:
        future.result()
    moved = sum(link.bytes for link in devices.counters().links)
    for future in futures:
        future.result()
    devices.wait()
    assert sum(link.bytes for link in devices.counters().links) == moved == 2 * 5 * 8000


def test_threads_that_ask_for_results_at_once(devices):
    arrays = [np.zeros(5000) for _ in range(8)]

    def work(x):
        data = devices.data(x)
        for step in range(30):
            devices.submit(increase, data.update()).result()
            if x[-1] != step + 1 + 100 * step:
                return step, x[-1]
            x += 100
        return x[0]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, arrays)) == [3030.0] * 8


def test_a_result_within_an_access_on_the_host(devices):
    x, y = np.zeros(8), np.zeros(8)
    a, b = devices.data(x), devices.data(y)
    with a.on_host("rw") as array:
        devices.submit(increase, b.update()).result()
        assert y[0] == 1
        array += 1
        y[:] = 10
    devices.submit(double, b.read(), a.write()).result()
    assert (x[0], y[0]) == (20, 10)
