# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_given.py: futures as operands and parameters of later tasks.
import array
import gc
import pickle
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from codelets_of_tests import Planned, increment

import quadriga

MACHINE = Path(__file__).resolve().parents[2] / "machines" / "idgraf.json"
COST = quadriga.Cost("dgemm", 64, 64**3)


def timed(access, body, name=None):
    """A codelet for engines of all kinds."""
    return quadriga.codelet(access=access, cost=COST, name=name, host_only=False)(body)


make = timed(["read"], lambda x, by=1: x * by, "make")
add = timed(["read", "read"], lambda x, y: x + y, "add")
plus = timed([], lambda a, b=0: a + b, "plus")
store = timed(["write"], lambda out, value: np.copyto(out, value), "store")
total = timed([], lambda parts: sum(parts), "total")


def _fail(x=None, value=None):
    raise Planned("on purpose")


fail = timed(["read"], _fail, "fail")


@pytest.fixture(params=["cpu:2", "emulated:2,memory=1MiB", "virtual"])
def engine(request):
    if request.param == "virtual":
        devices = f"machine={MACHINE}:2,memory=1MiB"
        made = quadriga.Engine(devices, virtual_clock=True)
    else:
        made = quadriga.Engine(request.param)
    with made:
        yield made


class TestValues:
    def test_an_operand(self, engine):
        x = engine.data(np.arange(3.0))
        first = engine.submit(make, x.read(), by=2)
        second = engine.submit(add, first, x.read())
        third = engine.submit(add, x.read(), second)
        fourth = engine.submit(add, third, third)
        assert fourth.result(240).tolist() == [0, 8, 16]

    def test_a_parameter(self, engine):
        out = np.zeros(3)
        product = engine.submit(make, engine.data(np.arange(3.0)).read(), by=2)
        engine.submit(store, engine.data(out).write(), value=product)
        engine.wait()
        assert out.tolist() == [0, 2, 4]

    def test_parameters_that_hold_some(self, engine):
        ones = engine.data(np.ones(1))
        parts = [engine.submit(make, ones.read(), by=k) for k in range(10)]
        assert float(engine.submit(total, parts=parts).result(240)[0]) == 45

        look = timed([], lambda where: [where["a"], where["b"][0][1], where["c"]])
        there = engine.submit(look, where={"a": parts[1], "b": ([0, parts[2]],), "c": 3})
        assert [int(np.sum(each)) for each in there.result(240)] == [1, 2, 3]

    def test_a_parameter_that_holds_itself(self, engine):
        around = [1]
        around.append(around)
        assert engine.submit(plus, a=0, b=1).result(240) == 1
        own = timed([], lambda value: len(value))
        assert engine.submit(own, value=around).result(240) == 2

    def test_none_and_things_of_any_type(self, engine):
        nothing = engine.submit(timed([], lambda: None))
        same = timed([], lambda value: value)
        assert engine.submit(same, value=nothing).result(240) is None
        marks = engine.submit(timed([], lambda: {"a": {1, 2}}))
        assert engine.submit(same, value=marks).result(240) == {"a": {1, 2}}

    def test_one_that_has_ended(self, engine):
        first = engine.submit(make, engine.data(np.ones(2)).read(), by=3)
        engine.wait()
        assert engine.submit(add, first, first).result(240).tolist() == [6, 6]

    def test_chains_longer_than_the_window(self):
        for devices in ("cpu:2", "emulated:2,memory=1MiB"):
            for window in (1, 2, 50):
                with quadriga.Engine(devices, window=window) as engine:
                    last = engine.submit(plus, a=0)
                    for _ in range(500):
                        last = engine.submit(plus, a=last, b=1)
                    assert last.result(240) == 500

    def test_arrays_given_as_operands_are_read_only(self, engine):
        def write(x):
            x[0] = 1

        first = engine.submit(make, engine.data(np.ones(2)).read())
        with pytest.raises(ValueError, match="read-only"):
            engine.submit(timed(["read"], write), first).result(240)
        with pytest.raises(ValueError, match="read-only"):
            engine.wait()

    def test_arrays_given_by_name_are_read_only_copies(self, engine):
        opened = threading.Event()

        def add(x, by):
            opened.wait(120)
            assert not by.flags.writeable
            x += by

        x, by = np.zeros(3), np.ones(3)
        frozen = np.ones(3)
        frozen.flags.writeable = False
        data = engine.data(x)
        task = timed(["update"], add)
        for each in (by, by[::-1], frozen, np.broadcast_to(by[:1], 3)):
            engine.submit(task, data.update(), by=each)
        same = engine.submit(timed([], lambda by: by is frozen), by=frozen)
        by[:] = 100
        opened.set()
        engine.wait()
        assert x.tolist() == [4, 4, 4]
        assert not same.result()  # a view that was made before it was frozen could write it

    def test_arrays_on_memory_that_something_else_may_write_are_copies(self, engine):
        opened = threading.Event()

        def total(by):
            opened.wait(120)
            return float(by.sum())

        class Lender:
            memory = np.ones(3)
            __array_interface__ = memory.__array_interface__

        memory, lender = array.array("d", [1, 1, 1]), Lender()
        found = [np.frombuffer(memory), np.asarray(lender), np.frombuffer(bytes(memory))]
        for each in found:
            each.flags.writeable = False
        futures = [engine.submit(timed([], total), by=each) for each in found]
        same = engine.submit(timed([], lambda by: by is found[2]), by=found[2])
        memory[0] = lender.memory[0] = 100
        opened.set()
        assert [future.result(240) for future in futures] == [3, 3, 3]
        assert same.result(240)  # bytes never change

    def test_from_several_threads(self):
        with quadriga.Engine("cpu:2") as engine:
            totals = []

            def work():
                last = engine.submit(plus, a=0)
                for _ in range(200):
                    last = engine.submit(plus, a=last, b=1)
                totals.append(last.result(240))

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(240)
            assert totals == [200] * 4


class TestFailures:
    def test_what_follows_is_cancelled_and_names_what_failed_first(self, engine):
        out = np.zeros(2)
        data = engine.data(out)
        bad = engine.submit(fail, engine.data(np.ones(2)).read())
        second = engine.submit(add, bad, data.read())
        third = engine.submit(store, data.write(), value=second)
        fourth = engine.submit(timed(["update"], increment.cpu), data.update())
        fifth = engine.submit(plus, a=fourth)
        for each in (second, third, fourth, fifth):
            error = each.exception(240)
            assert isinstance(error, quadriga.Cancelled)
            assert f"did not run: task {bad.id} 'fail' on" in str(error)
            assert "Planned: on purpose" in str(error)
        with pytest.raises(Planned):
            engine.wait()
        engine.wait()
        assert isinstance(bad.exception(), Planned)

    def test_one_that_had_failed_before(self, engine):
        bad = engine.submit(fail, engine.data(np.ones(2)).read())
        with pytest.raises(Planned):
            engine.wait()
        late = engine.submit(plus, a=1, b=bad)
        with pytest.raises(quadriga.Cancelled, match=f"task {bad.id} 'fail'"):
            late.result(240)
        engine.wait()  # it was told before

    def test_cancelling_reaches_what_follows(self):
        opened = threading.Event()
        wait = quadriga.codelet(access=["update"])(lambda x: opened.wait(120))
        with quadriga.Engine("cpu:1") as engine:
            data = engine.data(np.zeros(1))
            engine.submit(wait, data.update())
            second = engine.submit(increment, data.update())
            third = engine.submit(plus, a=second)
            assert second.cancel()
            opened.set()
            with pytest.raises(quadriga.Cancelled, match=f"task {second.id} 'increment' was canc"):
                third.result(240)
            assert not third.cancelled()
            engine.wait()

    def test_many_of_them_are_failures_all_the_same(self, engine):
        bad = engine.submit(fail, engine.data(np.ones(2)).read())
        lost = [engine.submit(plus, a=bad) for _ in range(6000)]
        with pytest.raises(Planned):
            engine.wait()
        assert {type(each.exception(240)) for each in lost} == {quadriga.Cancelled}


class TestRefused:
    def test_one_that_would_be_written(self, engine):
        first = engine.submit(make, engine.data(np.ones(2)).read())
        with pytest.raises(TypeError, match="operand 0 of codelet 'increment' is a Future"):
            engine.submit(increment, first)
        with pytest.raises(ValueError, match="codelet 'add' takes 2 operands, got 1"):
            engine.submit(add, first)
        with pytest.raises(TypeError, match="operand 1 of codelet 'add' is int"):
            engine.submit(add, first, 3)

    def test_one_of_another_engine(self, engine):
        with quadriga.Engine("cpu:1") as other:
            first = other.submit(plus, a=1)
            with pytest.raises(ValueError, match="another engine"):
                engine.submit(plus, a=first)
            second = engine.submit(plus, a=1)
            with pytest.raises(ValueError, match="two engines"):
                engine.submit(plus, a=first, b=second)
            assert engine.submit(plus, a=first.result(240)).result(240) == 1

    def test_inside_of_a_body_what_waits_for_it(self):
        told = threading.Event()
        found = {}

        def divide(x):
            assert told.wait(120)
            inner = engine.submit(plus, a=1)
            found["inner"] = engine.submit(plus, a=inner, b=1)
            for name in ("around", "later"):
                try:
                    engine.submit(plus, a=found[name])
                except ValueError as error:
                    found[name] = str(error)

        parent = quadriga.codelet(access=["update"], submits=True)(divide)
        with quadriga.Engine("cpu:2") as engine:
            data = engine.data(np.zeros(1))
            found["around"] = engine.submit(parent, data.update())
            found["later"] = engine.submit(increment, data.update())
            told.set()
            engine.wait(120)
            assert found["inner"].result() == 2
        assert "can't follow task 1, which may wait for it" in found["around"]
        assert "can't follow task 2, which may wait for it" in found["later"]


class TestMemory:
    def test_results_go_with_their_futures(self, engine):
        class Thing:
            pass

        make_thing = timed([], Thing)
        look = timed([], lambda thing: isinstance(thing, Thing))
        first = engine.submit(make_thing)
        second = engine.submit(look, thing=first)
        assert second.result(240)
        thing = weakref.ref(first.result(240))
        assert thing() is not None
        del first
        gc.collect()
        assert thing() is None
        assert second.result()

    def test_a_result_lets_the_operands_go(self, engine):
        array = np.ones(4)
        seen = weakref.ref(array)
        data = engine.data(array)
        future = engine.submit(make, data.read())
        assert future.result(240).tolist() == [1] * 4
        del array, data
        engine.temporary(1)  # a look at what nobody holds any more
        gc.collect()
        assert seen() is None
        assert future.result().tolist() == [1] * 4

    def test_a_task_that_has_not_begun_holds_what_it_is_given(self):
        opened = threading.Event()
        with quadriga.Engine("cpu:2") as engine:
            data = engine.data(np.zeros(1))
            engine.submit(timed(["update"], lambda x: opened.wait(120)), data.update())
            late = engine.submit(
                timed(["update"], lambda x, value: value),
                data.update(),
                value=engine.submit(plus, a=5),
            )
            gc.collect()
            opened.set()
            assert late.result(240) == 5

    def test_futures_dont_pickle(self, engine):
        with pytest.raises(TypeError):
            pickle.dumps(engine.submit(plus, a=1))
