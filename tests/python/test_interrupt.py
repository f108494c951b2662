# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_interrupt.py: Ctrl-C ends a wait at once and leaves an engine that works.
"""Each program is a process of its own, which gets a SIGINT while it waits.

What it waits for doesn't end within PATIENCE: whoever is back sooner hasn't waited for it.
"""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from paces_of_tests import at_some_pace

PRELUDE = """
import sys, threading, time
import numpy as np
import quadriga
from quadriga import linalg

released = threading.Event()  # bodies wait for it

def ready():
    print("ready", flush=True)

def interrupted(work):
    try:
        work()
    except KeyboardInterrupt:
        print("interrupted", time.time(), flush=True)
        threading.Timer({pause}, released.set).start()  # once the others are cancelled
    else:
        sys.exit("the work ended without an interrupt")
"""

SLEEPING_TASKS = """
submitted = threading.Event()

@quadriga.codelet(access=["update"])
def slow(x):
    submitted.wait()
    ready() if x[0] == 0 else None
    released.wait({patience})
    x += 1

x = np.zeros(4)
with quadriga.Engine({devices!r}) as engine:
    data = engine.data(x)
    def work():
        for _ in range(50):
            engine.submit(slow, data.update())
        submitted.set()
        engine.wait()
    interrupted(work)
    fresh = np.zeros(3)
    @quadriga.codelet(access=["update"])
    def increment(x):
        x += 1
    engine.submit(increment, engine.data(fresh).update())
    engine.wait()
    assert fresh.tolist() == [1, 1, 1]
    assert x.max() <= 2, x
print("works", flush=True)
"""

UNROLLING = """
@quadriga.codelet(access=["update"])
def slow(x):
    ready() if x[0] == 0 else None
    released.wait({patience})
    x += 1

x = np.zeros(4)
with quadriga.Engine({devices!r}, window=4) as engine:
    data = engine.data(x)
    graph = quadriga.TaskGraph(1000)
    graph.add(slow, lambda k: [data.update()])
    interrupted(lambda: graph.submit(engine))
    engine.wait()
    assert x.min() == x.max() and x[0] <= 5, x
    fresh = np.zeros(3)
    again = quadriga.TaskGraph(5)
    other = engine.data(fresh)
    again.add(slow, lambda k: [other.update()])
    assert again.submit(engine) == 5
    engine.wait()
    assert fresh.tolist() == [5, 5, 5]
print("works", flush=True)
"""

SUBMITTING = """
import os, signal

@quadriga.codelet(access=["update"])
def raising(x, at):
    os.kill(os.getpid(), signal.SIGINT) if x[0] == at else None
    x += 1

@quadriga.codelet(access=["update"])
def increment(x):
    x += 1

with quadriga.Engine({devices!r}) as engine:
    for at in range(0, 100, 4):
        x, fresh = np.zeros(4), np.zeros(3)
        data, futures = engine.data(x), []
        try:
            while True:
                futures.append(engine.submit(raising, data.update(), at=at))
                time.sleep(0.001 if len(futures) > 1000 else 0)  # a full window would wait
        except KeyboardInterrupt:
            pass
        engine.submit(increment, engine.data(fresh).update())
        engine.wait()
        assert fresh.tolist() == [1, 1, 1]
        assert x.min() == x.max()
        assert x[0] - len(futures) in (0, 1), (x, len(futures))
print("works", flush=True)
"""

LEAVING = """
@quadriga.codelet(access=["update"])
def slow(x):
    ready()
    released.wait({patience})
    x += 1

def work():
    with quadriga.Engine({devices!r}) as engine:
        data = engine.data(np.zeros(4))
        engine.submit(slow, data.update())
        engine.submit(slow, data.update())

interrupted(work)
with quadriga.Engine({devices!r}) as engine:
    assert engine.counters().ended == 0
print("works", flush=True)
"""

LONG_SOLVE = """
a = linalg.from_function(60000, lambda i, j: 1.0 / (1 + abs(i - j)), hermitian=True)
# The factor, of which little is computed, may be larger than what is free now.
with quadriga.Engine({devices!r}, host_memory="20GiB") as engine:
    def work():
        threading.Timer(0.3, ready).start()
        linalg.cho_factor(a, tile=1000)
    interrupted(work)
    small = np.eye(50) * 4
    assert np.allclose(linalg.cholesky(small), np.eye(50) * 2)
print("works", flush=True)
"""

PRODUCT = """
a = np.random.default_rng(0).random((4000, 4000))
with quadriga.Engine({devices!r}) as engine:
    begin = time.time()
    linalg.matmul(a, a, tile=500)
    print("product", time.time() - begin)
    def work():
        threading.Timer(0.2, ready).start()
        while True:
            linalg.matmul(a, a, tile=500)
    interrupted(work)
    assert np.allclose(linalg.matmul(np.eye(3), np.ones((3, 2))), 1)
print("works", flush=True)
"""

PROGRESS = """
a = np.random.default_rng(0).random((3000, 3000))
def stop(done):
    if done > 0:
        raise RuntimeError("enough")
try:
    for _ in range(100):
        linalg.matmul(a, a, progress=stop, devices={devices!r})
except RuntimeError as error:
    assert str(error) == "enough"
assert np.allclose(linalg.matmul(np.eye(3), np.ones((3, 2))), 1)
print("works", flush=True)
"""

MACHINE = Path(__file__).resolve().parents[2] / "machines" / "idgraf.json"
DEVICES = ["cpu:2", "emulated:2,memory=64MiB"]


PATIENCE = 200  # seconds; bodies that were never released would take twice as long


def run(program, interrupt=True, pause=0.2):
    """Seconds from the signal to when the program noticed it, and what a product took, if any."""
    program = (PRELUDE + program).replace("{patience}", str(2 * PATIENCE))
    process = subprocess.Popen(
        [sys.executable, "-c", program.replace("{pause}", str(pause))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(3 * PATIENCE, process.kill)
    watchdog.start()
    sent = noticed = product = 0.0
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if line.startswith("ready") and interrupt and not sent:
            sent = time.time()
            process.send_signal(signal.SIGINT)
        if line.startswith("interrupted"):
            noticed = float(line.split()[1])
        if line.startswith("product"):
            product = float(line.split()[1])
    watchdog.cancel()
    stderr = process.stderr.read()
    assert process.wait(timeout=PATIENCE) == 0, stderr
    assert lines[-1] == "works", (lines, stderr)
    return noticed - sent, product


def waits_for_no_body(program):
    def noticed(pace):
        soonest = PATIENCE
        for _ in range(5):  # others may keep the machine busy during one
            seconds, _ = run(program, pause=0.2 * pace)
            assert 0 < seconds < PATIENCE
            soonest = min(soonest, seconds)
            if soonest < 1:  # as promised; up to five are the machine's
                return
        assert soonest < 5

    at_some_pace(noticed)


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize(
    "program",
    [SLEEPING_TASKS, UNROLLING, LEAVING, LONG_SOLVE],
    ids=["tasks", "unrolling", "leaving", "solve"],
)
def test_an_interrupt_waits_for_no_body(program, devices):
    waits_for_no_body(program.replace("{devices!r}", repr(devices)))


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("wait", ["future.result()", "data.wait()"])
def test_interrupt_ends_other_waits(wait, devices):
    program = SLEEPING_TASKS.replace("engine.submit(slow", "future = engine.submit(slow")
    program = program.replace(
        "submitted.set()\n        engine.wait()", f"submitted.set()\n        {wait}"
    )
    assert wait in program
    waits_for_no_body(program.replace("{devices!r}", repr(devices)))


def interrupted_within_a_product(program):
    """One in a few, since others may keep the machine busy during one."""
    for _ in range(5):
        seconds, product = run(program)
        assert seconds > 0
        if seconds < max(1, product / 2):
            return True
    return False


@pytest.mark.parametrize("devices", DEVICES)
def test_an_interrupt_waits_for_no_product(devices):
    assert interrupted_within_a_product(PRODUCT.replace("{devices!r}", repr(devices)))


@pytest.mark.parametrize("devices", DEVICES)
def test_interrupted_submission_leaves_whole_tasks(devices):
    run(SUBMITTING.replace("{devices!r}", repr(devices)), interrupt=False)


def test_interrupt_on_the_virtual_clock():
    program = PRODUCT.replace(
        "quadriga.Engine({devices!r})", "quadriga.Engine({devices!r}, virtual_clock=True)"
    )
    devices = f"machine={MACHINE}:2,memory=64MiB"
    assert interrupted_within_a_product(program.replace("{devices!r}", repr(devices)))


@pytest.mark.parametrize("devices", DEVICES)
def test_a_progress_callback_that_raises_ends_the_call(devices):
    run(PROGRESS.replace("{devices!r}", repr(devices)), interrupt=False)
