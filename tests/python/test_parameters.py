# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_parameters.py: parameters are what they were when the task was submitted.
import collections
import json
import pickle
import threading
import time

import numpy as np
import pytest

import quadriga

Pair = collections.namedtuple("Pair", "first second")
DEVICES = ["cpu:1", "emulated:1,memory=1MiB"]


def _fill(array):
    return lambda: array.fill(2)


def _in(holder, key):
    return lambda: holder.__setitem__(key, 2)


def _view_of_frozen():
    array = np.ones(3)
    before = array[1:]
    array.flags.writeable = False
    return array[1:], _fill(before), lambda p: p[0]


def _frozen():
    array = np.ones(3)
    before = array[:]
    array.flags.writeable = False
    return array, _fill(before), lambda p: p[0]


def _cases():
    array = np.ones(3)
    yield "array", array, _fill(array), lambda p: p[0]
    yield "frozen", *_frozen()
    yield "view-of-frozen", *_view_of_frozen()
    for kind in (np.int8, ">f8", "<c8", bool):
        each = np.ones(3, kind)
        yield (
            f"of-{each.dtype}",
            each,
            lambda each=each: each.fill(0),
            lambda p: np.real(p[0]).astype(int),
        )
    record = np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", ">f8")])
    yield "structured", record, _fill(record["a"]), lambda p: p["a"][0]
    field = np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", ">f8")])
    yield "field", field["a"], _fill(field["a"]), lambda p: p[0]
    nought = np.array(1.0)
    yield "0-d", nought, _fill(nought), lambda p: p[()]
    masked = np.ma.array([1.0, 2.0], mask=[0, 1])
    yield "masked", masked, _in(masked, 0), lambda p: p[0]
    windows = np.ones(64)
    seen = np.lib.stride_tricks.sliding_window_view(windows, 32)
    yield "windows", seen, _fill(windows), lambda p: p[5, 7]
    reverse = np.ones(64)
    back = np.lib.stride_tricks.sliding_window_view(reverse[::-1], 32)
    yield "windows-reversed", back, _fill(reverse), lambda p: p[5, 7]
    numbers = [1]
    yield "list", numbers, _in(numbers, 0), lambda p: p[0]
    inner = np.ones(2)
    yield "array-in-list", [0, [inner]], _fill(inner), lambda p: p[1][0][0]
    table = {"k": 1}
    yield "dict", table, _in(table, "k"), lambda p: p["k"]
    deep = {"k": (0, {"l": np.ones(2)})}
    yield "array-in-dicts", deep, _fill(deep["k"][1]["l"]), lambda p: p["k"][1]["l"][1]
    pair = Pair(np.ones(1), 0)
    yield "named-tuple", pair, _fill(pair.first), lambda p: p.first[0]
    marks = {1}
    yield "set", marks, lambda: (marks.clear(), marks.add(2)), lambda p: min(p)
    raw = bytearray(b"\1")
    yield "bytearray", raw, _in(raw, 0), lambda p: p[0]
    memory = bytearray(b"\1\1")
    yield "memoryview", memoryview(memory)[1:], _in(memory, 1), lambda p: p[0]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("name", [case[0] for case in _cases()])
def test_changes_after_submitting_are_not_seen(devices, name):
    value, change, first = next(case[1:] for case in _cases() if case[0] == name)
    opened = threading.Event()

    def look(p):
        assert opened.wait(120)
        return float(first(p))

    look = quadriga.codelet(access=[], host_only=False)(look)
    expected = float(first(value))
    with quadriga.Engine(devices) as engine:
        future = engine.submit(look, p=value)
        change()
        opened.set()
        assert float(first(value)) != expected  # the test is none if it changed nothing
        assert future.result(240) == expected


@pytest.mark.parametrize(
    "write",
    [
        lambda p: p["list"].append(1),
        lambda p: p["list"].sort(),
        lambda p: p["list"].__setitem__(0, 1),
        lambda p: p["list"].__iadd__([1]),
        lambda p: p["dict"].update(a=1),
        lambda p: p["dict"].pop("a"),
        lambda p: p.setdefault("b", 1),
        lambda p: p["array"].fill(1),
        lambda p: p["memory"].__setitem__(0, 1),
        lambda p: p["set"].add(2),
        lambda p: p["bytes"].append(2),
    ],
)
def test_a_body_that_writes_to_one_fails(write):
    given = {
        "list": [0], "dict": {"a": 0}, "array": np.zeros(1), "set": {1},
        "memory": memoryview(bytearray(1)), "bytes": bytearray(1),
    }  # fmt: skip
    body = quadriga.codelet(access=[])(lambda p: write(p))
    with quadriga.Engine("cpu:1") as engine:
        with pytest.raises(
            (TypeError, ValueError, AttributeError), match="read-only|frozenset|bytes"
        ):
            engine.submit(body, p=given).result(240)
        with pytest.raises((TypeError, ValueError, AttributeError)):
            engine.wait()


def test_they_read_as_what_was_given():
    value = {"a": [1, 2, {"b": 3}], "c": (4, [5])}

    def look(p):
        assert isinstance(p, dict)
        assert isinstance(p["a"], list)
        assert p == value
        assert p["a"] + [1] == [1, 2, {"b": 3}, 1]
        assert json.loads(json.dumps(p["a"])) == value["a"]
        assert type(pickle.loads(pickle.dumps(p))["a"]) is list
        sorted_copy = p["a"][:2]
        sorted_copy.append(0)
        assert np.array(sorted_copy).tolist() == [1, 2, 0]
        assert np.arange(5)[p["a"][:2]].tolist() == [1, 2]
        return p

    with quadriga.Engine("cpu:1") as engine:
        found = engine.submit(quadriga.codelet(access=[])(look), p=value).result(240)
    assert found == value
    assert type(found) is dict
    assert type(found["a"]) is list
    found["a"].append(1)


def test_windows_and_broadcast_arrays_take_no_more_memory():
    one = np.ones(1)
    huge = np.broadcast_to(one, (2**20, 2**20))  # 8 TiB, were it copied element by element
    with quadriga.Engine("cpu:1") as engine:
        body = quadriga.codelet(access=[])(lambda p: (p.shape, float(p[-1, -1])))
        assert engine.submit(body, p=huge).result(240) == ((2**20, 2**20), 1.0)


def test_results_given_by_name_can_be_read_only():
    make = quadriga.codelet(access=[])(lambda: {"x": [np.ones(2)]})
    change = quadriga.codelet(access=[])(lambda p: p["x"][0].fill(2))
    with quadriga.Engine("cpu:1") as engine:
        first = engine.submit(make)
        with pytest.raises(ValueError, match="read-only"):
            engine.submit(change, p=first).result(240)
        assert first.result()["x"][0].tolist() == [1, 1]
        with pytest.raises(ValueError, match="read-only"):
            engine.wait()


def test_futures_in_named_tuples_become_results():
    one = quadriga.codelet(access=[])(lambda: 1)
    both = quadriga.codelet(access=[])(lambda p: p.first + p.second)
    with quadriga.Engine("cpu:1") as engine:
        assert engine.submit(both, p=Pair(engine.submit(one), 2)).result(240) == 3


def test_parameters_of_fine_tasks():
    def divide(division, y):
        step = np.ones(1)
        for k in range(4):
            division.add(add, y[k : k + 1], step=step, steps=[step])
            step += 1

    add = quadriga.codelet(access=["update"])(
        lambda y, step, steps: np.add(y, step + steps[0], out=y)
    )
    divided = quadriga.codelet(access=["update"], divide=divide)(lambda y: None)
    y = np.zeros(4)
    with quadriga.Engine("cpu:2", policy="affinity") as engine:
        engine.submit(divided, engine.data(y).update())
        engine.wait()
    assert y.tolist() == [2, 4, 6, 8]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("asked", ["before", "after"])
def test_a_program_that_changes_a_result_changes_it_for_no_task(devices, asked):
    opened = threading.Event()
    make = quadriga.codelet(access=[], host_only=False)(lambda: [np.ones(3), {"a": 1}])
    closed = quadriga.codelet(access=["update"], host_only=False)(
        lambda x: opened.wait(120) and None
    )
    add = quadriga.codelet(access=["update"], host_only=False)(
        lambda x, by: np.add(x, by[0] * by[1]["a"], out=x)
    )
    x = np.zeros(3)
    with quadriga.Engine(devices) as engine:
        data = engine.data(x)
        future = engine.submit(make)
        engine.wait()
        engine.submit(closed, data.update())
        if asked == "before":
            future.result()
        engine.submit(add, data.update(), by=future)
        found = future.result()
        assert future.result() is found
        found[0] *= 100
        found[1]["a"] = 100
        opened.set()
        engine.wait()
        assert found[0].tolist() == [100, 100, 100]
        engine.submit(add, data.update(), by=future)
        engine.wait()
    assert x.tolist() == ([2, 2, 2] if asked == "after" else [10001, 10001, 10001])


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("place", [lambda a: a, lambda a: [a[1:]], lambda a: a[::-1]])
def test_pending_tasks_write_an_array_before_it_is_copied(devices, place):
    double = quadriga.codelet(access=["update"], host_only=False)(
        lambda x: np.multiply(x, 2, out=x)
    )
    look = quadriga.codelet(access=[], host_only=False)(lambda p: float(np.ravel(p)[-1]))
    x = np.ones(3)
    with quadriga.Engine(devices) as engine:
        data = engine.data(x)
        for _ in range(200):
            engine.submit(double, data.update())
        assert engine.submit(look, p=place(x)).result(240) == 2.0**200


def test_a_body_gives_its_own_operand_to_a_child():
    x, y = np.ones(3), np.zeros(3)
    add = quadriga.codelet(access=["update"])(lambda y, by: np.add(y, by, out=y))

    def parent(x):
        x += 1
        engine.submit(add, other.update(), by=x)

    with quadriga.Engine("cpu:2") as engine:
        data, other = engine.data(x), engine.data(y)
        engine.submit(quadriga.codelet(access=["update"], submits=True)(parent), data.update())
        engine.wait(120)
    assert y.tolist() == [2, 2, 2]


@pytest.mark.parametrize("devices", DEVICES)
def test_an_array_given_within_on_host(devices):
    look = quadriga.codelet(access=[], host_only=False)(lambda p: float(p[0]))
    with quadriga.Engine(devices) as engine:
        data = engine.data(np.zeros(3))
        with data.on_host("rw") as array:
            array[:] = 5
            assert engine.submit(look, p=array).result(240) == 5


def test_an_array_that_is_given_twice_is_copied_once():
    x = np.ones(1000)
    same = quadriga.codelet(access=[])(
        lambda p, q: [each is p[0] for each in (*p, q["a"], q["b"][0])]
    )
    with quadriga.Engine("cpu:1") as engine:
        assert all(engine.submit(same, p=[x] * 50, q={"a": x, "b": (x,)}).result(240))


def _ends(act):
    """What it returns, if that is soon."""
    made = []
    thread = threading.Thread(target=lambda: made.append(act()), daemon=True)
    thread.start()
    thread.join(120)
    assert made, "it takes without end"
    return made[0]


@pytest.mark.parametrize("wrap", [lambda p: p, lambda p: {"p": p}, lambda p: (p, p)])
def test_lists_that_hold_themselves_often(wrap):
    many = [1]
    many.extend([many] * 40)

    def length_of(p):
        while not isinstance(p, list):
            p = p["p"] if isinstance(p, dict) else p[1]
        return len(p)

    with quadriga.Engine("cpu:1") as engine:
        look = quadriga.codelet(access=[])(length_of)
        assert _ends(lambda: engine.submit(look, p=wrap(many)).result(240)) == 41


def test_results_in_lists_that_hold_themselves_often():
    def make():
        many = [1]
        many.extend([many] * 40)
        return many

    with quadriga.Engine("cpu:1") as engine:
        future = engine.submit(quadriga.codelet(access=[])(make))
        look = quadriga.codelet(access=[])(lambda p: len(p))
        assert _ends(lambda: engine.submit(look, p=future).result(240)) == 41
        assert _ends(lambda: len(future.result(240))) == 41
        around = [future]
        around.extend([around] * 40)
        assert _ends(lambda: engine.submit(look, p=around).result(240)) == 41


@pytest.mark.parametrize("asked", ["before", "after"])
@pytest.mark.parametrize("make", [lambda: {1, 2}, lambda: bytearray(b"12")])
def test_sets_and_bytearrays_that_a_program_changes_change_for_no_task(make, asked):
    opened = threading.Event()
    wait = quadriga.codelet(access=["write"])(lambda y: y.fill(opened.wait(120)))
    size = quadriga.codelet(access=["read"])(lambda y, p: len(p["s"]))
    with quadriga.Engine("cpu:2") as engine:
        gate = engine.data(np.zeros(1))
        engine.submit(wait, gate.write())
        future = engine.submit(quadriga.codelet(access=[])(lambda: {"s": make()}))
        shown = future.result(240) if asked == "before" else None
        later = engine.submit(size, gate.read(), p=future)
        shown = shown or future.result(240)
        shown["s"].clear()
        opened.set()
        assert later.result(240) == 2


@pytest.mark.parametrize(
    ("make", "write"),
    [
        (lambda: {1}, lambda s: s.add(2)),
        (lambda: bytearray(b"1"), lambda s: s.append(2)),
        (lambda: memoryview(bytearray(b"1")), lambda s: s.__setitem__(0, 2)),
    ],
)
def test_a_result_that_several_tasks_read_is_changed_by_none(make, write):
    with quadriga.Engine("cpu:1") as engine:
        future = engine.submit(quadriga.codelet(access=[])(make))
        engine.submit(quadriga.codelet(access=[])(lambda p: write(p)), p=future)
        with pytest.raises((AttributeError, TypeError)):
            engine.wait(120)
        seen = engine.submit(quadriga.codelet(access=[])(lambda p: list(p)), p=future)
        assert seen.result(240) == list(make())


def test_a_memoryview_keeps_its_format():
    for memory in (memoryview(bytearray(b"ab")).cast("c"), memoryview(np.arange(2.0))):
        with quadriga.Engine("cpu:1") as engine:
            look = quadriga.codelet(access=[])(lambda p: p[1])
            assert engine.submit(look, p=memory).result(240) == memory[1]


def _fail(x):
    raise ValueError("the first failure")


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("place", [lambda a: a, lambda a: [a[1:]], lambda a: {"p": (0, a[::-1])}])
def test_a_task_whose_parameter_a_failed_task_should_have_written(devices, place):
    fail = quadriga.codelet(access=["update"], host_only=False)(_fail)
    use = quadriga.codelet(access=["update"], host_only=False)(lambda y, p: y.fill(7))
    more = quadriga.codelet(access=["read", "update"], host_only=False)(lambda y, z: z.fill(8))
    x = np.zeros(3)
    with quadriga.Engine(devices) as engine:
        data, y, z = engine.data(x), engine.data(np.zeros(3)), engine.data(np.zeros(3))
        engine.submit(fail, data.update())
        future = engine.submit(use, y.update(), p=place(x))
        after = engine.submit(more, y.read(), z.update())
        for each in (future, after):
            with pytest.raises(quadriga.Cancelled, match="'_fail'.*the first failure"):
                each.result()
        with pytest.raises(ValueError, match="the first failure"):
            engine.wait()
        assert y.known.tolist() == z.known.tolist() == [0, 0, 0]
        again = engine.submit(use, y.update(), p=place(x))
        with pytest.raises(quadriga.Cancelled, match="the first failure"):
            engine.wait()
        assert isinstance(again.exception(), quadriga.Cancelled)
        x[:] = 1
        write = quadriga.codelet(access=["write"], host_only=False)(lambda y: y.fill(1))
        engine.submit(write, data.write())
        engine.submit(write, y.write())
        engine.submit(use, y.update(), p=place(x)).result()
        engine.wait()
        assert y.known.tolist() == [7, 7, 7]


@pytest.mark.parametrize("devices", DEVICES)
def test_a_task_whose_parameter_a_failed_task_of_another_engine_should_have_written(devices):
    fail = quadriga.codelet(access=["update"], host_only=False)(_fail)
    use = quadriga.codelet(access=["update"], host_only=False)(lambda y, p: y.fill(7))
    x = np.zeros(3)
    with quadriga.Engine(devices) as engine, quadriga.Engine("cpu:1") as other:
        failed = other.submit(fail, other.data(x).update())
        y = engine.data(np.zeros(3))
        future = engine.submit(use, y.update(), p=x)
        assert isinstance(future.exception(), quadriga.Cancelled)
        assert "'_fail'" in str(future.exception())
        with pytest.raises(quadriga.Cancelled, match="the first failure"):
            engine.wait()
        with pytest.raises(ValueError, match="the first failure"):
            failed.result()
        with pytest.raises(ValueError, match="the first failure"):
            other.wait()


def test_operands_are_checked_though_a_parameter_lacks_its_content():
    fail = quadriga.codelet(access=["update"])(_fail)
    use = quadriga.codelet(access=["update"])(lambda y, p: None)
    x = np.zeros(3)
    with quadriga.Engine("cpu:1") as engine:
        failed = engine.submit(fail, engine.data(x).update())
        for wrong in ((), (x,), (failed,), (engine.data(x).read(),)):
            with pytest.raises((quadriga.InvalidArgument, quadriga.InvalidType)):
                engine.submit(use, *wrong, p=x)
        assert isinstance(failed.exception(), ValueError)
        with pytest.raises(ValueError, match="first"):
            engine.wait()


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:1,memory=1MiB"])
def test_buffers_are_copied_once_pending_tasks_on_them_have_ended(devices):
    def slow(x):
        time.sleep(0.05)
        x += 1

    updates = quadriga.codelet(access=["update"], host_only=False)(slow)
    get = quadriga.codelet(access=[])(lambda given: list(given))
    buffer = bytearray(4)
    array = np.frombuffer(buffer, np.uint8)
    with quadriga.Engine(devices) as engine:
        for count, given in enumerate((array, memoryview(array), buffer), 1):
            engine.submit(updates, engine.data(array).update())
            assert engine.submit(get, given=given).result() == [count] * 4
