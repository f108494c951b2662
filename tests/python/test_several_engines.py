# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_several_engines.py: tasks of several engines on the same memory are ordered.
"""Increments are counted, wherever they are submitted; bodies pass on what they access."""

import threading
import time

import numpy as np
import pytest

import quadriga

LISTS = ["cpu:2", "emulated:2,memory=1MiB"]
A_MOMENT = 0.3  # that a task gives one that doesn't wait for it; one that waits needs none
NUMBER = 50


@pytest.fixture(params=LISTS)
def e(request):
    with quadriga.Engine(request.param) as made:
        yield made


@pytest.fixture(params=LISTS)
def f(request):
    with quadriga.Engine(request.param) as made:
        yield made


@quadriga.codelet(access=["update"], host_only=False)
def increase(x):
    was = x.copy()
    time.sleep(1e-3)  # as if it took time
    x[...] = was + 1


class Race:
    """A task that another engine's task would overtake, if nothing kept it from doing so."""

    def __init__(self):
        self.has_come = threading.Event()
        self.first = quadriga.codelet(access=["update"], host_only=False)(self._first)
        self.look_first = quadriga.codelet(access=["read"], host_only=False)(self._look_first)
        self.look = quadriga.codelet(access=["read"], host_only=False)(self._look)
        self.overwrite = quadriga.codelet(access=["write"], host_only=False)(self._overwrite)

    def _first(self, x):
        self.has_come.wait(A_MOMENT)
        x += 1

    def _look_first(self, x):
        self.has_come.wait(A_MOMENT)
        return float(x.sum())

    def _look(self, x):
        self.has_come.set()
        return float(x.sum())

    def _overwrite(self, x):
        self.has_come.set()
        x[...] = 7


def test_increments_by_turns(e, f):
    a = np.zeros(100)
    for _ in range(NUMBER):
        e.submit(increase, e.data(a).update())
        f.submit(increase, f.data(a).update())
    e.wait()
    f.wait()
    assert (a == 2 * NUMBER).all()


@pytest.mark.parametrize("resident", [False, True])
def test_a_reader_follows_another_engine_s_writer(e, f, resident):
    race, a = Race(), np.zeros((10, 10))
    e.submit(race.first, e.data(a, resident=resident).update())
    assert f.submit(race.look, f.data(a[2:4]).read()).result() == 20
    e.submit(race.first, e.data(a, resident=resident).update())
    assert f.submit(race.look, f.data(a[2:4]).read()).result() == 40


def test_a_writer_follows_another_engine_s_reader(e, f):
    race, a = Race(), np.ones(10)
    data = e.data(a, resident=True)
    total = e.submit(race.look_first, data.read())
    f.submit(race.overwrite, f.data(a).write())
    assert total.result() == 10
    assert e.submit(race.look, data.read()).result() == 70


def test_a_writer_s_failure_is_raised(e, f):
    @quadriga.codelet(access=["update"])
    def broken(x):
        raise KeyError("no such line")

    a = np.zeros(3)
    e.submit(broken, e.data(a).update())
    with pytest.raises(KeyError, match="no such line"):
        f.submit(increase, f.data(a).update())
    f.submit(increase, f.data(np.zeros(3)).update())


def test_a_body_passes_on_what_its_task_accesses(f):
    a = np.zeros(10)

    @quadriga.codelet(access=["update"])
    def body(x):
        for _ in range(3):
            f.submit(increase, f.data(a).update())
        f.wait()

    f.data(np.zeros(1))
    with quadriga.Engine("cpu:2") as engine:
        for _ in range(2):
            engine.submit(body, engine.data(a).update())
    assert (a == 6).all()


def test_a_body_does_not_wait_for_other_tasks(f):
    a, b, has_tried = np.zeros(10), np.zeros(10), threading.Event()

    @quadriga.codelet(access=["update"])
    def later(x):
        has_tried.wait()
        x += 1

    @quadriga.codelet(access=["update"])
    def body(x):
        try:
            with pytest.raises(quadriga.Unavailable, match=r"float64 10.*'later' of another"):
                f.submit(increase, f.data(b).update())
            f.submit(increase, f.data(x.copy()).update())
        finally:
            has_tried.set()

    with quadriga.Engine("cpu:2") as engine:
        kept = f.data(np.zeros(1))
        engine.submit(later, engine.data(b).update())
        engine.submit(body, engine.data(a).update())
        engine.wait()
        f.submit(increase, f.data(b).update())
        f.wait()
        assert kept and (b == 2).all()


def test_a_thread_that_a_body_waits_for_is_refused_or_passes(f):
    a, refused = np.zeros(10), []

    @quadriga.codelet(access=["update"])
    def body(x):
        def work():
            try:
                f.submit(increase, f.data(a).update())
            except quadriga.Unavailable as error:
                refused.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    f.data(np.zeros(1))
    with quadriga.Engine("cpu:2") as engine:
        engine.submit(body, engine.data(a).update())
    f.wait()
    assert len(refused) == 1 and "neither would end" in refused[0]


def test_threads_with_engines_of_their_own_never_wait_for_each_other():
    a, counts = np.zeros(100), []

    def work(devices):
        with quadriga.Engine(devices) as engine:
            futures = [engine.submit(increase, engine.data(a).update()) for _ in range(NUMBER)]
            counts.append(sum(future.exception() is None for future in futures))

    threads = [threading.Thread(target=work, args=(each,)) for each in LISTS * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [NUMBER] * 4


@pytest.mark.parametrize("resident", [False, True])
def test_the_host_accesses_what_other_engines_know(resident):
    array = np.zeros(64)
    with quadriga.Engine("emulated:1,memory=1MiB") as one, quadriga.Engine("cpu:1") as two:
        known = one.data(array, resident=resident)
        one.submit(increase, known.update())
        with two.data(array).on_host("rw") as here:
            here += 10
        one.submit(increase, known.update())
        with two.data(array).on_host("r") as here:
            assert here.tolist() == [12] * 64
        one.wait()
