# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_sharing.py: what the program wrote is what tasks see, and the other way round.
"""One memory is one datum; the host writes between waits, and within on_host; linalg in order."""

import collections
import gc
import json
import sys
import threading
import time
import types

import numpy as np
import pytest
import scipy.sparse

import quadriga
from quadriga import linalg, registered
from quadriga.sparse.matrices import as_csr

TIMES = {kind: {"8": 1e-6, "64": 1e-4} for kind in ("gpu", "cpu")}
TIMED = {
    "name": "timed",
    "devices": [
        {"name": "g0", "kind": "gpu", "memory": 1 << 20},
        {"name": "g1", "kind": "gpu", "memory": 1 << 20},
        {"name": "cpu", "kind": "cpu", "cores": 2},
    ],
    "links": {"up": {"bandwidth": 1e9, "latency": 1e-6}, "down": {"bandwidth": 5e8}},
    "routes": [
        {"from": "host", "to": name, "links": ["up"]} for name in ("g0", "g1")
    ] + [{"from": name, "to": "host", "links": ["down"]} for name in ("g0", "g1")],
    "kernels": {"d" + name: TIMES for name in ("gemm", "syrk", "trsm", "potrf")},
}  # fmt: skip
ENGINES = {
    "cpu": {"devices": "cpu:2"},
    "emulated": {"devices": "emulated:2,memory=1MiB"},
    "virtual": {
        "devices": quadriga.Machine.from_json(json.dumps(TIMED)),
        "virtual_clock": True,
    },
}
COST = quadriga.Cost("dgemm", 64, 64**3)


@pytest.fixture(params=ENGINES)
def engine(request):
    with quadriga.Engine(**ENGINES[request.param]) as made:
        yield made


@quadriga.codelet(access=["update"], cost=COST, host_only=False)
def increase(x):
    x += 1


@quadriga.codelet(access=["read", "write"], cost=COST, host_only=False)
def double(x, y):
    y[...] = 2 * x


def test_an_array_that_is_registered_in_each_step(engine):
    x = np.zeros(8)
    for _ in range(200):
        engine.submit(increase, engine.data(x).update())
    engine.wait()
    assert x[0] == 200
    data = engine.data(x)
    assert engine.data(x) == data and hash(engine.data(x)) == hash(data)
    assert engine.data(x[:]) == data
    assert engine.data(x[1:]) != data
    assert data != x.tolist()


@pytest.mark.parametrize("empty", [np.zeros(0), np.zeros((0, 3)), np.zeros(3, "V0")], ids=str)
def test_arrays_without_elements_are_dropped_like_others(engine, empty):
    untouched = quadriga.codelet(["update"], host_only=False, cost=COST)(lambda x: None)
    for _ in range(10):
        engine.submit(untouched, engine.data(empty).update())
        engine.data(empty.copy())
        engine.data(np.zeros(3))
    engine.wait()


def test_views_share_order_and_content(engine):
    a = np.zeros((10, 10))
    data = [engine.data(view) for view in (a, a[2:4], a.T, a[:, 3], a.reshape(-1)[::2])]
    for _ in range(20):
        for each in data:
            engine.submit(increase, each.update())
    engine.wait()
    expected = np.zeros((10, 10))
    for view in (expected, expected[2:4], expected.T, expected[:, 3], expected.reshape(-1)[::2]):
        view += 20
    np.testing.assert_array_equal(a, expected)


def test_operands_that_share_memory_are_refused(engine):
    a = np.zeros(100)
    both = "share memory, and one is written: 10 x 1 float64 .*, and 90 x 1 float64 "
    with pytest.raises(quadriga.InvalidArgument, match=both):
        engine.submit(double, engine.data(a[:10]).read(), engine.data(a[5:95]).write())
    with pytest.raises(quadriga.InvalidArgument, match="same data"):
        engine.submit(double, engine.data(a).read(), engine.data(a).write())


@pytest.mark.parametrize("by_data", [False, True])
def test_the_host_writes_between_tasks(engine, by_data):
    x, y = np.zeros(8), np.zeros(8)
    source, target = engine.data(x), engine.data(y)
    for step in range(3):
        x[:] = step
        engine.submit(double, source.read(), target.write())
        if by_data:
            source.wait()
            target.wait()
        else:
            engine.wait()
        assert y.tolist() == [2 * step] * 8


def test_resident_arrays_stay_on_devices(engine):
    x, y = np.zeros(8), np.zeros(8)
    source, target = engine.data(x, resident=True), engine.data(y, resident=True)
    for _ in range(5):
        engine.submit(increase, source.update(), device=0)
        engine.wait()
    copies = [link.copies for link in engine.counters().links if link.source_name == "host"]
    assert sum(copies) == (0 if engine.machine.devices[0].kind == "cpu" else 1)
    with source.on_host("rw") as array:
        assert array is not x and np.shares_memory(array, x) and array[0] == 5
        array[:] = 7
    assert not array.flags.writeable
    engine.submit(double, source.read(), target.write(), device=0)
    with target.on_host() as array:
        assert array[0] == 14
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with source.on_host("w") as array:
        array[:] = 8
    engine.submit(double, source.read(), target.write(), device=0)
    engine.wait()
    assert y[0] == 16
    with pytest.raises(quadriga.InvalidArgument, match="not as resident"):
        kept = engine.data(z := np.zeros(3))
        engine.data(z, resident=True)
    assert kept.array is z


def test_an_array_that_a_device_has_newer_cannot_be_written(engine):
    x = np.zeros(8)
    data = engine.data(x, resident=True)
    with data.on_host("w") as array:
        array[:] = 1
    assert data.array is x
    engine.submit(increase, data.update())
    if engine.machine.devices[0].kind != "cpu":
        found = data.array
        assert not found.flags.writeable and found is not x
    engine.wait()
    assert data.array is x
    assert x[0] == 2


def test_tasks_wait_for_the_host_and_others_run():
    with quadriga.Engine("emulated:2,memory=1MiB") as engine:
        x, y, z = np.zeros(8), np.zeros(8), np.zeros(8)
        source, target, other = (engine.data(each) for each in (x, y, z))
        with source.on_host("w") as array:
            waiting = engine.submit(double, source.read(), target.write())
            engine.submit(increase, other.update()).result(timeout=120)
            with pytest.raises(quadriga.Unavailable, match="leave it before you wait"):
                engine.wait()
            with source.on_host("r") as again:
                assert np.shares_memory(again, array)
            assert not waiting.done()
            array[:] = 4
        waiting.result(timeout=120)
        target.wait()
        assert y[0] == 8
        with source.on_host("r"), pytest.raises(quadriga.Unavailable, match="can't write it"):
            source.on_host("w").__enter__()


def test_a_deadline_passes_and_nothing_is_held():
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        x = np.zeros(8)
        data = engine.data(x)

        may_end = threading.Event()

        @quadriga.codelet(access=["update"])
        def slowly(array):
            may_end.wait(240)
            array += 1

        engine.submit(slowly, data.update())
        with pytest.raises(quadriga.Deadline):
            data.on_host("r", timeout=0.01).__enter__()
        may_end.set()
        with data.on_host("r", timeout=120) as array:
            assert array[0] == 1


def test_what_on_host_refuses(engine):
    data = engine.data(np.zeros(3))
    with pytest.raises(quadriga.InvalidArgument, match="'r', 'w' or 'rw'"):
        data.on_host("x")
    with pytest.raises(quadriga.InvalidArgument, match="no array"):
        engine.temporary(3).on_host()
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(quadriga.InvalidArgument, match="read-only"):
        engine.data(frozen).on_host("w")


def test_an_array_is_as_writable_as_when_it_was_registered_last(engine):
    x = np.zeros(3)
    x.flags.writeable = False
    before = engine.data(x)
    x.flags.writeable = True
    engine.submit(increase, engine.data(x).update()).result()
    assert x[0] == 1
    x.flags.writeable = False
    with pytest.raises(quadriga.InvalidArgument, match="read-only"):
        engine.data(x).update()
    assert engine.data(x) == before


def test_linalg_follows_tasks_and_takes_data(engine):
    n = 64
    x, y = np.eye(n), np.zeros((n, n))
    a, c = engine.data(x), engine.data(y, resident=True)
    for _ in range(10):
        engine.submit(increase, a.update())
    np.testing.assert_allclose(linalg.matmul(x, np.eye(n), engine=engine), np.eye(n) + 10)
    engine.submit(increase, a.update())
    for left in (a, x, x[:]):
        np.testing.assert_allclose(linalg.matmul(left, np.eye(n), engine=engine), np.eye(n) + 11)
    result = linalg.matmul(a, np.eye(n), out=c, engine=engine)
    assert result is c
    engine.submit(double, c.read(), a.write())
    engine.submit(increase, c.update())
    linalg.matmul(a, np.eye(n), out=y, engine=engine)
    engine.submit(increase, c.update())
    engine.wait()
    np.testing.assert_allclose(x, 2 * np.eye(n) + 22)
    np.testing.assert_allclose(y, 2 * np.eye(n) + 23)


@pytest.mark.parametrize(
    "given",
    [
        lambda x: [x[0], x[1]],
        lambda x: ([x[0, 0, ...], x[0, 1, ...]], x[1]),
        lambda x: [memoryview(x[0]), memoryview(x[1])],
        lambda x: [[3.0, 3.0], x.T[1]],
        lambda x: types.SimpleNamespace(__array_interface__=x.__array_interface__),
    ],
)
def test_lists_of_rows_that_tasks_are_about_to_write(given, engine):
    """NumPy copies what a list holds, and knows of no task."""
    x = np.zeros((2, 2))
    data = engine.data(x)
    for _ in range(3):
        engine.submit(increase, data.update())
    found = linalg.matmul(given(x), np.eye(2), engine=engine)
    np.testing.assert_array_equal(found, np.full((2, 2), 3.0))


def test_points_and_sparse_matrices_that_tasks_are_about_to_write(engine):
    x = np.zeros(3)
    data = engine.data(x)
    for made in (
        lambda: linalg.rbf(x).points[:, 0],
        lambda: linalg.rbf([x[:1], x[1:2]]).points[:, 0],
        lambda: as_csr(scipy.sparse.coo_array((x, (range(3), range(3))), (3, 3))).values,
    ):
        before = x[0]
        engine.submit(increase, data.update())
        np.testing.assert_array_equal(made(), before + 1)


def test_factors_and_solves_follow_tasks(engine):
    n = 48
    generator = np.random.default_rng(1)
    matrix = generator.standard_normal((n, n))
    matrix = matrix @ matrix.T + n * np.eye(n)
    a, right = np.zeros((n, n)), np.zeros((n, 2))
    given, sides = engine.data(a, resident=True), engine.data(right[:, :1])

    @quadriga.codelet(access=["write"], cost=COST)
    def fill(array, value):
        array[...] = value

    engine.submit(fill, given.write(), value=matrix)
    engine.submit(fill, sides.write(), value=1.0)
    found = linalg.solve(given, right, assume_a="pos", engine=engine)
    np.testing.assert_allclose(matrix @ found, np.outer(np.ones(n), [1, 0]), atol=1e-10)
    engine.submit(fill, sides.write(), value=2.0)
    factor = linalg.cho_factor(a, engine=engine)
    found = linalg.cho_solve(factor, sides, engine=engine)
    np.testing.assert_allclose(matrix @ found, np.full((n, 1), 2.0), atol=1e-10)


def test_a_temporary_is_an_input_of_linalg(engine):
    data = engine.temporary((4, 4))
    engine.submit(double, engine.data(np.eye(4)).read(), data.write())
    np.testing.assert_allclose(linalg.matmul(data, np.eye(4), engine=engine), 2 * np.eye(4))
    with pytest.raises(quadriga.InvalidArgument, match="out is a temporary, .* or Data of one"):
        linalg.matmul(np.eye(4), np.eye(4), out=data, engine=engine)


def test_a_future_is_no_input_of_linalg(engine):
    future = engine.submit(quadriga.codelet(access=[], cost=COST)(lambda: np.eye(4)))
    for given in (future, [future]):
        with pytest.raises(quadriga.InvalidType, match=r"give its result\(\), or the Data"):
            linalg.matmul(given, np.eye(4), engine=engine)
    with pytest.raises(quadriga.InvalidArgument, match="out is a Future; expected an array"):
        linalg.matmul(np.eye(4), np.eye(4), out=future, engine=engine)
    engine.wait()


def test_linalg_inside_of_on_host(engine):
    x = np.eye(16)
    data = engine.data(x, resident=True)
    engine.submit(increase, data.update())
    with data.on_host("rw") as array:
        linalg.matmul(np.eye(16), array.copy(), out=array, engine=engine)
        array += 1
    engine.submit(increase, data.update())
    engine.wait()
    np.testing.assert_allclose(x, np.eye(16) + 3)


def test_closing_inside_of_on_host():
    engine = quadriga.Engine("emulated:1,memory=1MiB")
    data = engine.data(np.zeros(3))
    with data.on_host("w") as array:
        engine.submit(increase, data.update())
        engine.close()
        array[:] = 1


def test_on_host_raises_what_the_writer_raised(engine):
    @quadriga.codelet(access=["update"], cost=COST)
    def broken(x):
        raise KeyError("no such line")

    data = engine.data(np.zeros(4))
    engine.submit(broken, data.update())
    with pytest.raises(KeyError, match="no such line"), data.on_host("r"):
        pass


def test_engines_come_and_go_while_others_look_for_an_arrays_tasks():
    class Idle:
        _ending = types.SimpleNamespace(is_due=True)
        _tasks = types.SimpleNamespace(settle=lambda begin, size, writes: None)

    stop = time.monotonic() + 0.5
    kept = collections.deque(maxlen=20)
    errors = []

    def come_and_go():
        while time.monotonic() < stop:
            kept.append(Idle())
            registered.note(kept[-1])

    def settle():
        try:
            while time.monotonic() < stop:
                registered.settle(np.zeros(3))
        except Exception as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=each) for each in (come_and_go, settle)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(interval)
    assert errors == []
    kept.clear()
    gc.collect()
