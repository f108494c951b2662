# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_window.py: tasks submit tasks when the window is full, or has room for one.
import subprocess
import sys
import textwrap

import pytest

DEVICES = ["cpu:1", "cpu:2", "emulated:2,memory=1MiB"]

FULL = """
import faulthandler, sys, threading
import numpy as np, quadriga
faulthandler.dump_traceback_later(230, exit=True)
window = int(sys.argv[2])
increment = quadriga.codelet(["update"])(lambda y: y.__iadd__(1))
filled = threading.Event()

@quadriga.codelet(["update"], submits=True)
def parent(y, of):
    filled.wait()
    for _ in range(5):
        engine.submit(increment, of.update())

x, z = np.zeros(4), np.zeros(4)
with quadriga.Engine(sys.argv[1], window=window) as engine:
    data, other = engine.data(x), engine.data(z)
    # The following tasks wait for the parent, until the window is full of them.
    threading.Timer(0.3, filled.set).start()
    engine.submit(parent, data.update(), of=other)
    for _ in range(2 * window):
        engine.submit(increment, data.update())
    engine.wait()
print(x[0], z[0])
"""

DEEP = """
import faulthandler, sys
import numpy as np, quadriga
faulthandler.dump_traceback_later(230, exit=True)

@quadriga.codelet(["update"], submits=True)
def divide(y, of, depth):
    if depth == 0:
        y += 1
        return
    for _ in range(3):
        engine.submit(divide, of.update(), of=of, depth=depth - 1)

x, z = np.zeros(4), np.zeros(4)
with quadriga.Engine(sys.argv[1], window=int(sys.argv[2])) as engine:
    data, other = engine.data(x), engine.data(z)
    engine.submit(divide, data.update(), of=other, depth=4)
    engine.wait()
print(x[0], z[0])
"""


REGISTERS = """
import faulthandler, sys
import numpy as np, quadriga
faulthandler.dump_traceback_later(230, exit=True)
increment = quadriga.codelet(["update"])(lambda y: y.__iadd__(1))

@quadriga.codelet(["update"], submits=True)
def parent(y):
    for _ in range(3):
        child = np.zeros(2)
        engine.submit(increment, engine.data(child).update())
        engine.data(np.zeros(2))
        engine.temporary(2)
        children.append(child)

x, children = np.zeros(4), []
with quadriga.Engine(sys.argv[1], window=int(sys.argv[2])) as engine:
    for _ in range(4):
        engine.submit(parent, engine.data(x).update())
    engine.wait()
print(len(children), sum(child[0] for child in children))
"""


SIGNALS = """
import signal
import sys
import numpy as np
import quadriga

@quadriga.codelet(access=["update"], host_only=False)
def slow(x):
    for _ in range(2000):
        x += 1

@quadriga.codelet(access=["update"], host_only=False)
def count(x):
    x += 1

with quadriga.Engine(sys.argv[1], window=int(sys.argv[2])) as engine:
    a, b, calls = engine.data(np.zeros(3)), engine.data(np.zeros(3)), 0

    def handle(*_):
        global calls
        calls += 1
        engine.submit(count, b.update())

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    while calls < 200:
        engine.submit(slow, a.update())
    signal.setitimer(signal.ITIMER_REAL, 0)
    engine.wait()
    print(calls - int(np.asarray(b)[0]), 0)
"""


def run(program, devices, window):
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), devices, str(window)],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    return [float(number) for number in result.stdout.split()]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("window", [1, 2, 8, 100])
def test_a_body_submits_while_the_window_is_full_of_its_successors(devices, window):
    assert run(FULL, devices, window) == [2 * window, 5]


@pytest.mark.parametrize("devices", [*DEVICES, "emulated:1,memory=64KiB"])
@pytest.mark.parametrize("window", [1, 2, 20])
def test_tasks_divide_in_a_small_window(devices, window):
    assert run(DEEP, devices, window) == [0, 81]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("window", [1, 100])
def test_bodies_register_data_that_nobody_holds_for_long(devices, window):
    assert run(REGISTERS, devices, window) == [12, 12]


@pytest.mark.parametrize("devices", DEVICES)
@pytest.mark.parametrize("window", [1, 2])
def test_a_handler_of_signals_submits(devices, window):
    """It isn't taken for a body which the thread that it interrupts may run meanwhile."""
    assert run(SIGNALS, devices, window) == [0, 0]
