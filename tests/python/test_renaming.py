# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_renaming.py: what overwrites an array needn't wait for those that read it.
"""The first readers hold until the test lets them go, so that each write meets them."""

import threading
from contextlib import contextmanager

import numpy as np
import pytest

import quadriga
from quadriga.counters import RenamingCounters

PATIENCE = 300  # seconds; what takes longer hangs
PLACES = ["cpu:2", "emulated:2,memory=1MiB;cpu:2"]


class Reader:
    """Reads on the host once it may, and keeps what it saw."""

    def __init__(self):
        self.began, self.may_end = threading.Event(), threading.Event()
        self.seen = None

    @property
    def codelet(self):
        @quadriga.codelet(access=["read"])
        def look(x):
            self.began.set()
            assert self.may_end.wait(PATIENCE)
            self.seen = x.copy()

        return look


@quadriga.codelet(access=["write"])
def put(x, value):
    x[...] = value


@quadriga.codelet(access=["update"], host_only=False)
def double(x):
    x *= 2


@quadriga.codelet(access=["read"], host_only=False)
def look(x):
    return x.copy()


@contextmanager
def read_while(place, array, renaming="64KiB"):
    """An engine with a pending reader of the array's content; ends even if the block fails."""
    reader = Reader()
    with quadriga.Engine(place, renaming=renaming) as engine:
        try:
            x = engine.data(array)
            engine.submit(reader.codelet, x.read())
            assert reader.began.wait(PATIENCE)
            yield engine, x, reader
        finally:
            reader.may_end.set()


@pytest.mark.parametrize("place", PLACES)
class TestRenaming:
    def test_a_write_after_a_read_does_not_wait(self, place):
        array = np.ones(8)
        with read_while(place, array) as (engine, x, reader):
            engine.submit(put, x.write(), value=2.0).result(PATIENCE)  # while the reader reads
            assert engine.submit(look, x.read()).result(PATIENCE).tolist() == [2.0] * 8
            assert array.tolist() == [1.0] * 8
            engine.submit(double, x.update())
            reader.may_end.set()
            engine.wait()
            assert reader.seen.tolist() == [1.0] * 8
            assert array.tolist() == [4.0] * 8
            counted = engine.counters().renaming
            assert (counted.renamed, counted.refused, counted.copied) == (1, 0, 1)
            assert counted.most_bytes == array.nbytes
            assert engine.counters().as_dict()["renaming"]["renamed"] == 1

    def test_it_is_off_by_default(self, place):
        array = np.ones(8)
        with read_while(place, array, renaming=None) as (engine, x, reader):
            written = engine.submit(put, x.write(), value=2.0)
            assert not written.done()
            reader.may_end.set()
            engine.wait()
            assert (reader.seen[0], array[0]) == (1.0, 2.0)
            assert engine.counters().renaming == RenamingCounters()

    def test_the_setting_switches_it_on(self, place):
        array = np.ones(8)
        with (
            quadriga.config(renaming="1KiB"),
            read_while(place, array, renaming=None) as (engine, x, _),
        ):
            engine.submit(put, x.write(), value=2.0).result(PATIENCE)
            assert engine.counters().renaming.renamed == 1

    def test_without_enough_memory_the_write_waits(self, place):
        array = np.ones(8)
        with read_while(place, array, renaming=array.nbytes - 1) as (engine, x, reader):
            written = engine.submit(put, x.write(), value=2.0)
            assert not written.done()
            reader.may_end.set()
            engine.wait()
            assert array[0] == 2.0
            assert engine.counters().renaming.refused == 1

    def test_layouts_of_any_kind(self, place):
        rows, columns = np.zeros((3, 4)), np.zeros((3, 4), order="F")
        parts = [
            rows,
            columns,
            np.zeros((5, 2)).T,
            np.zeros((4, 9))[:, 2:6],
            np.zeros((2, 3, 4), "c8"),
        ]
        for array in parts:
            value = np.arange(array.size).reshape(array.shape)
            with read_while(place, array) as (engine, x, reader):
                engine.submit(put, x.write(), value=value).result(PATIENCE)
                found = engine.submit(look, x.read()).result(PATIENCE)
                assert found.tolist() == value.tolist()
                assert not array.any()
                reader.may_end.set()
                engine.wait()
                assert array.tolist() == value.tolist()
                assert engine.counters().renaming.renamed == 1

    def test_views_of_the_array_see_the_newest_content(self, place):
        array = np.ones(8)
        with read_while(place, array) as (engine, x, reader):
            engine.submit(put, x.write(), value=2.0).result(PATIENCE)
            reader.may_end.set()
            half = engine.data(array[4:])
            assert engine.submit(look, half.read()).result(PATIENCE).tolist() == [2.0] * 4
            engine.submit(double, half.update())
            engine.wait()
            assert array.tolist() == [2.0] * 4 + [4.0] * 4

    def test_on_host_sees_the_newest_content(self, place):
        array = np.ones(8)
        with read_while(place, array) as (engine, x, reader):
            engine.submit(put, x.write(), value=2.0).result(PATIENCE)
            reader.may_end.set()
            with x.on_host("rw", timeout=PATIENCE) as found:
                assert found.tolist() == [2.0] * 8
                found += 1
            assert engine.submit(look, x.read()).result(PATIENCE).tolist() == [3.0] * 8
            assert np.asarray(x).tolist() == [3.0] * 8

    def test_cancel_brings_it_home(self, place):
        array = np.ones(8)
        with read_while(place, array) as (engine, x, reader):
            engine.submit(put, x.write(), value=2.0).result(PATIENCE)
            reader.may_end.set()
            engine.cancel()
            assert array.tolist() == [2.0] * 8
            array[:] = 3
            assert engine.submit(look, x.read()).result(PATIENCE).tolist() == [3.0] * 8

    def test_the_end_brings_it_home(self, place):
        array = np.ones(8)
        with read_while(place, array) as (engine, x, reader):
            engine.submit(put, x.write(), value=2.0).result(PATIENCE)
            reader.may_end.set()
            engine.close()
        assert array.tolist() == [2.0] * 8

    def test_data_that_go_bring_it_home(self, place):
        array = np.ones(8)
        with read_while(place, array) as (engine, x, reader):
            engine.submit(put, x.write(), value=2.0).result(PATIENCE)
            reader.may_end.set()
            del x
            engine.wait()
            assert array.tolist() == [2.0] * 8

    def test_a_body_that_keeps_a_view_of_it_fails(self, place):
        kept = []

        @quadriga.codelet(access=["read"])
        def keep(x):
            kept.append(x)

        @quadriga.codelet(access=["read"])
        def part(x):
            return x[2:4]

        array = np.ones(8)
        with read_while(place, array) as (engine, x, reader):
            engine.submit(put, x.write(), value=2.0).result(PATIENCE)
            assert engine.submit(part, x.read()).result(PATIENCE).tolist() == [2.0] * 2
            engine.submit(keep, x.read())
            reader.may_end.set()
            with pytest.raises(quadriga.InvalidType, match="keep.*copy"):
                engine.wait()
            kept.clear()

    def test_a_buffer_filled_again_and_again(self, place):
        sums = np.zeros(1)

        @quadriga.codelet(access=["read", "update"])
        def add(x, total):
            total[0] += x.sum()

        array = np.zeros(8)
        with quadriga.Engine(place, renaming=3 * array.nbytes) as engine:
            x, total = engine.data(array), engine.data(sums)
            for step in range(100):
                engine.submit(put, x.write(), value=step)
                engine.submit(add, x.read(), total.update())
            engine.wait()
            assert array.tolist() == [99.0] * 8
            assert sums[0] == 8 * sum(range(100))
            assert engine.counters().renaming.most_bytes <= 3 * array.nbytes


def test_none_is_asked_for(monkeypatch):
    """0 is none, whatever the setting."""
    monkeypatch.setenv("QUADRIGA_RENAMING", "1MiB")
    for given, renamed in ((0, 0), (None, 1)):
        reader, array = Reader(), np.zeros(3)
        with quadriga.Engine("cpu:2", renaming=given) as engine:
            data = engine.data(array)
            engine.submit(reader.codelet, data.read())
            assert reader.began.wait(PATIENCE)
            engine.submit(put, data.write(), value=1.0)
            reader.may_end.set()
            engine.wait()
            assert engine.counters().renaming.renamed == renamed
