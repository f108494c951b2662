# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_circles.py: threads that wait for a task whose body waits for them.
"""The thread gets an error, the body goes on; threads that nobody waits for wait as ever."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import quadriga

DEVICES = ["cpu:1", "cpu:2", "emulated:2,memory=1MiB"]
add = quadriga.codelet(access=["update"], submits=True)(
    lambda y, p: np.add(y, p[0] if isinstance(p, list) else p, out=y)
)
copy = quadriga.codelet(access=["read", "write"])(lambda x, z: np.copyto(z, x))


def _joined(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def _in_pool(work):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def _by_map(work):
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(lambda _: work(), range(1)))


def _in_two(work):
    _joined(lambda: _joined(work))


WAYS = {
    "operand": lambda e, d, own: e.submit(add, d["y"].update(), p=d["x"].known),
    "view-in-list": lambda e, d, own: e.submit(add, d["y"].update(), p=[d["x"].known[1:2]]),
    "written-by-a-later-task": lambda e, d, own: e.submit(add, d["y"].update(), p=d["z"].known),
    "result": lambda e, d, own: own.result(),
    "wait": lambda e, d, own: e.wait(),
    "data": lambda e, d, own: d["x"].wait(),
    "content": lambda e, d, own: np.asarray(d["x"]),
    "view": lambda e, d, own: e.data(d["x"].known[1:2]).wait(),
    "data-of-a-later-task": lambda e, d, own: d["z"].wait(),
    "host-reads": lambda e, d, own: d["x"].on_host("r").__enter__(),
    "host-writes": lambda e, d, own: d["z"].on_host("rw").__enter__(),
}


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("through", [_joined, _in_pool, _by_map, _in_two])
@pytest.mark.parametrize("way", WAYS)
def test_a_thread_does_not_wait_for_the_body_that_waits_for_it(devices, through, way):
    submitted = threading.Event()
    said, owns = [], []

    def work():
        submitted.wait()
        try:
            WAYS[way](engine, data, owns[0])
        except quadriga.Error as error:
            said.append(error)

    def body(x):
        x += 1
        through(work)

    with quadriga.Engine(devices) as engine:
        data = {name: engine.data(np.zeros(3)) for name in "xyz"}
        outer = quadriga.codelet(access=["update"], submits=True)(body)
        owns.append(engine.submit(outer, data["x"].update()))
        engine.submit(copy, data["x"].read(), data["z"].write())
        submitted.set()
        engine.wait()
        assert data["z"].known.tolist() == [1, 1, 1]  # the body has ended well
    assert [type(error) for error in said] == [quadriga.Unavailable]
    assert "task 1 'body'" in str(said[0])


@pytest.mark.parametrize("devices", DEVICES)
def test_a_thread_that_a_body_does_not_wait_for_waits_for_the_body(devices):
    begun = threading.Event()
    made = []

    def work():
        begun.set()
        made.append(engine.submit(add, data["y"].update(), p=data["x"].known))

    def body(x):
        made.append(threading.Thread(target=work))
        made[0].start()
        begun.wait()
        x += 1

    with quadriga.Engine(devices) as engine:
        data = {name: engine.data(np.zeros(3)) for name in "xy"}
        outer = quadriga.codelet(access=["update"], submits=True)(body)
        engine.submit(outer, data["x"].update()).result()
        made[0].join()
        engine.wait()
        assert data["y"].known.tolist() == [1, 1, 1]


def test_a_thread_that_a_body_joins_waits_for_other_tasks():
    opened = threading.Event()
    slow = quadriga.codelet(access=["write"])(lambda y: y.fill(opened.wait(600)))

    def body(x):
        thread = threading.Thread(target=lambda: seen.append(pending.result()))
        thread.start()
        thread.join(0.3)  # it looks whom it waits for several times
        opened.set()
        thread.join()

    with quadriga.Engine("cpu:2") as engine:
        x, y = engine.data(np.zeros(3)), engine.data(np.zeros(3))
        pending, seen = engine.submit(slow, y.write()), []
        engine.submit(quadriga.codelet(access=["update"])(body), x.update())
        engine.wait()
        assert seen == [None]
        assert y.known.tolist() == [1, 1, 1]


def _body_that_joins(work):
    return quadriga.codelet(access=["update"])(lambda x: _joined(work))


def test_tiles_beside_each_other_share_nothing():
    x = np.zeros((64, 64))
    begun = threading.Event()
    got = []

    def work():
        begun.wait()
        got.append(right.result())

    slow = quadriga.codelet(access=["update"])(lambda v: time.sleep(0.3))
    with quadriga.Engine("cpu:2") as engine:
        tiles = engine.data(x[:, :32]), engine.data(x[:, 32:])
        left = engine.submit(_body_that_joins(work), tiles[0].update())
        right = engine.submit(slow, tiles[1].update())
        begun.set()
        left.result()
    assert got == [None]


def _poll(data):
    for _ in range(300):
        with contextlib.suppress(quadriga.Deadline):
            data.wait(0.001)
    data.wait(0.001)


@pytest.mark.parametrize(
    "wait",
    [
        lambda e, d, own: own.result(timeout=0.2),
        lambda e, d, own: e.wait(0.2),
        lambda e, d, own: d.wait(0.2),
        lambda e, d, own: d.on_host("r", 0.2).__enter__(),
        lambda e, d, own: _poll(d),
    ],
)
def test_a_wait_with_a_timeout_closes_no_circle(wait):
    submitted = threading.Event()
    owns, said = [], []

    def work():
        submitted.wait()
        with pytest.raises(quadriga.Deadline) as caught:
            wait(engine, data, owns[0])
        said.append(caught.type)

    with quadriga.Engine("cpu:2") as engine:
        data = engine.data(np.zeros(3))
        own = engine.submit(_body_that_joins(work), data.update())
        owns.append(own)
        submitted.set()
        own.result()
    assert said == [quadriga.Deadline]


def test_a_body_that_has_ended_waits_for_nobody():
    begun, may_end = threading.Event(), threading.Event()
    got = []

    def run(x):
        begun.set()
        may_end.wait(120)

    def parent(x):
        engine.submit(quadriga.codelet(access=["update"])(run), data[2].update())
        begun.wait(120)

    def work():
        threading.Timer(0.3, may_end.set).start()
        got.append(first.result())

    with quadriga.Engine("cpu:2") as engine:
        data = [engine.data(np.zeros(3)) for _ in range(3)]
        parent = quadriga.codelet(access=["update"], submits=True)(parent)
        first = engine.submit(parent, data[0].update())
        begun.wait(120)
        engine.submit(_body_that_joins(work), data[1].update()).result()
    assert got == [None]


def test_a_wait_that_is_refused_forgets_no_failure():
    submitted = threading.Event()
    said = []

    def work():
        submitted.wait()
        with pytest.raises(quadriga.Unavailable) as caught:
            engine.wait()
        said.append(caught.type)

    def fail(x):
        raise ValueError("mine")

    engine = quadriga.Engine("cpu:2")
    joins = engine.submit(_body_that_joins(work), engine.data(np.zeros(3)).update())
    engine.submit(quadriga.codelet(access=["update"])(fail), engine.data(np.zeros(3)).update())
    submitted.set()
    joins.result()
    with pytest.raises(ValueError, match="mine"):
        engine.wait()
    engine.close()
    assert said == [quadriga.Unavailable]


OWN_WAYS = {
    "result": lambda d, futures: futures[0].result(),
    "exception": lambda d, futures: futures[0].exception(),
    "later-result": lambda d, futures: futures[1].result(),
    "last-result": lambda d, futures: futures[2].result(),
    "data": lambda d, futures: d["x"].wait(),
    "data-of-a-later-task": lambda d, futures: d["z"].wait(),
}


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("way", OWN_WAYS)
def test_a_body_does_not_wait_for_what_follows_it(devices, way):
    known, refused = threading.Event(), []
    futures, data = [], {}

    @quadriga.codelet(access=["update"], submits=True)
    def body(x):
        assert known.wait(300)
        inner = data["w"].engine.submit(add, data["w"].update(), p=1.0)
        if not devices.startswith("emulated"):
            inner.result()  # its own tasks it may wait for
        with pytest.raises(quadriga.Unavailable) as raised:
            OWN_WAYS[way](data, futures)
        refused.append(str(raised.value))

    with quadriga.Engine(devices) as engine:
        for name in "xzw":
            data[name] = engine.data(np.zeros(3))
        futures.append(engine.submit(body, data["x"].update()))
        futures.append(engine.submit(copy, data["x"].read(), data["z"].write()))
        futures.append(engine.submit(add, data["z"].update(), p=1.0))
        known.set()
        assert [each.exception() for each in futures] == [None] * 3
    assert len(refused) == 1
    if not devices.startswith("emulated"):
        assert "task 1 'body'" in refused[0] and "neither would end" in refused[0]


def test_bodies_do_not_wait_for_each_other():
    known, futures = threading.Event(), []

    def body(x, other):
        assert known.wait(300)
        return futures[other].exception()

    ask = quadriga.codelet(access=["update"])(body)
    with quadriga.Engine("cpu:2") as engine:
        futures.append(engine.submit(ask, engine.data(np.zeros(3)).update(), other=1))
        futures.append(engine.submit(ask, engine.data(np.zeros(3)).update(), other=0))
        known.set()
        kinds = {type(each.exception()) for each in futures}
        assert quadriga.Unavailable in kinds  # one of them, or both
        with contextlib.suppress(quadriga.Unavailable):
            engine.wait()


@pytest.mark.parametrize("devices", [["cpu:1"] * 2, ["cpu:1", "emulated:1"], ["emulated:1"] * 3])
def test_bodies_of_several_engines_do_not_wait_for_each_other(devices):
    """Each waits for what follows the next one's, in a circle."""
    known, futures, engines = threading.Event(), {}, []

    def body(x, other):
        assert known.wait(300)
        futures[other].exception()

    ask = quadriga.codelet(access=["update"], host_only=False)(body)
    with contextlib.ExitStack() as stack:
        engines += [stack.enter_context(quadriga.Engine(each)) for each in devices]
        asking = []
        for number, engine in enumerate(engines):
            x = engine.data(np.zeros(3))
            asking.append(engine.submit(ask, x.update(), other=(number + 1) % len(engines)))
            follows = devices[number].startswith("cpu")  # edges on devices aren't known
            futures[number] = engine.submit(add, x.update(), p=1.0) if follows else asking[-1]
        known.set()
        errors = [each.exception(300) for each in asking]
        refused = [each for each in errors if isinstance(each, quadriga.Unavailable)]
        assert refused  # one of them, or more
        assert all("of another engine, which can't end before" in str(each) for each in refused)
        for engine in engines:
            with contextlib.suppress(quadriga.Unavailable, quadriga.Cancelled):
                engine.wait()


def test_a_body_waits_for_other_tasks_of_an_engine_whose_body_waits_for_its_own():
    known, futures = threading.Event(), {}

    def body(x, other):
        assert known.wait(300)
        return futures[other].result()

    ask = quadriga.codelet(access=["update"])(body)
    with quadriga.Engine("cpu:2") as one, quadriga.Engine("cpu:2") as other:
        futures["one"] = one.submit(ask, one.data(np.zeros(3)).update(), other="free")
        futures["free"] = other.submit(add, other.data(np.zeros(3)).update(), p=1.0)
        futures["other"] = other.submit(ask, other.data(np.zeros(3)).update(), other="one")
        known.set()
        assert futures["other"].exception(300) is None


def test_a_wait_with_a_timeout_ends_by_itself():
    futures, known = [], threading.Event()

    @quadriga.codelet(access=["update"])
    def body(x):
        assert known.wait(300)
        with pytest.raises(quadriga.Deadline):
            futures[0].result(0.01)

    with quadriga.Engine("cpu:2") as engine:
        futures.append(engine.submit(body, engine.data(np.zeros(3)).update()))
        known.set()
        assert futures[0].exception() is None
