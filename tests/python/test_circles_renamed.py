# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_circles_renamed.py: threads that a body waits for, where arrays have names.
"""A task that overwrites an array needn't follow those before it: what a thread waits for must
really follow the body."""

import threading
from contextlib import contextmanager

import numpy as np
import pytest

import quadriga

PATIENCE = 300  # seconds; what takes longer hangs
PLACES = ["cpu:4", "emulated:2,memory=1MiB;cpu:4"]
put = quadriga.codelet(access=["write"])(lambda x, value: x.fill(value))
copy = quadriga.codelet(access=["read", "write"])(lambda x, z: np.copyto(z, x))


@contextmanager
def _circle(place, access, value=None, before=()):
    """A task whose body joins a thread, behind tasks that read x until the block has ended; gives
    the engine, its data, and what runs the thread."""
    may_work, may_end = threading.Event(), threading.Event()
    begun = [threading.Event() for _ in before]
    works, said = [], []

    def read(x, number):
        begun[number].set()
        assert may_end.wait(PATIENCE)

    def work():
        assert may_work.wait(PATIENCE)
        try:
            said.append(works[0]())
        except quadriga.Error as error:
            said.append(error)

    def body(x):
        if value is not None:
            x.fill(value)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def run(wait):
        works.append(wait)
        may_work.set()
        own.result(PATIENCE)
        return said[0]

    with quadriga.Engine(place, renaming="64KiB") as engine:
        data = {name: engine.data(np.zeros(3)) for name in "xz"}
        try:
            for number in range(len(before)):
                reader = quadriga.codelet(access=["read"])(read)
                engine.submit(reader, data["x"].read(), number=number)
                assert begun[number].wait(PATIENCE)
            joins = quadriga.codelet(access=[access])(body)
            own = engine.submit(joins, getattr(data["x"], access)())
            yield engine, data, run
        finally:
            works.append(lambda: None)
            may_work.set()
            may_end.set()


@pytest.mark.parametrize("place", PLACES)
class TestNames:
    @pytest.mark.parametrize("awaited", ["overwrites", "reads"])
    def test_what_overwrites_the_bodys_operand_may_be_waited_for(self, place, awaited):
        may_fill = threading.Event()
        slow = quadriga.codelet(access=["write"])(lambda x: x.fill(2.0 * may_fill.wait(PATIENCE)))
        with _circle(place, "read") as (engine, data, run):
            later = {"overwrites": engine.submit(slow, data["x"].write())}
            later["reads"] = engine.submit(copy, data["x"].read(), data["z"].write())
            look = engine._tasks.look

            def look_and_go_on(awaited):
                look(awaited)  # raises if it takes this for a circle
                may_fill.set()

            engine._tasks.look = look_and_go_on
            said = run(later[awaited].result)
            may_fill.set()
            assert said is None
            engine.wait(PATIENCE)
            assert data["z"].known.tolist() == [2, 2, 2]

    def test_the_host_waits_for_the_body_that_reads_what_was_overwritten(self, place):
        with _circle(place, "read") as (engine, data, run):
            engine.submit(put, data["x"].write(), value=2.0).result(PATIENCE)
            said = run(lambda: data["x"].on_host("r").__enter__())
            assert isinstance(said, quadriga.Unavailable), said
            engine.wait(PATIENCE)
            assert data["x"].known.tolist() == [2, 2, 2]

    def test_data_wait_for_the_body_that_reads_an_old_content(self, place):
        with _circle(place, "read") as (engine, data, run):
            engine.submit(put, data["x"].write(), value=2.0).result(PATIENCE)
            assert isinstance(run(data["x"].wait), quadriga.Unavailable)

    @pytest.mark.parametrize("mode", ["r", "rw"])
    def test_the_host_does_not_wait_for_the_body_that_overwrites(self, place, mode):
        with _circle(place, "write", 5.0, before=["reader"]) as (engine, data, run):
            said = run(lambda: data["x"].on_host(mode).__enter__())
            assert isinstance(said, quadriga.Unavailable), said

    def test_what_reads_the_new_content_follows_the_body(self, place):
        with _circle(place, "write", 5.0, before=["reader"]) as (engine, data, run):
            later = engine.submit(copy, data["x"].read(), data["z"].write())
            said = run(data["z"].wait)
            assert isinstance(said, quadriga.Unavailable), said
            later.result(PATIENCE)
            assert np.asarray(data["z"]).tolist() == [5, 5, 5]
            assert engine.counters().renaming.renamed == 1
