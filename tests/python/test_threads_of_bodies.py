# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_threads_of_bodies.py: what a body leaves in its thread isn't the next one's.
import contextvars
import decimal
import threading
import time

import numpy as np

import quadriga

mark = contextvars.ContextVar("mark", default="none")


def test_context_variables_end_with_the_body(engine):
    @quadriga.codelet(access=["update"])
    def leave(x):
        seen = mark.get(), decimal.getcontext().prec, np.geterr()["over"]
        mark.set("left behind")
        decimal.getcontext().prec = 3
        np.seterr(over="raise")
        return seen

    mark.set("the program's")
    usual = decimal.getcontext().prec, np.geterr()["over"]
    data = [engine.data(np.zeros(1)) for _ in range(4)]
    futures = [engine.submit(leave, data[k % 4].update()) for k in range(40)]
    assert {future.result(240) for future in futures} == {("none", *usual)}
    assert mark.get() == "the program's"
    assert np.geterr()["over"] == usual[1]


def test_threads_keep_what_python_knows_of_them():
    """To make it anew for each body costs more than a small body does."""
    with quadriga.Engine("cpu:1") as engine:
        own = threading.local()
        count = quadriga.codelet(access=["update"])(
            lambda x: own.__dict__.__setitem__("n", own.__dict__.get("n", 0) + 1) or own.n
        )
        data = engine.data(np.zeros(1))
        futures = [engine.submit(count, data.update()) for _ in range(5)]
        assert [future.result(240) for future in futures] == [1, 2, 3, 4, 5]


def threads_of_the_process():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Threads"))


def test_threads_of_closed_engines_end():
    before = threads_of_the_process()
    for _ in range(20):
        with quadriga.Engine("cpu:2") as engine:
            engine.submit(quadriga.codelet(access=["update"])(lambda x: None),
                          engine.data(np.zeros(1)).update())  # fmt: skip
    assert threads_of_the_process() < before + 20


def submissions_until_a_body_begins():
    with quadriga.Engine("cpu:1") as engine:
        begun = threading.Event()
        quick = quadriga.codelet(access=["update"])(lambda x: begun.set())
        data = engine.data(np.zeros(1))
        end = time.monotonic() + 240
        count = 0
        while not begun.is_set() and time.monotonic() < end:
            engine.submit(quick, data.update())
            count += 1
        assert begun.is_set()
        return count


def test_who_submits_much_lets_bodies_and_other_threads_go_on():
    """At the latest it does when the window is full; other programs may take the worker's core."""
    assert min(submissions_until_a_body_begins() for _ in range(5)) < 10_000
