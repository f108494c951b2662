# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_record.py: a task's record: what C++ makes of it, and both ways to its body.
import gc
import weakref

import numpy as np
import pytest

import quadriga
from quadriga.errors import Cancelled
from quadriga.record import Record


@quadriga.codelet(access=["read", "update"])
def add(x, y):
    y += x


@pytest.fixture
def operands(engine):
    return engine.data(np.ones(2)).read(), engine.data(np.zeros(2)).update()


@pytest.fixture
def engine():
    with quadriga.Engine("cpu:1") as made:
        yield made


def test_plain_operands_are_taken_as_any_others_are(operands):
    plain = Record(1, add, operands, {})
    looked_at = Record(2, add, list(operands), {"factor": 2})
    assert plain.places == looked_at.places == tuple(each.data.place for each in operands)
    assert plain.access == looked_at.access == ("read", "update")
    assert plain.given is looked_at.given is None


def test_other_modes_are_kept_for_the_engine_to_refuse(engine, operands):
    first, second = operands
    assert Record(1, add, (first, second.data.read()), {}).access == ("read", "read")
    with pytest.raises(quadriga.InvalidArgument, match="operand 1 of codelet 'add' has mode"):
        engine.submit(add, first, second.data.read())


@pytest.mark.parametrize("given", [(), ("1", add, (), {}), (1, add, (), None)])
def test_a_record_of_anything_else_is_refused(given):
    with pytest.raises(TypeError):
        Record(*given)


def test_a_record_without_its_modes_is_refused(engine, operands):
    record = Record(1, add, operands, {})
    record.access = ("read",)
    with pytest.raises(quadriga.InvalidArgument, match="a mode of access for each of its places"):
        engine.core.submit(add.core, record, 0, 0, [])
    with pytest.raises(AttributeError):
        record.parameters = {}


def test_a_task_is_started_or_withdrawn(operands):
    started = Record(1, add, operands, {})
    assert started.begin()
    assert not started.withdraw_as(Cancelled("late"))
    assert started.withdrawn is None
    withdrawn = Record(2, add, operands, {})
    assert withdrawn.withdraw_as(Cancelled("early"))
    assert not withdrawn.begin()
    assert not withdrawn.started


def test_the_collector_frees_a_record_that_refers_to_itself(operands):
    class Held(dict):
        pass

    record = Record(1, add, operands, Held())
    found = weakref.ref(record.parameters)
    record.parameters["record"] = record
    del record
    gc.collect()
    assert found() is None


@pytest.mark.parametrize("count", [1, 8, 9])
@pytest.mark.parametrize("parameters", [{}, {"step": 3}])
def test_a_body_gets_the_arrays_themselves(engine, count, parameters):
    arrays = [np.zeros(2) for _ in range(count)]
    found = []

    def body(*views, step=1):
        found.append(views)
        views[-1][:] += step

    codelet = quadriga.codelet(access=["read"] * (count - 1) + ["update"])(body)
    data = [engine.data(each) for each in arrays]
    for _ in range(2):  # a view for readers is made once
        engine.submit(
            codelet, *[each.read() for each in data[:-1]], data[-1].update(), **parameters
        )
        engine.wait()
    for views in found:
        assert views[-1] is arrays[-1]
        for view, array in zip(views[:-1], arrays[:-1], strict=True):
            assert np.shares_memory(view, array)
            assert not view.flags.writeable
    assert arrays[-1][0] == 2 * parameters.get("step", 1)


def test_a_result_that_is_the_operand_is_copied(engine):
    x = np.zeros(2)

    @quadriga.codelet(access=["update"])
    def returning(x):
        x += 1
        return x

    data = engine.data(x)
    futures = [engine.submit(returning, data.update()) for _ in range(2)]
    assert [each.result()[0] for each in futures] == [1, 2]
