# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_arguments.py: arguments of the wrong kind are named, with what was expected.
import numpy as np
import pytest
from codelets_of_tests import add, increment, on_devices

import quadriga


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"window": 1.5}, "window is 1.5; expected a whole number"),
        ({"window": "3"}, "window is '3'; expected a whole number"),
        ({"window": 0}, "window 0: expected a whole number from 1"),
        ({"window": 2**70}, "window .*: expected a whole number from 1"),
        ({"seed": -1}, "seed -1: expected a whole number from 0"),
        ({"seed": None}, "seed is None; expected a whole number"),
        ({"policy": 5}, "policy is 5; expected a name"),
        ({"virtual_clock": "no"}, "virtual_clock is 'no'; expected True or False"),
        ({"compute": None}, "compute is None; expected True or False"),
        ({"protect": 1}, "protect is 1; expected True or False"),
        ({"trace": 3}, "trace is 3; expected a path"),
        ({"trace": b"t.json"}, "trace is b't.json'; expected a path"),
        ({"trace": ""}, "trace is an empty path"),
        ({"spill": 3}, "spill is 3; expected a path"),
        ({"spill": ""}, "spill is an empty path"),
    ],
)
def test_options_of_engines(options, match):
    with pytest.raises(quadriga.InvalidArgument, match=match):
        quadriga.Engine("cpu:1", **options)


def test_what_is_no_codelet_is_not_submitted(engine):
    operand = engine.data(np.zeros(3)).update()
    for wrong in (increment.cpu, None, "increment"):
        with pytest.raises(quadriga.InvalidType, match=r"codelet is .*quadriga.codelet\(access="):
            engine.submit(wrong, operand)


def test_operands_say_how_they_are_touched(engine):
    x = np.zeros(3)
    data = engine.data(x)
    for wrong in (x, data, 3):
        with pytest.raises(quadriga.InvalidType, match=r"operand 1 of codelet 'add' is .*read\(\)"):
            engine.submit(add, data.read(), wrong)
    engine.wait()


@pytest.mark.parametrize("priority", ["high", 1.5, 2**40, None])
def test_priorities_are_whole_numbers(engine, priority):
    with pytest.raises(quadriga.InvalidArgument, match="priority .*expected a whole number"):
        engine.submit(increment, engine.data(np.zeros(3)).update(), priority=priority)
    engine.wait()


@pytest.mark.parametrize("device", [True, False, -1, 1.0, "emulated7", b"cpu"])
def test_devices_are_numbers_or_names(engine, device):
    with pytest.raises(quadriga.InvalidArgument, match="no device .*; there are .*cpu"):
        engine.submit(increment, engine.data(np.zeros(3)).update(), device=device)


def test_numbers_of_numpy_are_numbers(engine):
    place = engine.temporary(np.int64(3))
    assert place.shape == (3,)
    assert engine.temporary((np.int8(2), np.uint16(3))).shape == (2, 3)
    fill = on_devices(["write"], lambda x: x.fill(1))
    engine.submit(fill, place.write(), priority=np.int64(3), device=np.int32(0)).result()
    with pytest.raises(quadriga.InvalidArgument, match="no device"):
        engine.submit(fill, place.write(), device=np.int64(99))


@pytest.mark.parametrize("shape", [2.5, (2.5,), "ab", None, (2, None), -1, (2**40, 2**40)])
def test_shapes_of_temporaries(engine, shape):
    with pytest.raises(quadriga.InvalidArgument, match="shape .*expected sizes"):
        engine.temporary(shape)


def test_temporaries_are_kept_or_not(engine):
    with pytest.raises(quadriga.InvalidType, match="keep is 'yes'; expected True or False"):
        engine.temporary(3, keep="yes")


def test_temporaries_hold_no_objects(engine):
    with pytest.raises(quadriga.InvalidArgument, match="Python objects"):
        engine.temporary(3, object)


@pytest.mark.parametrize("timeout", ["3", [1], float("nan")])
def test_timeouts_are_seconds(engine, timeout):
    with pytest.raises(quadriga.InvalidArgument, match="timeout .*expected seconds"):
        engine.wait(timeout)


@pytest.mark.parametrize(
    ("access", "options", "match"),
    [
        (None, {}, "access None: expected a list"),
        (5, {}, "access 5: expected a list"),
        ([["read"]], {}, "access .*: expected a list"),
        (["read"], {"cost": 5}, "cost is 5; expected a quadriga.Cost"),
        (["read"], {"cost": ("dgemm", 1, 2)}, "cost is .*; expected a quadriga.Cost"),
        (["read"], {"name": 5}, "name is 5; expected a str"),
    ],
)
def test_codelets(access, options, match):
    with pytest.raises(quadriga.InvalidArgument, match=match):
        quadriga.codelet(access, **options)(add.cpu)


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "2", None])
def test_stated_costs_are_numbers(value):
    with pytest.raises(quadriga.InvalidArgument, match="seconds is .*; expected a"):
        quadriga.Cost.of_seconds(value)
    with pytest.raises(quadriga.InvalidArgument, match="flops is .*; expected a"):
        quadriga.Cost.of_work(flops=value)


def test_bodies_can_be_called():
    with pytest.raises(quadriga.InvalidType, match="cpu is 5; expected a function"):
        quadriga.codelet(["read"])(5)


def test_shared_memory_is_counted_in_bytes():
    for wrong in (-1, 1.5, 2**31):
        with pytest.raises(quadriga.InvalidArgument, match="shared_bytes .*whole number"):
            quadriga.CudaSource("", shared_bytes=wrong)


def test_masked_arrays_are_refused(engine):
    with pytest.raises(quadriga.InvalidArgument, match="masked arrays"):
        engine.data(np.ma.masked_array([1.0, 2.0], [0, 1]))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_bodies_get_plain_arrays_wherever_they_run(engine):
    """A matrix of NumPy's multiplies otherwise, so that results would differ by device."""
    square = on_devices(["read", "write"], lambda x, y: np.copyto(y, x * x))
    result = np.zeros((2, 2))
    given = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    data = engine.data(given)
    engine.submit(square, data.read(), engine.data(result).write())
    engine.submit(on_devices(["update"], lambda x: type(x) is np.ndarray or 1 / 0), data.update())
    engine.wait()
    assert result.tolist() == [[1, 4], [9, 16]]
    assert data.array is given


@pytest.mark.parametrize("given", [{"priority": 3}, {"device": 0}, {"priority": 1, "device": 0}])
def test_a_body_does_not_miss_what_submit_takes_by_the_same_name(engine, given):
    own = quadriga.codelet(access=["update"])(lambda x, priority=0, device=None: x.fill(1))
    operand = quadriga.codelet(access=["update"])(lambda device: device.fill(2))
    fixed = quadriga.codelet(access=["update"])(lambda x, **others: x.fill(3 + len(others)))
    array = np.zeros(3)
    data = engine.data(array)
    with pytest.raises(quadriga.InvalidArgument, match=r"which submit\(\) takes for itself"):
        engine.submit(own, data.update(), **given)
    engine.submit(own, data.update()).result()
    host = dict(given)
    if "device" in given:
        host["device"] = engine.machine.devices[-1].name
    for codelet, expected in ((operand, 2), (fixed, 3)):
        engine.submit(codelet, data.update(), **host)
        engine.wait()
        assert array.tolist() == [expected] * 3
