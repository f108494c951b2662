# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_exceptions.py: what a body's exception and those that led to it carry.
import dataclasses
import pickle
import traceback

import numpy as np
import pytest

import quadriga

DEVICES = ["cpu:2", "emulated:1,memory=1MiB"]


def lacks(x):
    return x.nonsense


def cause(x):
    try:
        raise ValueError("first", x)
    except ValueError as error:
        raise KeyError("second") from error


def context(x):
    try:
        raise ValueError("first", x)
    except ValueError:
        raise KeyError("second")  # noqa: B904


def group(x):
    raise ExceptionGroup("several", [ValueError("first", x), StopIteration(x)])


class Slots(Exception):
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    x: object


def slots(x):
    raise Slots(x)


def frozen(x):
    raise Frozen(x)


def file(x):
    raise OSError(2, "no file", x)


def module(x):
    raise ImportError("no module", name=x)


FOUND = {
    lacks: lambda error: [error.obj],
    cause: lambda error: [error.__cause__.args[1]],
    context: lambda error: [error.__context__.args[1]],
    group: lambda error: [error.exceptions[0].args[1], error.exceptions[1].value],
    slots: lambda error: [error.x],
    frozen: lambda error: [error.x, error.args[0]],
    file: lambda error: [error.filename],
    module: lambda error: [error.name],
}


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("body", FOUND)
def test_what_led_to_an_exception_carries_no_operand(body, devices):
    array = np.arange(5.0)
    fails = quadriga.codelet(access=["update"], host_only=False)(body)
    with quadriga.Engine(devices) as engine:
        error = engine.submit(fails, engine.data(array).update()).exception()
        with pytest.raises(type(error)):
            engine.wait()
    for carried in FOUND[body](error):
        assert not np.shares_memory(carried, array)
        assert carried.tolist() == [0, 1, 2, 3, 4]


def test_frames_of_causes_hold_no_view():
    def read(x):
        raise ValueError(f"bad {x.size}")

    def reads(x):
        try:
            read(x)
        except ValueError as error:
            raise KeyError("second") from error

    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        failing = quadriga.codelet(access=["update"], host_only=False)(reads)
        error = engine.submit(failing, engine.data(np.arange(5.0)).update()).exception()
        with pytest.raises(KeyError):
            engine.wait()
    text = traceback.TracebackException.from_exception(error, capture_locals=True).format()
    assert "array(" not in "".join(text)


def test_a_body_that_keeps_a_view_and_raises_is_refused():
    kept = []

    def keeps(x):
        kept.append(x)
        raise ValueError("bad")

    with quadriga.Engine("emulated:1,memory=1MiB") as engine:
        failing = quadriga.codelet(access=["update"], host_only=False, name="keeps")(keeps)
        error = engine.submit(failing, engine.data(np.arange(5.0)).update()).exception()
        with pytest.raises(quadriga.InvalidType, match="'keeps' keeps a view of an operand"):
            engine.wait()
    assert str(error.__cause__) == "bad"


class Bunch:
    """Its lookups raise KeyError."""

    def __init__(self, **items):
        self.__dict__.update(items)

    def __getattr__(self, name):
        return self.__dict__[name]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("make", [lambda: Bunch(n=1), lambda: np.ctypeslib.as_ctypes(np.ones(3))])
def test_objects_of_any_kind_are_results_and_arguments(make, devices):
    def raises(x):
        raise ValueError("my message", make())

    with quadriga.Engine(devices) as engine:
        data = engine.data(np.zeros(3))
        give = quadriga.codelet(access=["read"], host_only=False)(lambda x: make())
        assert type(engine.submit(give, data.read()).result()) is type(make())
        failing = quadriga.codelet(access=["read"], host_only=False)(raises)
        error = engine.submit(failing, data.read()).exception()
        assert error.args[0] == "my message"
        assert type(error.args[1]) is type(make())
        with pytest.raises(ValueError, match="my message"):
            engine.wait()


def test_a_group_can_be_pickled():
    with quadriga.Engine("cpu:1") as engine:
        failing = quadriga.codelet(access=["update"])(group)
        error = engine.submit(failing, engine.data(np.arange(5.0)).update()).exception()
        with pytest.raises(ExceptionGroup, match="several"):
            engine.wait()
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
