# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_failures.py: failures come back with their types, whoever waits.
import contextlib
import dataclasses
import pickle
import sys
import threading
import time

import numpy as np
import pytest

import quadriga
from quadriga import linalg


def fail(x, k):
    raise ValueError(k)


failing = quadriga.codelet(access=["read"])(fail)
nothing = quadriga.codelet(access=["update"])(lambda x: None)


@pytest.mark.parametrize(("window", "count"), [(None, 300), (None, 2000), (100, 700)])
def test_the_first_of_many_failures_keeps_its_type(window, count):
    with quadriga.Engine("cpu:1", window=window) as engine:
        data = engine.data(np.zeros(3))
        for round_ in range(3):
            for k in range(count):
                engine.submit(failing, data.read(), k=(round_, k))
            with pytest.raises(ValueError, match=rf"\({round_}, 0\)"):
                engine.wait()


def test_failures_that_were_seen_are_not_raised_again(engine):
    data = engine.data(np.zeros(3))
    engine.submit(failing, data.read(), k=1)
    with pytest.raises(ValueError, match="1"):
        engine.wait()
    engine.submit(nothing, data.update())
    engine.wait()


@pytest.fixture
def one_core():
    with quadriga.Engine("cpu:1") as engine:
        yield engine


def fail_all(engine, data, numbers):
    """Bodies fail, and nobody asks why."""
    futures = [engine.submit(failing, data.read(), k=k) for k in numbers]
    while not all(future.done() for future in futures):
        time.sleep(0.001)


def named_to_a_thread(engine):
    """What the engine names to a waiter that does not run on until others have waited."""
    errors = []

    def wait():
        engine._tasks.waiting.append(None)
        try:
            engine.core.wait(-1.0)
        except quadriga.TaskFailed as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(120)
    return errors[0]


def test_waiters_that_are_held_up_get_their_types(one_core):
    data = one_core.data(np.zeros(3))
    held_up = []
    for k in (0, 100, 200):
        fail_all(one_core, data, range(k, k + 100))
        held_up.append(named_to_a_thread(one_core))
    fail_all(one_core, data, range(300, 700))
    raised = [one_core._tasks.original(error) for error in held_up[:1]]
    with pytest.raises(ValueError) as caught:
        one_core.wait()
    assert caught.value.args == (300,)
    raised += [one_core._tasks.original(error) for error in held_up[1:]]
    assert [(type(each), each.args) for each in raised] == [
        (ValueError, (0,)),
        (ValueError, (100,)),
        (ValueError, (200,)),
    ]


def test_a_failure_is_kept_until_the_engine_has_forgotten_it(one_core):
    """However many fail in between; what the engine can't name any more isn't kept."""
    data = one_core.data(np.zeros(3))
    fail_all(one_core, data, range(6000))
    kept = len(one_core._tasks.failures._known)
    assert 4000 < kept < 4200
    with pytest.raises(ValueError) as caught:
        one_core.wait()
    assert caught.value.args == (0,)
    assert one_core._tasks.failures._known == {}


def test_each_of_several_waiters_gets_types_of_bodies(engine):
    data = engine.data(np.zeros(3))
    stop = time.monotonic() + 1.5
    kinds = []

    def wait():
        while time.monotonic() < stop:
            try:
                engine.wait()
            except Exception as error:  # noqa: BLE001
                kinds.append(type(error).__name__)

    waiting = [threading.Thread(target=wait) for _ in range(3)]
    for thread in waiting:
        thread.start()
    while True:
        for k in range(400):
            engine.submit(failing, data.read(), k=k)
        if time.monotonic() >= stop:
            break
    for thread in waiting:
        thread.join(120)
    try:
        engine.wait()
    except ValueError:
        kinds.append("ValueError")
    assert set(kinds) == {"ValueError"}, {kind: kinds.count(kind) for kind in kinds}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, quadriga.Deadline])
def test_a_future_gives_what_its_body_raised_whatever_it_is(kind, engine):
    def raising(x):
        raise kind("on purpose")

    task = quadriga.codelet(access=["read"])(raising)
    future = engine.submit(task, engine.data(np.zeros(2)).read())
    error = future.exception(timeout=120)
    assert type(error) is kind
    assert future.exception() is error
    with pytest.raises(kind, match="on purpose"):
        future.result()
    with pytest.raises(kind):
        engine.wait()


def test_threads_submit_near_a_full_window(monkeypatch):
    """Others run between any two steps of those who look for room."""

    def yield_to_others(frame, event, argument):
        if event == "c_call" and frame.f_globals["__name__"].startswith("quadriga"):
            time.sleep(0)

    errors = []
    stop = time.monotonic() + 2

    def submit(engine):
        sys.setprofile(yield_to_others)
        data = engine.data(np.zeros(3))
        try:
            while time.monotonic() < stop:
                engine.submit(nothing, data.update())
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        finally:
            sys.setprofile(None)

    with quadriga.Engine("cpu:1", window=60) as engine:
        threads = [threading.Thread(target=submit, args=(engine,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
    assert errors == []


def test_errors_pickle_that_stand_for_what_a_body_raised(one_core):
    """As where the exception isn't known any more."""
    data = one_core.data(np.zeros(3))
    fail_all(one_core, data, [1])
    error = named_to_a_thread(one_core)
    one_core._tasks.failures.forget(2**62)
    assert one_core._tasks.original(error) is error
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is quadriga.TaskFailed and "ValueError: 1" in str(again)


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2"])
@pytest.mark.parametrize("read", [np.asarray, lambda data: linalg.matmul(data, np.eye(3))])
def test_content_that_nobody_wrote_is_said_once(devices, read):
    """Not again by wait(), which says what else failed."""
    failing = quadriga.codelet(access=["read"], host_only=False)(lambda x: 1 // 0)
    with quadriga.Engine(devices) as engine:
        for _ in range(2):
            with pytest.raises(quadriga.InvalidArgument, match="no content"):
                read(engine.temporary((3, 3)))
        engine.wait()
        with pytest.raises(quadriga.InvalidArgument, match="no content"):
            read(engine.temporary((3, 3)))
        engine.submit(failing, engine.data(np.ones(3)).read())
        with pytest.raises(ZeroDivisionError):
            engine.wait()
        engine.wait()


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2"])
def test_lost_content_names_the_task(devices):
    """Also after wait() has raised what the task failed with; as Cancelled after cancel()."""
    broken = quadriga.codelet(access=["update"], name="broken", host_only=False)(lambda x: 1 // 0)
    started = threading.Event()
    nap = quadriga.codelet(access=["update"], host_only=False)(
        lambda x, t: (started.set(), time.sleep(t), None)[-1]
    )
    idle = quadriga.codelet(access=["update"], name="idle", host_only=False)(lambda x: None)
    with quadriga.Engine(devices) as engine:
        x = engine.data(np.zeros(3))
        engine.submit(broken, x.update())
        with pytest.raises(ZeroDivisionError):
            engine.wait()
        for read in (lambda: x.on_host().__enter__(), lambda: np.asarray(x)):
            with pytest.raises(quadriga.TaskFailed, match="content is lost: task 1 'broken'"):
                read()
        with x.on_host("w") as array:  # as the message of the other loss says, below
            array[:] = 3
        assert np.asarray(x)[0] == 3
        seconds, future = 0.01, None
        while future is None or future.exception() is None:  # until one is cancelled in time
            started.clear()
            y = engine.data(np.zeros(3))
            engine.submit(nap, y.update(), t=seconds)
            assert started.wait(120)  # else cancel() may take this one
            future = engine.submit(idle, y.update())
            engine.cancel()
            seconds *= 2
        with contextlib.suppress(quadriga.Cancelled):
            engine.wait()
        cause = "the data's content is lost: task .* 'idle'.*: the work was cancelled"
        remedy = "once a task of mode write, or on_host.. for writing, overwrites it"
        with pytest.raises(quadriga.Cancelled, match=f"{cause}; {remedy}"):
            np.asarray(y)
        fill = quadriga.codelet(access=["write"], host_only=False)(lambda x: x.fill(7))
        engine.submit(fill, y.write())
        assert np.asarray(y)[0] == 7


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:1,memory=64KiB,streams=3"])
def test_no_body_runs_on_what_a_failed_task_should_have_written(devices):
    """It may be queued on a device before the other one has failed."""
    ran = []

    def bad(x):
        raise ValueError("first")

    failing = quadriga.codelet(access=["update"], host_only=False)(bad)
    note = quadriga.codelet(access=["read", "update"], host_only=False)(lambda x, y: ran.append(1))
    for _ in range(50):
        with quadriga.Engine(devices) as engine:
            x, y = engine.data(np.zeros(10)), engine.data(np.zeros(10))
            engine.submit(failing, x.update())
            second = engine.submit(note, x.read(), y.update())
            assert isinstance(second.exception(), quadriga.Cancelled)
            with pytest.raises(ValueError, match="first"):
                engine.wait()
    assert ran == []


@pytest.mark.parametrize("devices", ["cpu:1", "emulated:1"])
def test_what_wait_raises_keeps_its_causes(devices):
    def first(x):
        try:
            raise ValueError("first")
        except ValueError as error:
            raise KeyError("second") from error

    def then(x):
        try:
            raise ValueError("first")
        except ValueError:
            raise KeyError("second")  # noqa: B904

    for body, led in ((first, "__cause__"), (then, "__context__")):
        fails = quadriga.codelet(access=["update"], host_only=False)(body)
        with quadriga.Engine(devices) as engine:
            engine.submit(fails, engine.data(np.zeros(1)).update())
            with pytest.raises(KeyError, match="second") as failed:
                engine.wait()
            assert str(getattr(failed.value, led)) == "first"
            engine.submit(fails, engine.data(np.zeros(1)).update())
            with pytest.raises(KeyError, match="second") as failed:
                quadriga.linalg.matmul(np.eye(2), np.eye(2), engine=engine)
                engine.wait()
            assert str(getattr(failed.value, led)) == "first"


class Asked(Exception):
    asked = True


@dataclasses.dataclass(frozen=True)
class Unchangeable(Exception):
    code: int


class Noted(Exception):
    __notes__ = "text"


@pytest.mark.parametrize("kind", [Asked, Unchangeable, Noted])
def test_exceptions_of_any_class_are_raised_as_they_are(kind):
    def fails(x):
        raise kind(1)

    with quadriga.Engine("cpu:1") as engine:
        failing = quadriga.codelet(access=["update"])(fails)
        engine.submit(failing, engine.data(np.zeros(1)).update())
        with pytest.raises(kind):
            engine.wait()
    search = quadriga.Pipeline("1MiB", devices="cpu:1")
    search.source({"x": np.ones(3)} for _ in range(2)).map(fails)
    with pytest.raises(kind):
        search.run()


def test_a_body_that_fails_by_anothers_cancellation_fails():
    """The program knows that the other was cancelled, but not that this one failed by it."""
    go = threading.Event()
    with quadriga.Engine("cpu:2") as engine:
        first = quadriga.codelet(access=["update"])(lambda x: go.wait(60))
        asks = quadriga.codelet(access=["update"], name="asks")(lambda x, get: get())
        data = engine.data(np.zeros(1))
        engine.submit(first, data.update())
        other = engine.submit(first, data.update())
        assert other.cancel()
        failed = engine.submit(asks, engine.data(np.zeros(1)).update(), get=lambda: other.result())
        go.set()
        with pytest.raises(quadriga.Cancelled, match="'asks' failed: .*was cancelled"):
            engine.wait()
        assert isinstance(failed.exception(), quadriga.Cancelled)
