# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_results.py: what bodies return is the caller's own.
"""Operands are views of memory that an engine takes back, or of arrays that later tasks write."""

import collections
import dataclasses
import functools
import threading
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import quadriga
from quadriga import hidden, record, results


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Box:
    content: Any


def part(x):
    return x[1:3]


# A result, and where the part of the operand is in it.
SHAPES = {
    "part": (part, lambda r: r),
    "all": (lambda x: x, lambda r: r[1:3]),
    "reversed": (lambda x: x[2:0:-1], lambda r: r[::-1]),
    "tuple": (lambda x: (1, part(x)), lambda r: r[1]),
    "named": (lambda x: Pair("first", part(x)), lambda r: r.second),
    "list": (lambda x: [[part(x)]], lambda r: r[0][0]),
    "dict": (lambda x: {"part": part(x)}, lambda r: r["part"]),
}


@pytest.mark.parametrize("body, find", SHAPES.values(), ids=SHAPES)
def test_views_of_operands_are_copied(engine, body, find):
    read = quadriga.codelet(access=["read"], host_only=False)(body)
    clear = quadriga.codelet(access=["update"], host_only=False)(lambda x: x.fill(0))
    array = np.arange(5.0)
    data = engine.data(array)
    future = engine.submit(read, data.read())
    engine.submit(clear, data.update())
    engine.wait()
    found = find(future.result())
    assert found.tolist() == [1, 2]
    assert not np.may_share_memory(found, array)
    found += 1  # it is the caller's, also if the operand was only read


def test_a_result_outlives_the_engine():
    read = quadriga.codelet(access=["read"], host_only=False)(part)
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        result = engine.submit(read, engine.data(np.arange(100_000.0)).read()).result()
    assert result.tolist() == [1, 2]


def test_results_of_their_own_are_not_copied(engine):
    made = np.ones(3)
    box = Box(made)
    give = quadriga.codelet(access=["read"])(lambda x, what: what())  # a list would be copied
    data = engine.data(np.zeros(3))
    for own in (made, [made], {"made": made}, (made,), box, range(3), "text", None, Pair(1, made)):
        assert engine.submit(give, data.read(), what=lambda own=own: own).result() is own


def generate(x):
    return (each for each in x)


class Tagged(np.ndarray):
    """An array with attributes."""


class Found(dict[str, Any]):
    """A dictionary with attributes."""


def tagged(x):
    made = np.zeros(3).view(Tagged)
    made.weights = x
    return made


def found(x):
    made = Found(n=1)
    made.at = x
    return made


HIDDEN = {
    "mask": lambda x: np.ma.masked_array(np.arange(5.0), mask=x.view(bool)[::8]),
    "attribute of an array": tagged,
    "attribute of a dictionary": found,
    "default": lambda x: collections.defaultdict(lambda: x),
    "method": lambda x: x.tolist,
    "iterator of numpy": lambda x: np.nditer(x),
    "broadcast": lambda x: np.broadcast(x, x),
    "object": lambda x: Box(part(x)),
    "dictionary": lambda x: types.SimpleNamespace(a={"x": (x,)}),
    "namespace": lambda x: types.SimpleNamespace(a=x),
    "deque": lambda x: collections.deque([part(x)]),
    "generator": generate,
    "iterator": lambda x: iter([part(x)]),
    "elements": lambda x: x.flat,
    "items": lambda x: {"part": part(x)}.items(),
    "function": lambda x: functools.partial(np.sum, x),
    "closure": lambda x: lambda: x,
    "exception": lambda x: ValueError(x),
    "memoryview": lambda x: memoryview(x),
    "objects": lambda x: np.array([part(x), None], dtype=object),
    "in a list": lambda x: [Box(x)],
}
DEVICES = ["cpu:2", "emulated:1,memory=1MiB"]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("access", ["read", "update"])
@pytest.mark.parametrize("body", HIDDEN.values(), ids=HIDDEN)
def test_views_inside_of_other_objects_are_refused(body, access, devices):
    hidden = quadriga.codelet(access=[access], host_only=False, name="hidden")(body)
    with quadriga.Engine(devices) as engine:
        future = engine.submit(hidden, getattr(engine.data(np.arange(5.0)), access)())
        with pytest.raises(quadriga.InvalidType, match="codelet 'hidden' .*operand.*copy"):
            future.result()
        with pytest.raises(quadriga.InvalidType):
            engine.wait()


class Model:
    """A program's object, which has the array that its tasks access."""

    def __init__(self):
        self.state = np.arange(5.0)
        self.part = self.state[1:3]

    def step(self, x):
        return self


MODEL = Model()


@pytest.mark.parametrize("devices", DEVICES)
def test_the_program_has_its_own_objects_back(devices):
    """Also if these hold the array: a task that reads it gives it to nobody."""
    bodies = [MODEL.step, lambda x: MODEL, lambda x, model: model]
    with quadriga.Engine(devices) as engine:
        data = engine.data(MODEL.state)
        for body in bodies:
            step = quadriga.codelet(access=["update"], host_only=False)(body)
            given = {"model": MODEL} if body is bodies[2] else {}
            assert engine.submit(step, data.update(), **given).result() is MODEL


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("body", [lambda x: x[:0], lambda x: x[9:], lambda x: [x[5:], x[:0]]])
def test_empty_views_are_results(body, devices):
    give = quadriga.codelet(access=["read"], host_only=False)(body)
    with quadriga.Engine(devices) as engine:
        found = engine.submit(give, engine.data(np.arange(5.0)).read()).result()
    assert all(len(each) == 0 for each in (found if isinstance(found, list) else [found]))


@pytest.mark.parametrize("devices", DEVICES)
def test_an_element_of_several_fields_is_a_result(devices):
    array = np.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i8"), ("b", "f8")])
    give = quadriga.codelet(access=["read"], host_only=False)(lambda x: [x[1]])
    clear = quadriga.codelet(access=["update"], host_only=False)(lambda x: x.fill(0))
    with quadriga.Engine(devices) as engine:
        data = engine.data(array)
        future = engine.submit(give, data.read())
        engine.submit(clear, data.update())
        engine.wait()
        assert future.result()[0].tolist() == (3, 4.0)


def test_objects_that_let_their_views_go_are_results():
    """Also if only the garbage collector can tell."""

    def body(x):
        knot = [x]
        knot.append(knot)
        return Box(float(x.sum()))

    total = quadriga.codelet(access=["read"], host_only=False)(body)
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        future = engine.submit(total, engine.data(np.arange(5.0)).read())
        assert future.result() == Box(10.0)


@pytest.mark.parametrize("keep", [lambda x: x, part, lambda x: Box([x])])
def test_views_that_a_body_keeps_elsewhere_are_refused(keep):
    """A later task's content would be read through it, and none after the engine's end."""
    kept = []
    append = quadriga.codelet(access=["update"], host_only=False, name="keeper")(
        lambda x: kept.append(keep(x))
    )
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        future = engine.submit(append, engine.data(np.arange(5.0)).update())
        with pytest.raises(quadriga.InvalidType, match="'keeper' keeps a view .*: keep a copy"):
            future.result()
        kept.clear()
        with pytest.raises(quadriga.InvalidType):
            engine.wait()


@pytest.mark.parametrize("view", [lambda x: x, part], ids=["view", "part"])
@pytest.mark.parametrize("error", [ValueError("no"), None], ids=["of-a-body", "own"])
def test_a_body_may_catch_an_error_that_others_keep(view, error):
    """The error's traceback leads to the body's frame."""
    caught = []

    def body(x):
        x = view(x)
        try:
            raise error if error is not None else failed[0].exception()
        except ValueError as raised:
            caught.append(raised)

    catching = quadriga.codelet(access=["update"], host_only=False)(body)
    failing = quadriga.codelet(access=["update"])(lambda x: int("no"))
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        failed = [engine.submit(failing, engine.data(np.zeros(3)).update())]
        with pytest.raises(ValueError):
            engine.wait()
        future = engine.submit(catching, engine.data(np.zeros(3)).update())
        assert future.exception() is None
    assert isinstance(caught[0], ValueError)


def test_a_generator_that_a_body_leaves_behind_is_not_ended():
    """It is refused as what keeps a view; it isn't taken for a frame that has ended."""
    kept = []

    def each(x):
        yield from x

    def body(x):
        kept.append(each(x))
        next(kept[0])

    iterating = quadriga.codelet(access=["read"], host_only=False)(body)
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        future = engine.submit(iterating, engine.data(np.arange(5.0)).read())
        assert isinstance(future.exception(), quadriga.InvalidType)
        assert next(kept[0]) == 1.0
        kept.clear()
        with pytest.raises(quadriga.InvalidType):
            engine.wait()


def test_copies_may_be_kept(engine):
    kept = []
    copying = quadriga.codelet(access=["read"], host_only=False)(lambda x: kept.append(x.copy()))
    engine.submit(copying, engine.data(np.arange(5.0)).read()).result()
    assert kept[0].tolist() == [0, 1, 2, 3, 4]


def test_a_thread_of_the_body_may_drop_its_view_a_little_later(monkeypatch):
    drops = threading.Event()
    threads = []

    def body(x):
        threads.append(threading.Thread(target=lambda _: drops.wait(120), args=(x,)))
        threads[0].start()

    def pause(seconds):
        drops.set()
        threads[0].join()

    monkeypatch.setattr(results, "time", types.SimpleNamespace(sleep=pause))
    threaded = quadriga.codelet(access=["read"], host_only=False)(body)
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        engine.submit(threaded, engine.data(np.arange(5.0)).read()).result()
    assert drops.is_set()


def test_an_array_over_memory_of_others_has_results():
    """Whose base is a memoryview, as that of what ends with a task."""
    array = np.frombuffer(memoryview(bytearray(24)))
    total = quadriga.codelet(access=["read"])(lambda x: Box(float(x.sum())))
    with quadriga.Engine("cpu:1") as engine:
        assert engine.submit(total, engine.data(array).read()).result() == Box(0.0)


class Carrying(Exception):
    def __init__(self, *carried):
        super().__init__("bad part", *carried)
        self.first, self.second = carried


def check_carried(error, array):
    """That its arguments and attributes are as they were when the body raised them."""
    array[:] = -1
    assert error.args[0] == "bad part"
    assert error.args[1].tolist() == error.first.tolist() == [1, 2]
    assert error.args[2] == error.second == "<Box of an operand>"


@pytest.mark.parametrize("devices", ["cpu:1", "emulated:1,memory=1MiB"])
@pytest.mark.parametrize("access", ["read", "update"])
def test_what_an_exception_carries_is_copied(access, devices):
    @quadriga.codelet(access=[access], host_only=False)
    def failing(x):
        raise Carrying(part(x), Box(x))

    array = np.arange(100_000.0)
    with quadriga.Engine(devices) as engine:
        data = engine.data(array)
        failed = engine.submit(failing, quadriga.Operand(data, access))
        check_carried(failed.exception(), array)
        with pytest.raises(Carrying, match="bad part"):
            engine.wait()


def test_an_exception_keeps_what_is_too_large_to_be_looked_into(monkeypatch):
    monkeypatch.setattr(hidden, "MOST", 10)
    large = Box([Box(n) for n in range(100)])

    @quadriga.codelet(access=["update"])
    def failing(x):
        raise Carrying(part(x), large)

    with quadriga.Engine("cpu:1") as engine:
        error = engine.submit(failing, engine.data(np.arange(9.0)).update()).exception()
        assert error.second is error.args[2] is large
        with pytest.raises(Carrying):
            engine.wait()


def test_what_an_exception_of_a_fine_task_carries_is_copied():
    @quadriga.codelet(access=["update"])
    def failing(x):
        raise Carrying(part(x), Box(x))

    def divide(division, x):
        division.add(failing, x[:5])

    divided = quadriga.codelet(access=["update"], divide=divide)(failing.cpu)
    array = np.arange(10.0)
    with quadriga.Engine("cpu:2") as engine:
        failed = engine.submit(divided, engine.data(array).update())
        check_carried(failed.exception(), array)
        with pytest.raises(Carrying):
            engine.wait()


def test_an_exception_keeps_the_programs_own_objects():
    class Program:
        def __init__(self):
            self.array = np.arange(5.0)

        def run(self, x):
            raise ValueError("bad", self)

    program = Program()
    with quadriga.Engine("cpu:1") as engine:
        run = quadriga.codelet(access=["read"])(program.run)
        failed = engine.submit(run, engine.data(program.array).read())
        assert failed.exception().args[1] is program
        with pytest.raises(ValueError, match="bad"):
            engine.wait()


def test_results_that_nobody_can_read_are_not_kept(engine, monkeypatch):
    """A body that returns its operand, as np.add(..., out=x) does, costs no copy then."""
    opened = threading.Event()
    gated = quadriga.codelet(access=["update"])(lambda x: opened.wait(120) and None)
    one_more = quadriga.codelet(access=["update"])(lambda x: np.add(x, 1, out=x))
    array = np.zeros(3)
    data = engine.data(array)
    engine.submit(gated, data.update())
    for _ in range(3):
        engine.submit(one_more, data.update())
    kept = []
    owned = record.owned
    monkeypatch.setattr(record, "owned", lambda *given: kept.append(owned(*given)) or kept[-1])
    opened.set()
    engine.wait()
    assert array.tolist() == [3, 3, 3]
    assert kept == []
    assert engine.submit(one_more, data.update()).result(240).tolist() == [4, 4, 4]
    assert len(kept) == 1


def test_children_that_hold_their_parents():
    def make(x):
        parent = {"children": [], "x": x}
        for k in range(20):
            parent["children"].append({"parent": parent, "k": k})
        return parent

    ended = threading.Event()
    with quadriga.Engine("cpu:1") as engine:
        data = engine.data(np.arange(3.0))
        future = engine.submit(
            quadriga.codelet(access=["read"])(lambda x: make(x.sum())), data.read()
        )
        future.add_done_callback(lambda _: ended.set())
        assert ended.wait(120)
        tree = future.result()
        assert tree["x"] == 3
        assert tree["children"][19]["parent"] is tree


def _listed(count, last):
    # The garbage collector goes through lists from their end.
    return [last] + [Box(k) for k in range(count)]


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:1,memory=1MiB"])
def test_a_view_among_many_objects_is_refused(devices):
    many = quadriga.codelet(access=["read"], host_only=False)(lambda x: Box(_listed(30_000, x[1:])))
    fine = quadriga.codelet(access=["read"], host_only=False)(lambda x: Box(_listed(30_000, 1)))
    with quadriga.Engine(devices) as engine:
        data = engine.data(np.arange(5.0))
        with pytest.raises(quadriga.InvalidType, match="Box, refers to an operand's"):
            engine.submit(many, data.read()).result()
        assert len(engine.submit(fine, data.read()).result().content) == 30_001
        with pytest.raises(quadriga.InvalidType):
            engine.wait()


def test_more_objects_than_are_looked_at_are_refused(monkeypatch):
    monkeypatch.setattr(hidden, "MOST", 100)
    monkeypatch.setattr(results, "MOST", 100)
    many = quadriga.codelet(access=["read"])(lambda x: Box(_listed(200, 1)))
    few = quadriga.codelet(access=["read"])(lambda x: Box(_listed(10, 1)))
    with quadriga.Engine("cpu:1") as engine:
        data = engine.data(np.arange(5.0))
        assert engine.submit(few, data.read()).result().content[0] == 1
        with pytest.raises(quadriga.InvalidType, match="leads to more than 100 objects"):
            engine.submit(many, data.read()).result()
        with pytest.raises(quadriga.InvalidType):
            engine.wait()


def test_a_body_returns_the_large_object_that_it_belongs_to(monkeypatch):
    monkeypatch.setattr(hidden, "MOST", 100)

    class Program:
        def __init__(self):
            self.boxes = _listed(200, 1)

        def run(self, x):
            return self

    program = Program()
    run = quadriga.codelet(access=["read"])(program.run)
    with quadriga.Engine("cpu:1") as engine:
        data = engine.data(np.arange(5.0))
        assert engine.submit(run, data.read()).result() is program
