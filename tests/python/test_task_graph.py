# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_task_graph.py: graphs as functions of task indices from Python.
import contextlib
import threading

import numpy as np
import pytest
from paces_of_tests import at_some_pace

import quadriga

EDGE = 4


@quadriga.codelet(access=["update"])
def halve(a):
    a /= 2


@quadriga.codelet(access=["read", "update"])
def divide(a, b):
    b /= 1 + a


@quadriga.codelet(access=["read", "read", "update"])
def subtract(a, b, c):
    c -= a * b


def grid(engine, values):
    return {(i, j): engine.data(values[i, j]) for i in range(EDGE) for j in range(EDGE)}


def fresh():
    return np.arange(1.0, 1 + EDGE * EDGE * 2).reshape(EDGE, EDGE, 2)


def factorization(t):
    graph = quadriga.TaskGraph(EDGE)
    graph.add(halve, lambda k: [t[k, k].update()], priority=lambda k: -k)
    below = lambda k: range(k + 1, EDGE)  # noqa: E731
    graph.add(divide, lambda k, i: [t[k, k].read(), t[i, k].update()], ranges=[below])
    graph.add(
        subtract,
        lambda k, i, j: [t[i, k].read(), t[j, k].read(), t[i, j].update()],
        ranges=[below, lambda k, i: range(k + 1, i + 1)],
    )
    return graph


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
def test_same_bits_as_by_hand(devices):
    by_hand, values = fresh(), fresh()
    count = 0
    with quadriga.Engine(devices) as engine:
        t = grid(engine, by_hand)
        for k in range(EDGE):
            engine.submit(halve, t[k, k].update(), priority=-k)
            for i in range(k + 1, EDGE):
                engine.submit(divide, t[k, k].read(), t[i, k].update())
            for i in range(k + 1, EDGE):
                for j in range(k + 1, i + 1):
                    engine.submit(subtract, t[i, k].read(), t[j, k].read(), t[i, j].update())
                    count += 1
            count += EDGE - k
        engine.wait()
    with quadriga.Engine(devices) as engine:
        assert factorization(grid(engine, values)).submit(engine) == count
        engine.wait()
    assert (values == by_hand).all()


def test_parameters_are_functions_of_indices():
    @quadriga.codelet(access=["update"])
    def add(a, by):
        a += by

    value = np.zeros(1)
    with quadriga.Engine("cpu:1") as engine:
        data = engine.data(value)
        graph = quadriga.TaskGraph(5)
        graph.add(add, lambda k: [data.update()], parameters=lambda k: {"by": k})
        graph.submit(engine)
        engine.wait()
    assert value[0] == 10


def test_errors_name_the_task():
    values = fresh()
    with quadriga.Engine("cpu:1") as engine, quadriga.Engine("cpu:1") as other:
        t = grid(engine, values)
        outside = quadriga.TaskGraph(9)
        outside.add(halve, lambda k: [t[k, k].update()])
        with pytest.raises(KeyError) as caught:
            outside.submit(engine)
        assert caught.value.__notes__ == ["in task halve(4) of a graph"]
        foreign = quadriga.TaskGraph(1)
        foreign.add(halve, lambda k, i: [t[k, i].update()], ranges=[lambda k: [3]])
        with pytest.raises(quadriga.InvalidArgument) as caught:
            foreign.submit(other)
        assert caught.value.__notes__ == ["in task halve(0, 3) of a graph"]


def test_failures_are_those_of_tasks():
    @quadriga.codelet(access=["update"])
    def fail(a):
        raise ZeroDivisionError("on purpose")

    with quadriga.Engine("cpu:1") as engine:
        data = engine.data(np.zeros(1))
        graph = quadriga.TaskGraph(3)
        graph.add(fail, lambda k: [data.update()])
        assert graph.submit(engine) == 3
        with pytest.raises(ZeroDivisionError, match="on purpose"):
            engine.wait()


def test_a_failure_in_the_middle_cancels_what_follows_it_and_nothing_else():
    @quadriga.codelet(access=["update"])
    def add(a, step, at):
        if step == at:
            raise ZeroDivisionError(f"at step {step}")
        a += 1

    values = np.zeros((3, 1))
    with quadriga.Engine("cpu:2") as engine:
        data = [engine.data(each) for each in values]
        graph = quadriga.TaskGraph(6)
        graph.add(
            add,
            lambda k, i: [data[i].update()],
            ranges=[lambda k: range(3)],
            parameters=lambda k, i: {"step": k, "at": 2 if i == 1 else -1},
        )
        assert graph.submit(engine) == 18
        with pytest.raises(ZeroDivisionError, match="at step 2"):
            engine.wait()
        assert values[:, 0].tolist() == [6, 2, 6]
        # The same engine runs another graph to its end.
        fresh = np.zeros(1)
        other = engine.data(fresh)
        again = quadriga.TaskGraph(4)
        again.add(add, lambda k: [other.update()], parameters=lambda k: {"step": k, "at": -1})
        assert again.submit(engine) == 4
        engine.wait()
        assert fresh[0] == 4


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
def test_cancel_while_it_is_unrolled(devices):
    def cancelled_in_time(pace):
        entered, may_end = threading.Event(), threading.Event()

        @quadriga.codelet(access=["update"])
        def held(a):
            entered.set()
            may_end.wait(240)
            a += 1

        value = np.zeros(1)
        with quadriga.Engine(devices, window=8) as engine:
            data = engine.data(value)

            def operands(k):
                if k == 3:  # the first runs, and two wait for it
                    assert entered.wait(240)
                    # Not before cancel() has told the two, which it does at once.
                    threading.Timer(0.1 * pace, may_end.set).start()
                    engine.cancel()
                return [data.update()]

            graph = quadriga.TaskGraph(6)
            graph.add(held, operands)
            assert graph.submit(engine) == 6
            with contextlib.suppress(quadriga.Error):
                engine.wait()  # tasks after the cancelled ones lack their content
            assert value[0] == 1
            fresh = np.zeros(1)
            engine.submit(held, engine.data(fresh).update())
            engine.wait()
            assert fresh[0] == 1

    at_some_pace(cancelled_in_time)


def test_stop_ends_it():
    value = np.ones(1)
    asked = []
    with quadriga.Engine("cpu:1") as engine:
        data = engine.data(value)
        graph = quadriga.TaskGraph(10)
        graph.add(halve, lambda k: asked.append(k) or [data.update()])
        assert graph.submit(engine, stop=lambda: len(asked) == 3) == 3
        assert graph.submit(engine, stop=lambda: True) == 0
        engine.wait()
    assert asked == [0, 1, 2]
    assert value[0] == 1 / 8


def test_wrong_arguments_are_named():
    graph = quadriga.TaskGraph(1)
    with pytest.raises(quadriga.InvalidArgument, match="-1 steps"):
        quadriga.TaskGraph(-1)
    with pytest.raises(quadriga.InvalidArgument, match="expected a Codelet, not int"):
        graph.add(3, lambda k: [])
    with pytest.raises(quadriga.InvalidArgument, match="operands of halve: .*not list"):
        graph.add(halve, [])
    with pytest.raises(quadriga.InvalidArgument, match=r"ranges\[0\] of halve: .*not range"):
        graph.add(halve, lambda k, i: [], ranges=[range(3)])
