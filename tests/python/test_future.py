# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_future.py: futures as people know them: callbacks, cancelling, await, repr.
import asyncio
import concurrent.futures
import logging
import threading
from pathlib import Path

import numpy as np
import pytest
from codelets_of_tests import increment
from paces_of_tests import at_some_pace

import quadriga

MACHINE = Path(__file__).resolve().parents[2] / "machines" / "idgraf.json"


class Gate:
    """A codelet whose body waits until it is opened."""

    def __init__(self, **options):
        self.opened, self.entered = threading.Event(), threading.Event()
        self.codelet = quadriga.codelet(access=["update"], name="gated", **options)(self._body)

    def _body(self, x, error=None):
        self.entered.set()
        assert self.opened.wait(120)
        if error is not None:
            raise error
        x += 1
        return float(x[0])


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.opened.set()


class TestCallbacks:
    def test_called_with_the_future_once_it_has_ended(self, engine, gate):
        future = engine.submit(gate.codelet, engine.data(np.zeros(1)).update())
        called = threading.Event()
        seen = []

        def callback(ended):
            seen.append((ended, ended.done(), ended.result()))
            called.set()

        future.add_done_callback(callback)
        assert not called.wait(0.05)
        gate.opened.set()
        assert called.wait(120)
        assert seen == [(future, True, 1.0)]

    def test_called_at_once_if_it_has_ended(self, engine):
        future = engine.submit(increment, engine.data(np.zeros(1)).update())
        engine.wait()
        seen = []
        future.add_done_callback(lambda each: seen.append(threading.current_thread()))
        assert seen == [threading.current_thread()]

    def test_in_the_order_in_which_tasks_end(self, gate):
        first, second = threading.Event(), threading.Event()
        with quadriga.Engine("cpu:2") as engine:
            slow = engine.submit(gate.codelet, engine.data(np.zeros(1)).update())
            slow.add_done_callback(lambda _: second.set())
            quick = engine.submit(increment, engine.data(np.zeros(1)).update())
            quick.add_done_callback(lambda _: first.set())
            assert first.wait(120)
            assert not second.is_set()
            gate.opened.set()
            assert second.wait(120)

    def test_a_callback_may_submit(self, engine):
        x = np.zeros(1)
        data = engine.data(x)
        ended = threading.Event()

        def again(future):
            engine.submit(increment, data.update()).add_done_callback(lambda _: ended.set())

        engine.submit(increment, data.update()).add_done_callback(again)
        assert ended.wait(120)
        engine.wait()
        assert x[0] == 2

    def test_one_that_raises_is_logged_and_others_are_called(self, engine, gate, caplog):
        future = engine.submit(gate.codelet, engine.data(np.zeros(1)).update())
        called = threading.Event()
        future.add_done_callback(lambda _: 1 / 0)
        future.add_done_callback(lambda _: called.set())
        with caplog.at_level(logging.ERROR, "quadriga"):
            gate.opened.set()
            assert called.wait(120)
        assert "ZeroDivisionError" in caplog.text
        assert "gated" in caplog.text


class TestRunning:
    def test_while_the_body_runs(self, engine, gate):
        data = engine.data(np.zeros(1))
        future = engine.submit(gate.codelet, data.update())
        after = engine.submit(increment, data.update())
        assert gate.entered.wait(120)
        assert future.running()
        assert "running" in repr(future)
        assert not after.running()
        gate.opened.set()
        assert future.result(timeout=120) == 1
        assert not future.running()
        engine.wait()
        assert not after.running()

    def test_not_once_it_failed_or_was_cancelled(self, engine, gate):
        data = engine.data(np.zeros(1))
        future = engine.submit(gate.codelet, data.update(), error=ValueError("no"))
        after = engine.submit(increment, data.update())
        assert after.cancel()
        assert not after.running()
        gate.opened.set()
        with pytest.raises(ValueError, match="no"):
            future.result(timeout=120)
        assert not future.running()
        with pytest.raises(ValueError, match="no"):
            engine.wait()


class TestCancel:
    def test_a_task_that_has_not_started(self, engine, gate):
        x, y = np.zeros(1), np.zeros(1)
        data = engine.data(x)
        first = engine.submit(gate.codelet, data.update())
        second = engine.submit(increment, data.update())
        other = engine.submit(increment, engine.data(y).update())
        assert not second.cancelled()
        assert second.cancel()
        assert second.cancel()
        assert second.cancelled()
        assert second.done()
        assert "cancelled" in repr(second)
        with pytest.raises(quadriga.Cancelled, match="task 2 'increment' was cancelled"):
            second.result()
        with pytest.raises(concurrent.futures.CancelledError):
            second.result()
        gate.opened.set()
        engine.wait()  # nobody else's failure
        assert first.result() == 1
        assert other.exception() is None
        assert y[0] == 1

    def test_what_follows_is_cancelled(self, engine, gate):
        data = engine.data(np.zeros(1))
        engine.submit(gate.codelet, data.update())
        second = engine.submit(increment, data.update())
        third = engine.submit(increment, data.update())
        assert second.cancel()
        gate.opened.set()
        with pytest.raises(quadriga.Cancelled, match="did not run: task 2 'increment' on"):
            third.result(timeout=120)
        engine.wait()

    def test_a_task_that_runs_or_has_ended_goes_on(self, engine, gate):
        x = np.zeros(1)
        future = engine.submit(gate.codelet, engine.data(x).update())
        assert gate.entered.wait(120)
        assert not future.cancel()
        gate.opened.set()
        assert future.result(timeout=120) == 1
        assert not future.cancel()
        assert not future.cancelled()

    def test_failures_of_others_are_raised_all_the_same(self, engine, gate):
        data = engine.data(np.zeros(1))
        engine.submit(gate.codelet, data.update())
        second = engine.submit(increment, data.update())
        fail = quadriga.codelet(access=["read"])(lambda x: 1 / 0)
        assert second.cancel()
        gate.opened.set()
        with pytest.raises(quadriga.Cancelled):
            engine.submit(increment, data.update()).result(timeout=120)  # its end is known now
        engine.submit(fail, engine.data(np.zeros(1)).read())
        with pytest.raises(ZeroDivisionError):
            engine.wait()


class TestAwait:
    def test_results(self, engine, gate):
        async def main():
            futures = [
                engine.submit(gate.codelet, engine.data(np.full(1, k)).update()) for k in range(4)
            ]
            waiting = asyncio.gather(*futures)
            await asyncio.sleep(0.01)  # the loop goes on meanwhile
            assert not waiting.done()
            gate.opened.set()
            return await waiting

        assert asyncio.run(main()) == [1, 2, 3, 4]

    def test_failures(self, engine, gate):
        async def main():
            gate.opened.set()
            await engine.submit(gate.codelet, engine.data(np.zeros(1)).update(), error=KeyError(7))

        with pytest.raises(KeyError, match="7"):
            asyncio.run(main())
        with pytest.raises(KeyError):
            engine.wait()

    def test_a_timeout_cancels(self, engine, gate):
        data = engine.data(np.zeros(1))
        engine.submit(gate.codelet, data.update())
        second = engine.submit(increment, data.update())

        async def main():
            await asyncio.wait_for(second, 0.05)

        with pytest.raises(TimeoutError):
            asyncio.run(main())
        assert second.cancelled()

    def test_on_the_virtual_clock(self):
        cost = quadriga.Cost("dgemm", 64, 64**3)
        timed = quadriga.codelet(access=["update"], cost=cost, host_only=False)(np.sum)

        async def main(engine):
            return await engine.submit(timed, engine.data(np.ones(3)).update())

        with quadriga.Engine(f"machine={MACHINE}:1,memory=1MiB", virtual_clock=True) as engine:
            assert asyncio.run(main(engine)) == 3


class TestAfterTheEngine:
    def test_results_and_failures_stay(self, gate):
        gate.opened.set()
        with quadriga.Engine("emulated:1,memory=1MiB") as engine:
            good = engine.submit(gate.codelet, engine.data(np.zeros(1)).update())
            data = engine.data(np.zeros(1))
            bad = engine.submit(gate.codelet, data.update(), error=KeyError(7))
            follower = engine.submit(increment, data.update())
            with pytest.raises(KeyError):
                engine.wait()
        assert good.done()
        assert good.result() == 1
        assert isinstance(bad.exception(), KeyError)
        assert isinstance(follower.exception(), quadriga.Cancelled)
        assert "ended" in repr(good)

    def test_what_had_not_started_is_cancelled(self, gate):
        def closed_in_time(pace):
            gate.opened.clear()
            engine = quadriga.Engine("cpu:1")
            data = engine.data(np.zeros(1))
            engine.submit(gate.codelet, data.update())
            late = engine.submit(increment, data.update())
            threading.Timer(0.1 * pace, gate.opened.set).start()  # close() waits for what runs
            engine.close()
            assert late.done()
            assert isinstance(late.exception(), quadriga.Cancelled)
            with pytest.raises(quadriga.Cancelled):
                late.result()
            seen = []
            late.add_done_callback(seen.append)
            assert seen == [late]

        at_some_pace(closed_in_time)

    def test_on_the_virtual_clock(self):
        timed = quadriga.codelet(
            access=["update"], cost=quadriga.Cost("dgemm", 64, 64**3), host_only=False
        )(lambda x, fail=False: 1 / 0 if fail else float(x.sum()))
        with quadriga.Engine(f"machine={MACHINE}:1,memory=1MiB", virtual_clock=True) as engine:
            data = engine.data(np.ones(3))
            futures = [engine.submit(timed, data.update()) for _ in range(1500)]
            del futures[5:]
            futures.append(engine.submit(timed, data.update(), fail=True))
            futures.append(engine.submit(timed, data.update()))
            with pytest.raises(ZeroDivisionError):
                engine.wait()
        assert [each.result() for each in futures[:5]] == [3] * 5
        assert isinstance(futures[5].exception(), ZeroDivisionError)
        assert isinstance(futures[6].exception(), quadriga.Cancelled)


class TestConcurrentFutures:
    """The module's functions take futures of engines."""

    def test_wait(self, engine, gate):
        data = engine.data(np.zeros(1))
        first = engine.submit(increment, engine.data(np.zeros(1)).update())
        second = engine.submit(gate.codelet, data.update())
        done, pending = concurrent.futures.wait(
            [first, second], 240, return_when=concurrent.futures.FIRST_COMPLETED
        )
        assert (done, pending) == ({first}, {second})
        assert concurrent.futures.wait([second], 0.01) == (set(), {second})
        gate.opened.set()
        assert concurrent.futures.wait([first, second], 240) == ({first, second}, set())
        assert concurrent.futures.wait([first, second], 0) == ({first, second}, set())

    def test_as_completed(self, engine, gate):
        data = engine.data(np.zeros(1))
        others = [engine.submit(increment, engine.data(np.zeros(1)).update()) for _ in range(3)]
        last = engine.submit(gate.codelet, data.update())
        seen = []
        for future in concurrent.futures.as_completed([last, *others], timeout=120):
            seen.append(future)
            if len(seen) == 3:
                gate.opened.set()
        assert seen[3] is last and set(seen[:3]) == set(others)

    def test_what_failed_has_ended(self, engine, gate):
        gate.opened.set()
        future = engine.submit(gate.codelet, engine.data(np.zeros(1)).update(), error=OSError("no"))
        done, _ = concurrent.futures.wait([future], 240)
        with pytest.raises(OSError, match="no"):
            done.pop().result()
        with pytest.raises(OSError, match="no"):
            engine.wait()

    def test_until_the_first_exception(self, engine, gate):
        def fail(x):
            raise OSError("no")

        failing = quadriga.codelet(access=["update"])(fail)
        first = engine.submit(failing, engine.data(np.zeros(1)).update())
        last = engine.submit(gate.codelet, engine.data(np.zeros(1)).update())
        seen = []

        def wait():
            seen.append(concurrent.futures.wait([first, last], return_when="FIRST_EXCEPTION"))

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(120)
        assert seen == [({first}, {last})]
        gate.opened.set()
        with pytest.raises(OSError, match="no"):
            engine.wait()

    def test_one_that_was_cancelled(self, engine, gate):
        data = engine.data(np.zeros(1))
        engine.submit(gate.codelet, data.update())
        later = engine.submit(increment, data.update())
        waiting = threading.Timer(0.05, later.cancel)
        waiting.start()
        assert concurrent.futures.wait([later], 240).done == {later}
        waiting.join()
        assert later.cancelled()
        gate.opened.set()
        engine.wait()

    def test_beside_futures_of_a_pool(self, engine):
        mine = engine.submit(increment, engine.data(np.zeros(1)).update())
        with concurrent.futures.ThreadPoolExecutor() as pool:
            others = [pool.submit(sum, [1, 2]), mine]
            assert set(concurrent.futures.as_completed(others, timeout=120)) == set(others)

    def test_under_the_virtual_clock(self):
        cost = quadriga.Cost("dgemm", 64, 64**3)
        timed = quadriga.codelet(access=["update"], cost=cost, host_only=False)(np.sum)
        with quadriga.Engine(f"machine={MACHINE}:1,memory=1MiB", virtual_clock=True) as engine:
            futures = [engine.submit(timed, engine.data(np.zeros(3)).update()) for _ in "ab"]
            assert len(concurrent.futures.wait(futures, 20).done) == 2


def test_a_callback_that_exits_keeps_no_other_from_being_called(caplog):
    go, called = threading.Event(), threading.Event()
    waits = quadriga.codelet(access=["update"])(lambda x: go.wait(60))

    def leave(future):
        raise SystemExit(1)

    with quadriga.Engine("cpu:1") as engine:
        first = engine.submit(waits, engine.data(np.zeros(1)).update())
        first.add_done_callback(leave)
        first.add_done_callback(lambda future: called.set())
        go.set()
        assert called.wait(60)
        go.clear()
        called.clear()
        second = engine.submit(waits, engine.data(np.zeros(1)).update())
        second.add_done_callback(lambda future: called.set())
        go.set()
        assert called.wait(60)
    assert "a callback of" in caplog.text
