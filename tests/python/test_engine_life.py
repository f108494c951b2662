# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_engine_life.py: engines begin, end and fork; what they tell of themselves.
import contextlib
import copy
import gc
import logging
import multiprocessing
import os
import pickle
import threading
import time
import weakref

import numpy as np
import pytest
from codelets_of_tests import Planned, increment, on_devices
from paces_of_tests import at_some_pace, becomes

import quadriga
from quadriga.record import Record

on_all_devices = pytest.mark.parametrize("devices", ["cpu:1", "emulated:1,memory=1MiB"])


class TestLife:
    def test_inside_a_with_block_it_is_the_default(self):
        with quadriga.Engine("cpu:1") as outer:
            assert quadriga.default_engine() is outer
            with quadriga.Engine("cpu:1") as inner:
                assert quadriga.default_engine() is inner
            assert quadriga.default_engine() is outer
        assert quadriga.default_engine() is not outer

    def test_the_default_engine_follows_the_configuration(self):
        with quadriga.config(devices="cpu:1"):
            first = quadriga.default_engine()
            assert quadriga.default_engine() is first
        with quadriga.config(devices="emulated:1,memory=1MiB"):
            assert quadriga.default_engine().machine.devices[0].name == "emulated0"
        quadriga.configure(devices="cpu:2", policy="steal")
        assert quadriga.default_engine().policy == "steal"
        quadriga.configure()
        assert quadriga.default_engine().policy == "affinity"
        with pytest.raises(
            quadriga.InvalidArgument, match=r"configure\(foo=...\): expected one of"
        ):
            quadriga.configure(foo=1)

    def test_a_closed_engine_refuses_and_says_so(self):
        engine = quadriga.Engine("cpu:1")
        data = engine.data(np.zeros(1))
        engine.close()
        engine.close()
        with pytest.raises(quadriga.InvalidArgument, match="closed"):
            engine.submit(increment, data.update())
        with pytest.raises(quadriga.InvalidArgument, match="closed"):
            engine.wait()
        assert "closed" in repr(engine)
        assert "closed" in engine._repr_html_()

    @pytest.mark.parametrize("end", ["close", "drop", "error"])
    def test_what_ended_tasks_wrote_is_there_afterwards(self, end):
        x, y = np.zeros(4), np.zeros(4)
        add = on_devices(["update"], lambda v: v.__iadd__(1))
        engine = quadriga.Engine("emulated:2,memory=1MiB")
        engine.submit(add, engine.data(x).update()).result()
        engine.submit(add, engine.data(y, resident=True).update()).result()
        if end == "close":
            engine.close()
        elif end == "error":
            with pytest.raises(Planned), engine:
                raise Planned
        del engine
        gc.collect()
        assert x.tolist() == y.tolist() == [1, 1, 1, 1]

    def test_engines_are_not_copied(self):
        with quadriga.Engine("cpu:1") as engine:
            future = engine.submit(increment, engine.data(np.zeros(2)).update())
            for each in (engine, engine.data(np.zeros(2)), future):
                with pytest.raises(quadriga.InvalidType, match="can't be copied or pickled"):
                    pickle.dumps(each)
            with pytest.raises(quadriga.InvalidType, match="pass arrays and results"):
                copy.copy(engine)
            gc.collect()
            engine.wait()

    def test_an_error_in_the_block_cancels_what_has_not_started(self):
        def ends_in_time(pace):
            x, may_end = np.zeros(1), threading.Event()
            held = quadriga.codelet(access=["update"])(lambda v: may_end.wait(240) and None)
            with pytest.raises(Planned), quadriga.Engine("cpu:1") as engine:
                data = engine.data(x)
                engine.submit(held, data.update())
                for _ in range(100):
                    engine.submit(increment, data.update())
                threading.Timer(0.05 * pace, may_end.set).start()
                raise Planned
            assert x[0] == 0

        at_some_pace(ends_in_time)

    def test_engines_that_are_dropped_end(self):
        tasks = set(os.listdir("/proc/self/task"))
        for _ in range(5):
            engine = quadriga.Engine("emulated:2,memory=1MiB")
            engine.submit(increment, engine.data(np.zeros(4)).update())
            del engine
        gc.collect()
        assert becomes(lambda: len(set(os.listdir("/proc/self/task")) - tasks) <= 2)

    @pytest.mark.parametrize("trace", [False, True])
    @pytest.mark.parametrize("waits", [False, True])
    @pytest.mark.parametrize("how", ["closure", "parameter", "failure"])
    def test_engines_end_whose_tasks_refer_to_them(self, how, waits, trace):
        def use():
            engine = quadriga.Engine("emulated:2,memory=1MiB", trace=trace)

            def refers(x, of=None):
                if how == "failure":
                    raise ValueError(engine)
                return engine if how == "closure" else of

            body = quadriga.codelet(access=["update"])(refers)
            parameters = {"of": engine} if how == "parameter" else {}
            engine.submit(body, engine.data(np.zeros(4)).update(), **parameters)
            if waits:
                with contextlib.suppress(ValueError):
                    engine.wait()
            return weakref.ref(engine)

        dropped = [use() for _ in range(3)]
        assert becomes(lambda: gc.collect() >= 0 and all(each() is None for each in dropped))

    def test_use_after_fork_raises(self):
        engine = quadriga.Engine("cpu:1")
        data = engine.data(np.zeros(1))
        reader, writer = multiprocessing.Pipe(duplex=False)
        child = os.fork()
        if child == 0:
            outcomes = []
            for use in (
                lambda: engine.submit(increment, data.update()),
                engine.wait,
                engine.cancel,
                lambda: engine.data(np.zeros(1)),
            ):
                try:
                    use()
                    outcomes.append("nothing")
                except quadriga.Unavailable as error:
                    outcomes.append("fork" if "fork" in str(error) else str(error))
                except BaseException as error:  # noqa: BLE001
                    outcomes.append(repr(error))
            try:
                engine.close()
                del data
            except BaseException as error:  # noqa: BLE001
                outcomes.append(repr(error))
            writer.send(outcomes)
            os._exit(0)
        assert reader.poll(240), "the child hangs"
        assert reader.recv() == ["fork"] * 4
        assert os.waitpid(child, 0)[1] == 0
        engine.submit(increment, data.update())
        engine.wait()
        engine.close()

    @on_all_devices
    def test_a_child_may_leave_an_access_that_tasks_wait_for(self, devices):
        """The access stays its parent's, whose engine's threads the child doesn't have."""
        with quadriga.Engine(devices) as engine:
            array = np.zeros(4)
            data = engine.data(array)
            reader, writer = multiprocessing.Pipe(duplex=False)
            with data.on_host("rw") as held:
                behind = engine.submit(on_devices(["update"], increment.cpu), data.update())
                child = os.fork()
                if child != 0:
                    held[:] = 1
                    assert reader.poll(240), "the child hangs"
                    assert not behind.done()
            if child == 0:
                writer.send("left")
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            engine.wait()
            assert array.tolist() == [2.0] * 4

    def test_a_child_process_ends(self):
        engine = quadriga.Engine("emulated:1,memory=1MiB")
        child = os.fork()
        if child == 0:
            import atexit

            atexit._run_exitfuncs()
            os._exit(7)
        deadline = time.time() + 240
        while time.time() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
            time.sleep(0.05)
        else:
            os.kill(child, 9)
            pytest.fail("the child hangs at its end")
        assert os.waitstatus_to_exitcode(status) == 7
        engine.close()

    @pytest.mark.parametrize(
        ("options", "match"),
        [
            ({"devices": "toaster:2"}, "toaster"),
            (
                {"policy": "luck"},
                "registered are affinity, data-first, earliest-finish, steal, weight",
            ),
            ({"window": 0}, "window"),
            ({"host_memory": "much"}, "much"),
            ({"renaming": "some"}, "some"),
        ],
    )
    def test_wrong_options_say_what_is_accepted(self, options, match):
        with pytest.raises(quadriga.InvalidArgument, match=match):
            quadriga.Engine(**options)


class TestSeeing:
    def test_counters_are_dataclasses(self):
        with quadriga.Engine("emulated:1,memory=1MiB") as engine:
            x = engine.data(np.zeros((64, 64)))
            kind = on_devices(["update"], increment.cpu)
            for _ in range(4):
                engine.submit(kind, x.update())
            engine.wait()
            counters = engine.counters()
            assert counters.ended == counters.submitted == 4
            assert counters.bytes == counters.host_bytes == 2 * 64 * 64 * 8
            assert sum(link.copies for link in counters.links) == 2
            assert sum(device.tasks for device in counters.devices) == 4
            assert 0 <= counters.overlap <= 1
            assert "emulated0" in str(counters)
            assert "emulated0" in engine._repr_html_()
            assert counters.as_dict()["bytes"] == counters.bytes
            engine.reset_counters()
            assert engine.counters().bytes == 0
            assert "issued" in engine.status()

    def test_machine(self):
        machine = quadriga.Machine.parse("emulated:2,memory=64MiB;cpu:1")
        assert [d.name for d in machine.devices] == ["emulated0", "emulated1", "cpu"]
        assert machine.devices[0].memory_bytes == 64 << 20
        again = quadriga.Machine.from_json(machine.to_json())
        assert again.devices == machine.devices
        assert again.links == machine.links
        assert "64 MiB" in machine._repr_html_()
        with quadriga.Engine(machine) as engine:
            assert engine.machine.devices[:3] == machine.devices
        with pytest.raises(OSError, match="nowhere"):
            quadriga.Machine.from_file("nowhere.json")

    def test_the_virtual_clock_repeats_itself(self):
        def run():
            with quadriga.Engine(
                quadriga.Machine.from_json(TIMED), virtual_clock=True, seed=3
            ) as engine:
                cost = quadriga.Cost("dgemm", 64, 64**3)
                kind = quadriga.codelet(access=["update"], host_only=False, cost=cost)(
                    increment.cpu
                )
                arrays = [np.zeros((64, 64)) for _ in range(6)]
                data = [engine.data(array) for array in arrays]
                for step in range(30):
                    engine.submit(kind, data[step * 7 % 6].update())
                engine.wait()
                assert all(array[0, 0] == 5 for array in arrays)
                return engine.now(), engine.counters()

        assert run() == run()

    def test_without_a_cost_the_virtual_clock_refuses(self):
        with quadriga.Engine(quadriga.Machine.from_json(TIMED), virtual_clock=True) as engine:
            engine.submit(increment, engine.data(np.zeros(1)).update())
            with pytest.raises(quadriga.Error, match="cost"):
                engine.wait()

    def test_messages_go_to_logging(self, caplog):
        from quadriga import _core

        with caplog.at_level(logging.DEBUG, "quadriga"):
            _core.log(logging.WARNING, "a test's message")
            _core.log(logging.DEBUG, "not wanted")
        assert [(r.name, r.levelname, r.message) for r in caplog.records] == [
            ("quadriga", "WARNING", "a test's message")
        ]


TIMED = """{
  "name": "timed",
  "devices": [
    {"name": "g0", "kind": "gpu", "memory": 200000},
    {"name": "g1", "kind": "gpu", "memory": 200000}
  ],
  "links": {"up": {"bandwidth": 1e9}, "down": {"bandwidth": 1e9}},
  "routes": [
    {"from": "host", "to": "g0", "links": ["up"]}, {"from": "g0", "to": "host", "links": ["down"]},
    {"from": "host", "to": "g1", "links": ["up"]}, {"from": "g1", "to": "host", "links": ["down"]}
  ],
  "kernels": {"dgemm": {"gpu": {"64": 1e-5, "128": 5e-5}}}
}"""


def test_nothing_is_left_behind(engine):
    class Array(np.ndarray):
        pass

    @quadriga.codelet(access=["update"])
    def unlucky(x):
        raise ValueError

    alive = []
    for _ in range(3):
        for step in range(40):
            array = np.zeros(8).view(Array)
            alive.append(weakref.ref(array))
            data = engine.data(array)
            engine.submit(unlucky if step % 10 == 0 else increment, data.update())
            engine.submit(increment, data.update())
        with pytest.raises(ValueError):
            engine.wait()
    del array, data
    engine.wait()
    gc.collect()
    engine.wait()
    assert not any(each() is not None for each in alive)
    assert not any(isinstance(each, Record) for each in gc.get_objects())


def test_a_body_waits_for_what_it_submitted():
    with quadriga.Engine("cpu:2") as engine:
        x = np.zeros(1)
        data = engine.data(x)

        @quadriga.codelet(access=["update"], submits=True)
        def parent(v):
            for _ in range(3):
                engine.submit(increment, data.update())
            engine.wait()
            return float(v[0])

        assert engine.submit(parent, data.update()).result(timeout=120) == 3
