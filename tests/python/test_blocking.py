# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_blocking.py: calls that block: which threads they take, and when they return.
import os
import threading
import time

import numpy as np
import pytest

import quadriga
from quadriga import linalg


def threads():
    return set(os.listdir("/proc/self/task"))


WAITS = {
    "engine": lambda engine, data, future: engine.wait(),
    "data": lambda engine, data, future: data.wait(),
    "future": lambda engine, data, future: future.result(),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_a_wait_starts_no_thread(engine, wait):
    waiting = threading.Event()
    seen = []

    @quadriga.codelet(access=["update"])
    def slow(x):
        waiting.wait()
        time.sleep(0.12)  # more than a slice
        seen.append(threads())
        x += 1

    array = np.zeros(3)
    data = engine.data(array)
    known = []  # after the first task: an engine starts threads of its own when they have work
    for _ in range(2):
        waiting.clear()
        future = engine.submit(slow, data.update())
        known.append(threads())
        waiting.set()
        wait(engine, data, future)
        engine.wait()  # what the first starts late has started
    assert seen[1] <= known[1]
    assert array.tolist() == [2, 2, 2]


def test_calls_one_after_the_other_share_a_thread(engine):
    matrix = np.eye(5) * 4
    linalg.cholesky(matrix, engine=engine)
    before = threads()
    calls = 20
    for _ in range(calls):
        linalg.cholesky(matrix, engine=engine)
        engine.cancel()
    # A device's streams start threads of their own when they are first used.
    assert len(threads() - before) < calls // 4


def test_calls_at_once_run_at_once(engine):
    """None waits for another's thread: each source waits for all others."""
    count = 4
    meeting = threading.Barrier(count, timeout=120)

    def work(found):
        def stop(done):
            meeting.wait() if not found else None
            found.append(done)

        linalg.matmul(np.eye(600), np.eye(600), tile=100, progress=stop, engine=engine)

    results = [[] for _ in range(count)]
    started = [threading.Thread(target=work, args=(each,)) for each in results]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join(120)
    assert all(results), results


@pytest.mark.parametrize("thread", [False, True], ids=["main", "other"])
def test_a_timeout_longer_than_a_slice(engine, thread):
    go_on = threading.Event()

    @quadriga.codelet(access=["update"])
    def held(x):
        go_on.wait()
        x += 1

    array = np.zeros(2)
    future = engine.submit(held, engine.data(array).update())
    took = []

    def late():
        begin = time.monotonic()
        with pytest.raises(quadriga.Deadline, match="goes on"):
            future.result(timeout=0.17)
        took.append(time.monotonic() - begin)

    if thread:
        other = threading.Thread(target=late)
        other.start()
        other.join(120)
    else:
        late()
    go_on.set()
    assert 0.17 <= took[0] < 110
    future.result(timeout=120)
    engine.wait(timeout=120)
    assert array.tolist() == [1, 1]
