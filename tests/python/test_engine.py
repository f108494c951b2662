# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_engine.py: data, codelets, futures and failures.
import gc
import json
import threading
import time
import traceback
import weakref

import numpy as np
import pytest
from codelets_of_tests import Planned, add, increment, on_devices
from paces_of_tests import at_some_pace, becomes

import quadriga


class TestArrays:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: np.arange(12.0),
            lambda: np.arange(12.0).reshape(3, 4),
            lambda: np.asfortranarray(np.arange(12.0).reshape(3, 4)),
            lambda: np.arange(60.0).reshape(6, 10)[1:4, 2:6],
            lambda: np.asfortranarray(np.arange(60.0).reshape(6, 10))[1:4, 2:6],
            lambda: np.arange(24.0)[::2],
            lambda: np.arange(24.0).reshape(2, 3, 4),
            lambda: np.array(3.0),
            lambda: np.empty((0, 5)),
            lambda: np.ones((1, 7)),
            lambda: np.ones((7, 1))[::2],
            lambda: np.arange(6, dtype=np.int16).reshape(2, 3),
            lambda: np.arange(6, dtype=np.int32)[::3],
            lambda: np.arange(6) > 2,
            lambda: np.ones(4, np.complex64),
            lambda: np.ones(3, [("a", "i4"), ("b", "f8")]),
        ],
    )
    @pytest.mark.parametrize("host_only", [True, False])
    def test_bodies_see_the_array(self, engine, make, host_only):
        array = make()
        before = array.copy()
        seen = []

        def look(x, y):
            assert x.shape == y.shape == array.shape
            assert x.dtype == y.dtype == array.dtype
            assert not x.flags.writeable
            seen.append(x.copy())
            y[...] = x[..., ::-1] if x.ndim else x

        out = np.zeros_like(array)
        kind = quadriga.codelet(access=["read", "write"], host_only=host_only)(look)
        engine.submit(kind, engine.data(array).read(), engine.data(out).write())
        engine.wait()
        np.testing.assert_array_equal(seen[0], before)
        np.testing.assert_array_equal(out, before[..., ::-1] if before.ndim else before)

    def test_no_hidden_copy_on_the_host(self):
        array = np.zeros(5)
        with quadriga.Engine("cpu:1") as engine:
            found = engine.submit(
                quadriga.codelet(access=["update"])(lambda x: x.ctypes.data),
                engine.data(array).update(),
            )
            assert found.result() == array.ctypes.data

    def test_strides_that_no_tile_has_are_refused(self, engine):
        for array in (np.zeros((4, 6))[::2, ::2], np.zeros((4, 6))[::-2, ::2]):
            with pytest.raises(quadriga.InvalidArgument, match="ascontiguousarray"):
                engine.data(array)

    def test_objects_and_lists_are_refused(self, engine):
        with pytest.raises(quadriga.InvalidArgument, match="objects"):
            engine.data(np.array([object()]))
        with pytest.raises(ValueError, match="list"):
            engine.data([1.0, 2.0])

    def test_read_only_arrays_are_only_read(self, engine):
        array = np.ones(3)
        array.flags.writeable = False
        data = engine.data(array)
        out = np.zeros(3)
        engine.submit(add, data.read(), engine.data(out).update())
        engine.wait()
        assert out.tolist() == [1, 1, 1]
        for mode in ("write", "update", "commute", "reduce"):
            with pytest.raises(quadriga.InvalidArgument, match="read-only"):
                getattr(data, mode)()

    def test_arrays_live_as_long_as_their_tasks(self, engine):
        class Array(np.ndarray):
            pass

        array = np.zeros(1000).view(Array)
        alive = weakref.ref(array)
        running, looked = threading.Event(), threading.Event()

        @quadriga.codelet(access=["update"])
        def slow(x):
            running.set()
            looked.wait(120)
            x += 1

        engine.submit(slow, engine.data(array).update())
        running.wait()
        del array
        gc.collect()
        assert alive() is not None
        looked.set()
        engine.wait()
        gc.collect()
        engine.wait()
        assert alive() is None

    def test_temporaries_hold_what_was_written(self, engine):
        tile = engine.temporary((3, 4))
        out = np.zeros((3, 4))
        fill = on_devices(["write"], lambda x: x.__setitem__(..., np.arange(12.0).reshape(3, 4)))
        engine.submit(fill, tile.write())
        engine.submit(increment, tile.update())
        engine.submit(add, tile.read(), engine.data(out).update())
        engine.wait()
        np.testing.assert_array_equal(out, np.arange(12.0).reshape(3, 4) + 1)

    @pytest.mark.parametrize("devices", ["cpu:2", "emulated:1,memory=1MiB"])
    def test_a_temporary_that_nothing_wrote_is_an_error(self, devices):
        with quadriga.Engine(devices) as engine:
            out = engine.data(np.zeros(4))
            engine.submit(
                on_devices(["read", "update"], add.cpu), engine.temporary(4).read(), out.update()
            )
            with pytest.raises(quadriga.Error, match="nothing wrote"):
                engine.wait()
            with pytest.raises(quadriga.Error, match="nothing wrote"):
                np.asarray(engine.temporary((3, 3)))
            engine.wait()


class TestTasks:
    def test_order_of_submission_counts(self, engine):
        x = np.ones(3)
        data = engine.data(x)
        double = quadriga.codelet(access=["update"])(lambda v: v.__imul__(2))
        for step in range(30):
            engine.submit((increment, double)[step % 2], data.update(), priority=step % 5)
        engine.wait()
        expected = 1.0
        for step in range(30):
            expected = (expected + 1, expected * 2)[step % 2]
        assert x.tolist() == [expected] * 3

    def test_parameters_and_results(self, engine):
        @quadriga.codelet(access=["read"])
        def scaled_sum(x, factor, offset=0.0):
            return factor * x.sum() + offset

        x = engine.data(np.arange(4.0))
        future = engine.submit(scaled_sum, x.read(), factor=2.0, offset=1.0)
        assert future.result(timeout=120) == 13.0
        assert future.done()
        assert future.exception() is None
        assert future.id > 0

    def test_what_is_final_goes_home_without_a_wait(self):
        with quadriga.Engine("emulated:1,memory=1MiB") as engine:
            x = np.zeros(3)
            data = engine.data(x)
            future = engine.submit(increment, data.update())
            data.final()
            assert becomes(lambda: future.done() and x.all())
            assert x.tolist() == [1.0] * 3

    def test_commuting_updates_all_happen_and_never_at_once(self, engine):
        total = np.zeros(1)
        inside = []

        @quadriga.codelet(access=["commute"])
        def slow_increment(x):
            inside.append(1)
            assert len(inside) == 1
            time.sleep(0.001)
            x += 1
            inside.pop()

        data = engine.data(total)
        for _ in range(20):
            engine.submit(slow_increment, data.commute())
        engine.wait()
        assert total[0] == 20

    def test_reductions_add_up(self, engine):
        total = np.zeros(3)
        accumulate = quadriga.codelet(access=["read", "reduce"])(add.cpu)
        data = engine.data(total)
        for value in range(10):
            engine.submit(accumulate, engine.data(np.full(3, float(value))).read(), data.reduce())
        engine.submit(increment, data.update())
        engine.wait()
        assert total.tolist() == [46] * 3

    def test_tasks_submit_tasks(self, engine):
        x = np.zeros(4)
        data = engine.data(x)

        @quadriga.codelet(access=["update"], submits=True)
        def parent(v):
            v += 1
            for _ in range(5):
                engine.submit(increment, data.update())

        engine.submit(parent, data.update())
        engine.submit(quadriga.codelet(access=["update"])(lambda v: v.__imul__(10)), data.update())
        engine.wait()
        assert x.tolist() == [60] * 4

    def test_more_tasks_than_the_window(self):
        x = np.zeros(1)
        with quadriga.Engine("emulated:1,memory=1MiB", window=64) as engine:
            data = engine.data(x)
            for _ in range(1000):
                engine.submit(increment, data.update())
            engine.wait()
        assert x[0] == 1000

    def test_several_threads_submit(self, engine):
        arrays = [np.zeros(2) for _ in range(4)]

        def work(array):
            data = engine.data(array)
            for _ in range(50):
                engine.submit(increment, data.update())
            data.wait()
            assert array.tolist() == [50, 50]

        threads = [threading.Thread(target=work, args=(each,)) for each in arrays]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        engine.wait()
        assert all(array.tolist() == [50, 50] for array in arrays)

    def test_a_device_by_name(self):
        with quadriga.Engine("emulated:2,memory=1MiB") as engine:
            x = engine.data(np.zeros(4))
            kind = on_devices(["update"], increment.cpu)
            engine.submit(kind, x.update(), device="emulated1")
            engine.submit(kind, x.update(), device=1)
            engine.wait()
            assert engine.counters().devices[1].tasks == 2
            with pytest.raises(quadriga.InvalidArgument, match="emulated0, emulated1"):
                engine.submit(kind, x.update(), device="gpu7")

    def test_what_does_not_fit_the_signature_is_refused(self, engine):
        x = engine.data(np.zeros(2))
        with pytest.raises(quadriga.InvalidArgument, match="takes 2 operands, got 1"):
            engine.submit(add, x.read())
        with pytest.raises(quadriga.InvalidArgument, match="mode update, got read"):
            engine.submit(add, x.read(), engine.data(np.zeros(2)).read())
        with pytest.raises(quadriga.InvalidArgument, match="same data"):
            engine.submit(add, x.read(), x.update())
        with quadriga.Engine("cpu:1") as other, pytest.raises(ValueError, match="not data of this"):
            other.submit(add, x.read(), x.update())

    def test_wrong_modes_are_refused(self):
        with pytest.raises(quadriga.InvalidArgument, match="read, write, update"):
            quadriga.codelet(access=["rw"])(add.cpu)
        with pytest.raises(quadriga.InvalidArgument, match="list of modes"):
            quadriga.codelet(access="read")(add.cpu)

    def test_what_can_never_fit_a_device_is_refused_with_both_sizes(self):
        with quadriga.Engine("emulated:1,memory=1MiB") as engine:
            big = engine.data(np.zeros(1 << 18))
            with pytest.raises(quadriga.TooLarge, match=r"2 MiB.*1 MiB") as caught:
                engine.submit(on_devices(["update"], increment.cpu), big.update())
            assert isinstance(caught.value, MemoryError)
            engine.wait()


class TestFailures:
    def test_exceptions_keep_their_type_and_traceback(self, engine):
        @quadriga.codelet(access=["update"])
        def unlucky(x):
            raise Planned("as planned", x.shape)

        future = engine.submit(unlucky, engine.data(np.zeros(3)).update())
        with pytest.raises(Planned) as caught:
            engine.wait()
        assert caught.value.args == ("as planned", (3,))
        assert any(
            frame.name == "unlucky" for frame in traceback.extract_tb(caught.value.__traceback__)
        )
        assert "'unlucky'" in caught.value.__notes__[0]
        assert future.exception() is caught.value
        with pytest.raises(Planned):
            future.result()
        engine.wait()  # it was told once

    def test_successors_are_cancelled_and_others_end(self, engine):
        @quadriga.codelet(access=["update"])
        def unlucky(x):
            raise Planned

        x, y = np.zeros(2), np.zeros(2)
        first, second = engine.data(x), engine.data(y)
        engine.submit(unlucky, first.update())
        after = engine.submit(increment, first.update())
        other = engine.submit(increment, second.update())
        with pytest.raises(Planned):
            engine.wait()
        assert isinstance(after.exception(), quadriga.Cancelled)
        other.result()
        assert y.tolist() == [1, 1]
        assert x.tolist() == [0, 0]
        with pytest.raises(quadriga.Error):
            first.wait()

    def test_a_timeout_is_a_deadline_and_the_work_goes_on(self, engine):
        x, late = np.zeros(1), threading.Event()
        future = engine.submit(
            quadriga.codelet(access=["update"])(lambda v: (late.wait(120), v.__iadd__(1))),
            engine.data(x).update(),
        )
        for wait in (engine.wait, future.result):
            with pytest.raises(TimeoutError) as caught:
                wait(timeout=0.05)
            assert isinstance(caught.value, quadriga.Deadline)
        late.set()
        engine.wait(timeout=120)
        assert x[0] == 1
        with pytest.raises(quadriga.InvalidArgument, match="timeout"):
            engine.wait(timeout=-1)

    def test_a_timeout_that_a_body_raises_is_its_failure(self, engine):
        @quadriga.codelet(access=["update"])
        def late(x):
            raise TimeoutError("mine")

        future = engine.submit(late, engine.data(np.zeros(1)).update())
        assert str(future.exception()) == "mine"
        with pytest.raises(TimeoutError, match="mine"):
            engine.wait()

    def test_cancel_leaves_an_engine_that_works(self, engine):
        def cancelled_in_time(pace):
            x, may_end = np.zeros(1), threading.Event()
            data = engine.data(x)
            held = quadriga.codelet(access=["update"])(lambda v: may_end.wait(240) and None)
            futures = [engine.submit(held, data.update())]
            futures += [engine.submit(increment, data.update()) for _ in range(100)]
            threading.Timer(0.05 * pace, may_end.set).start()  # cancel() waits for what runs
            engine.cancel()
            assert x[0] == 0
            assert isinstance(futures[-1].exception(), quadriga.Cancelled)

        at_some_pace(cancelled_in_time)
        y = np.zeros(1)
        engine.submit(increment, engine.data(y).update())
        engine.wait()
        assert y[0] == 1

    def test_views_of_devices_do_not_outlive_a_failed_body(self):
        @quadriga.codelet(access=["update"], host_only=False)
        def unlucky(x):
            kept = x[1:]
            raise Planned(kept.shape)

        with quadriga.Engine("emulated:1,memory=1MiB") as engine:
            engine.submit(unlucky, engine.data(np.zeros(3)).update())
            with pytest.raises(Planned) as caught:
                engine.wait()
            frames = list(traceback.walk_tb(caught.value.__traceback__))
            assert not any("kept" in frame.f_locals for frame, _ in frames)


def test_stated_costs_pass_on_the_virtual_clock():
    machine = json.loads(quadriga.Machine.parse("emulated:1,memory=1MiB").to_json())
    column = machine["devices"][0].get("rates", "gpu")
    machine["kernels"] = {"flops": {column: {"1": 1e-9}}, "bytes": {column: {"1": 1e-12}}}
    described = quadriga.Machine.from_json(json.dumps(machine))
    stated = quadriga.Cost.of_seconds(0.25), quadriga.Cost.of_work(flops=5e8, bytes=1e9)
    with quadriga.Engine(described, virtual_clock=True) as engine:
        data = engine.data(np.zeros(1))
        for cost in stated:
            timed = quadriga.codelet(access=["update"], cost=cost, host_only=False)(lambda x: None)
            engine.submit(timed, data.update())
        engine.wait()
        assert engine.now() == pytest.approx(0.75, abs=1e-3)
