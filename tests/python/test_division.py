# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_division.py: Python codelets that say how they divide.
import threading

import numpy as np
import pytest

import quadriga
from quadriga import report


def halves(division, x, y):
    """Rows above and below the middle."""
    middle = len(y) // 2
    for rows in (slice(None, middle), slice(middle, None)):
        division.add(part, x[rows], y[rows])


ran = []


@quadriga.codelet(access=["read", "update"])
def part(x, y, by=1):
    ran.append(y.shape)
    y += by * x


@quadriga.codelet(access=["read", "update"], divide=halves)
def add(x, y):
    ran.append("whole")
    y += x


@pytest.fixture(autouse=True)
def engine():
    ran.clear()
    with quadriga.Engine("cpu:2") as engine:
        yield engine


def submit(engine, codelet, *arrays, **parameters):
    pairs = zip(codelet.access, arrays, strict=True)
    operands = [getattr(engine.data(each), mode)() for mode, each in pairs]
    future = engine.submit(codelet, *operands, **parameters)
    engine.wait()
    return future


SHAPES = [((10,), "C"), ((10, 3), "C"), ((10, 3), "F"), ((2, 1), "C"), ((2, 1), "F")]
SHAPES += [((6, 2, 2), "C")]


@pytest.mark.parametrize(("shape", "order"), SHAPES)
def test_a_divided_task_does_what_its_body_does(engine, shape, order):
    x = np.arange(np.prod(shape), dtype=float).reshape(shape).copy(order)
    y = np.ones(shape, order=order)
    submit(engine, add, x, y)
    assert np.array_equal(y, 1 + x)
    assert ran == [(shape[0] // 2, *shape[1:])] * 2


def test_without_an_engine_the_body_is_called():
    y = np.ones(4)
    add(np.arange(4.0), y)
    assert ran == ["whole"]
    assert y.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("devices", ["emulated:1,memory=1MiB", "cpu:1"])
def test_elsewhere_the_body_runs(devices):
    codelet = quadriga.codelet(access=["read", "update"], host_only=False, divide=halves)(add.cpu)
    y = np.ones(4)
    with quadriga.Engine(devices) as engine:
        submit(engine, codelet, np.arange(4.0), y)
    assert ran == ["whole"]
    assert y.tolist() == [1, 2, 3, 4]


def test_by_the_setting_and_reproducible_no_task_is_divided():
    quadriga.config.divide = False
    try:
        with quadriga.Engine("cpu:2") as engine:
            submit(engine, add, np.arange(4.0), np.ones(4))
    finally:
        del quadriga.config.divide
    with quadriga.Engine("cpu:2", reproducible=True) as engine:
        submit(engine, add, np.arange(4.0), np.ones(4))
    assert ran == ["whole"] * 2


def test_fine_tasks_get_parameters_and_follow_each_other(engine):
    def in_turn(division, y, by):
        for step in range(20):
            division.add(times, y[step % 3 :], by=by, plus=step)

    @quadriga.codelet(access=["update"])
    def times(y, by, plus):
        y *= by
        y += plus
        y %= 101

    whole = quadriga.codelet(access=["update"], divide=in_turn)(lambda y, by: None)
    y = np.arange(5.0)
    expected = y.copy()
    for step in range(20):
        times(expected[step % 3 :], by=3, plus=step)
    submit(engine, whole, y, by=3)
    assert np.array_equal(y, expected)


def test_fine_tasks_run_at_once_on_several_cores(engine):
    both = threading.Barrier(2, timeout=120)
    meet = quadriga.codelet(access=["update"])(lambda y: both.wait() and None)

    def each(division, y):
        for i in range(2):
            division.add(meet, y[i : i + 1])

    submit(engine, quadriga.codelet(access=["update"], divide=each)(lambda y: None), np.ones(2))


def test_fine_tasks_divide_in_turn(engine):
    def quarters(division, x, y):
        for rows in (slice(None, 4), slice(4, None)):
            division.add(add, x[rows], y[rows])

    codelet = quadriga.codelet(access=["read", "update"], divide=quarters)(add.cpu)
    y = np.ones(8)
    submit(engine, codelet, np.arange(8.0), y)
    assert y.tolist() == (1 + np.arange(8.0)).tolist()
    assert ran == [(2,)] * 4


def test_what_a_fine_task_raises_fails_the_task(engine):
    class Planned(Exception):
        pass

    @quadriga.codelet(access=["update"])
    def fails(y):
        raise Planned("as asked")

    def divide(division, y):
        division.add(fails, y)

    with pytest.raises(Planned, match="as asked"):
        submit(engine, quadriga.codelet(access=["update"], divide=divide)(fails.cpu), np.ones(2))


def test_fine_tasks_cant_write_what_is_read(engine):
    @quadriga.codelet(access=["read"])
    def writes(x):
        x += 1

    def divide(division, x):
        division.add(writes, x)

    with pytest.raises(ValueError, match="read-only"):
        submit(engine, quadriga.codelet(access=["read"], divide=divide)(writes.cpu), np.ones(2))


WRONG = [
    (lambda d, x, y: d.add(part, x), quadriga.InvalidArgument, "has 1 operands; it accesses 2"),
    (lambda d, x, y: d.add(part.cpu, x, y), quadriga.InvalidType, "expected a Codelet"),
    (lambda d, x, y: d.add(part, x, 1), quadriga.InvalidType, "operand 1 is int; expected a part"),
    (lambda d, x, y: d.add(part, x, y.copy()), quadriga.InvalidArgument, "operand 1 isn't part"),
    (lambda d, x, y: d.add(part, x, y[::-1]), quadriga.InvalidArgument, "operand 1 runs backwards"),
    (lambda d, x, y: d.add(part, y, x), quadriga.InvalidArgument, "writes operand 1, which"),
    (lambda d, x, y: 1 / 0, ZeroDivisionError, "division by zero"),
]


@pytest.mark.parametrize(("divide", "error", "words"), WRONG)
def test_a_wrong_division_fails_the_task_and_says_why(engine, divide, error, words):
    codelet = quadriga.codelet(access=["read", "update"], name="coarse", divide=divide)(add.cpu)
    with pytest.raises(error, match=words):
        submit(engine, codelet, np.ones(4), np.ones(4))


def test_what_cant_divide_is_refused():
    with pytest.raises(quadriga.InvalidType, match="divide is 1; expected a function"):
        quadriga.codelet(access=["read"], divide=1)(print)
    with pytest.raises(quadriga.InvalidArgument, match="submits"):
        quadriga.codelet(access=["read"], divide=halves, submits=True)(print)
    with pytest.raises(quadriga.InvalidArgument, match="body"):
        quadriga.Codelet(None, ["read"], divide=halves, arrays="cupy", cuda=print)


def test_reports_show_fine_tasks_of_cores_that_help(tmp_path):
    both = threading.Barrier(2, timeout=120)
    meet = quadriga.codelet(access=["update"])(lambda y: both.wait() and None)

    def each(division, y):
        for i in range(2):
            division.add(meet, y[i : i + 1])

    codelet = quadriga.codelet(access=["update"], name="coarse", divide=each)(lambda y: None)
    with quadriga.Engine("cpu:2", trace=tmp_path / "trace.json") as engine:
        submit(engine, codelet, np.ones(2))
    trace = report.load(tmp_path / "trace.json")
    rows = {row["name"]: row["count"] for row in report.summary(trace)["kernels"]}
    assert rows == {"coarse": 1, "fine tasks of coarse": 1}
