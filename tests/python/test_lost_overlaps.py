# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_lost_overlaps.py: what overlaps content that a failed task should have written.
"""It isn't read until it is written; what else was written meanwhile is."""

import contextlib
import threading

import numpy as np
import pytest
from test_sharing import COST, ENGINES

import quadriga


@pytest.fixture(params=ENGINES)
def engine(request):
    with (
        contextlib.suppress(ZeroDivisionError, quadriga.Cancelled),
        quadriga.Engine(**ENGINES[request.param]) as made,
    ):
        yield made


def codelet(mode, body):
    return quadriga.codelet(access=[mode], host_only=False, cost=COST, name=body.__name__)(body)


def _broken(x):
    return 1 // 0


def _total(x):
    return float(x.sum())


broken = codelet("update", _broken)
total = codelet("read", _total)
increase = codelet("update", lambda x: np.add(x, 1, out=x) is None)
fill = codelet("write", lambda x: x.fill(2))


def put(data, value):
    with data.on_host("w") as array:
        array[...] = value


@pytest.mark.parametrize("waits", [False, True])
def test_a_reader_of_the_whole_does_not_run(engine, waits):
    a = np.ones(10)
    whole, part = engine.data(a), engine.data(a[2:5])
    engine.submit(broken, part.update())
    if waits:
        with pytest.raises(ZeroDivisionError):
            engine.wait()
    found = engine.submit(total, whole.read()).exception()
    assert isinstance(found, quadriga.Cancelled) and "_broken" in str(found)
    with pytest.raises((quadriga.TaskFailed, quadriga.Cancelled, ZeroDivisionError)):
        np.asarray(whole)
    assert engine.submit(total, engine.data(a[6:]).read()).result() == 4


@pytest.mark.parametrize("write", [put, lambda data, value: data.engine.submit(fill, data.write())])
def test_what_is_written_is_found_again(engine, write):
    a = np.ones(10)
    whole, part, rest = engine.data(a), engine.data(a[2:5]), engine.data(a[4:8])
    engine.submit(broken, part.update())
    assert engine.submit(total, whole.read()).exception() is not None
    write(rest, 2)
    for lost in (part, whole):  # an element of `part` was written, and two weren't
        assert engine.submit(total, lost.read()).exception() is not None
        with pytest.raises((quadriga.TaskFailed, quadriga.Cancelled, ZeroDivisionError)):
            lost.on_host("r").__enter__()
    write(part, 2)
    assert engine.submit(total, part.read()).result() == 6
    assert engine.submit(total, whole.read()).result() == 16
    assert np.asarray(whole).sum() == 16


def test_a_write_of_the_whole_is_enough(engine):
    for write in (put, lambda data, value: engine.submit(fill, data.write())):
        a = np.ones(10)
        whole, part = engine.data(a), engine.data(a[2:5])
        engine.submit(broken, part.update())
        assert engine.submit(total, whole.read()).exception() is not None
        write(whole, 2)
        assert engine.submit(total, part.read()).result() == 6
        assert np.asarray(part).tolist() == [2, 2, 2]


def test_what_others_wrote_meanwhile_is_read(engine):
    """Also where the task failed that was to bring it home for the whole."""
    a = np.ones(10)
    whole, part, other = engine.data(a), engine.data(a[2:5]), engine.data(a[6:9])
    more = engine.data(a[6:10])
    engine.submit(broken, part.update())
    engine.submit(increase, other.update())
    assert engine.submit(total, whole.read()).exception() is not None
    assert engine.submit(total, more.read()).result() == 7


def test_what_cancelled_tasks_should_have_written():
    opened, began = threading.Event(), threading.Event()

    @quadriga.codelet(access=["update"])
    def gated(x):
        began.set()
        assert opened.wait(300)

    for devices in ("cpu:2", "emulated:2,memory=1MiB"):
        a = np.ones(10)
        opened.clear(), began.clear()
        with quadriga.Engine(devices) as engine:
            whole, part = engine.data(a), engine.data(a[2:5])
            engine.submit(gated, engine.data(a[:3]).update())
            later = engine.submit(increase, part.update())
            assert began.wait(300)
            canceller = threading.Thread(target=engine.cancel)
            canceller.start()
            opened.set()
            canceller.join()
            if later.exception() is not None:  # else it ran before
                with pytest.raises(quadriga.Cancelled):
                    np.asarray(whole)
                put(part, 5)
            with contextlib.suppress(quadriga.Cancelled):
                engine.wait()
            assert np.asarray(whole).sum() in (22, 13)
