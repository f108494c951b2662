# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_resident_is_read_only.py: no write into a resident array is lost.
"""A resident array is read-only beside `on_host` while devices may have replicas, and no longer."""

import gc
import threading

import numpy as np
import pytest
from test_sharing import ENGINES, double, engine, increase

import quadriga
from quadriga import linalg

__all__ = ["engine"]


@pytest.fixture(params=["emulated", "virtual"])
def devices(request):
    with quadriga.Engine(**ENGINES[request.param]) as made:
        yield made


def refuses(array):
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 10
    return True


def test_a_write_after_wait_is_seen_or_refused(engine):
    x = np.zeros(4)
    data = engine.data(x, resident=True)
    engine.submit(increase, data.update())
    engine.wait()
    try:
        x[:] = 10
    except ValueError:
        x = np.asarray(data)
    expected = x[0] + 1
    engine.submit(increase, data.update())
    with data.on_host("r") as array:
        np.testing.assert_array_equal(array, expected)


def test_on_cores_arrays_stay_as_they_are():
    x = np.zeros(4)
    with quadriga.Engine("cpu:2") as engine:
        data = engine.data(x, resident=True)
        engine.submit(increase, data.update()).result()
        x[:] = 10


def test_it_is_read_only_outside_of_on_host(devices):
    x = np.zeros(4)
    data = devices.data(x, resident=True)
    for step in range(3):
        devices.submit(increase, data.update())
        devices.wait()
        for each in (x, x[1:], data.array, data.known, np.asarray(data)):
            assert refuses(each)
        with data.on_host("r"):
            assert refuses(x)
        with data.on_host("rw") as array:
            array += 1
            x += 1
            with data.on_host("w"):
                x[0] -= 0
            x[1] += 0
        assert refuses(x) and refuses(array)
        np.testing.assert_array_equal(x, 3 * (step + 1))


@pytest.mark.parametrize("end", ["close", "leave", "with", "drop", "remove", "cycle"])
def test_the_end_gives_it_back(end):
    x = np.zeros(4)
    engine = quadriga.Engine("emulated:2,memory=1MiB")
    data = engine.data(x, resident=True)
    engine.submit(increase, data.update()).result()
    assert refuses(x)
    if end == "close":
        engine.close()
    elif end == "leave":
        with pytest.raises(KeyboardInterrupt), engine:
            raise KeyboardInterrupt
    elif end == "with":
        with engine:
            pass
    elif end == "drop":
        del engine, data
        gc.collect()
    elif end == "remove":
        del data
        engine.wait()
    else:
        circle = [data]
        circle.append(circle)
        del data, circle
        gc.collect()
        engine.wait()
    assert x.flags.writeable
    x[:] = 3


def test_what_was_read_only_stays_so():
    x = np.zeros(4)
    x.flags.writeable = False
    part = np.zeros(8)[2:6]
    part.flags.writeable = False
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        for each in (x, part):
            data = engine.data(each, resident=True)
            engine.submit(double, data.read(), engine.data(np.zeros(4)).write()).result()
            with pytest.raises(quadriga.InvalidArgument, match="read-only"):
                data.update()
    assert not x.flags.writeable and not part.flags.writeable


@pytest.mark.parametrize("first", [0, 1])
def test_views_and_their_base_are_given_back_in_any_order(first):
    x = np.zeros((4, 4))
    part = x[1:]
    arrays = [x, part, x.T]
    engines = [quadriga.Engine("emulated:1,memory=1MiB") for _ in range(2)]
    held = []
    for made in engines:
        for each in arrays:
            held.append(made.data(each, resident=True))
            made.submit(increase, held[-1].update()).result()
    late = engines[0].data(x[:2], resident=True)
    engines[0].submit(increase, late.update()).result()
    assert not any(each.flags.writeable for each in arrays)
    engines[first].close()
    engines[1 - first].close()
    assert all(each.flags.writeable for each in arrays)
    expected = np.full((4, 4), 4) + [[0], [2], [2], [2]] + [[1], [1], [0], [0]]
    np.testing.assert_array_equal(x, expected)


def test_it_is_known_again_and_written_by_tasks_and_linalg(devices):
    x = np.eye(8)
    data = devices.data(x, resident=True)
    assert devices.data(x) == data and devices.data(x, resident=True) == data
    devices.submit(increase, devices.data(x[:4], resident=True).update())
    devices.submit(increase, devices.data(x).update())
    np.testing.assert_array_equal(data, np.eye(8) + 1 + np.array([[1]] * 4 + [[0]] * 4))
    linalg.matmul(np.eye(8), np.ones((8, 8)), out=x, engine=devices)
    devices.submit(increase, data.update())
    found = linalg.matmul(np.eye(8), data, engine=devices)
    assert linalg.matmul(np.eye(8), found, out=data, engine=devices) is data
    devices.submit(increase, data.update())
    devices.wait()
    np.testing.assert_array_equal(x, 3)
    assert refuses(x)


def test_memory_of_others_is_given_back():
    memory = bytearray(32)
    arrays = [np.frombuffer(memory), np.frombuffer(memory)[1:]]
    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        for each in arrays:
            engine.submit(increase, engine.data(each, resident=True).update()).result()
            assert refuses(each)
    assert all(each.flags.writeable for each in arrays)
    np.testing.assert_array_equal(arrays[0], [1, 2, 2, 2])


def test_accesses_of_threads(devices):
    x = np.zeros(4)
    data = devices.data(x, resident=True)

    def add():
        for _ in range(20):
            devices.submit(increase, data.update())
            with data.on_host("rw") as array:
                array += 1

    threads = [threading.Thread(target=add) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    devices.wait()
    np.testing.assert_array_equal(x, 120)
    assert refuses(x)


def test_closing_inside_of_on_host_gives_it_back():
    x = np.zeros(3)
    engine = quadriga.Engine("emulated:1,memory=1MiB")
    data = engine.data(x, resident=True)
    with data.on_host("w"):
        engine.close()
    assert x.flags.writeable
