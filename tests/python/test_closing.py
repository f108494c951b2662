# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_closing.py: engines that end while other threads use them, and at Python's end.
import contextlib
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scripts import run_script

import quadriga

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

_HEAD = """
import faulthandler, sys, threading, time
import numpy as np, quadriga
from quadriga import linalg
faulthandler.enable()
faulthandler.dump_traceback_later(500, exit=True)
nap = quadriga.codelet(["update"])(lambda y: time.sleep(0.001))
tick = quadriga.codelet(["update"], host_only=False)(lambda y: None)
def start(work, daemon=False):
    thread = threading.Thread(target=work, daemon=daemon)
    thread.start()
    return thread
"""


def run(text, *arguments):
    """What a program printed that ended well."""
    result = subprocess.run(
        [sys.executable, "-c", _HEAD + textwrap.dedent(text), *arguments],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)
    return result.stdout


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
@pytest.mark.parametrize("codelet", ["nap", "tick"])
class TestBesideClose:
    def test_submissions_are_refused(self, devices, codelet):
        said = run(
            """
            for _ in range(20):
                engine = quadriga.Engine(sys.argv[1], window=64)
                data = engine.data(np.zeros(10))
                said = []
                def submit():
                    try:
                        while True:
                            engine.submit(globals()[sys.argv[2]], data.update())
                    except quadriga.InvalidArgument as error:
                        said.append(str(error))
                threads = [start(submit) for _ in range(3)]
                time.sleep(0.02)
                engine.close()
                for thread in threads:
                    thread.join()
                assert all("closed" in each for each in said), said
                print(len(said))
            """,
            devices,
            codelet,
        )
        assert said.split() == ["3"] * 20

    def test_waits_end(self, devices, codelet):
        said = run(
            """
            for _ in range(20):
                engine = quadriga.Engine(sys.argv[1])
                data = engine.data(np.zeros(10))
                futures = [engine.submit(globals()[sys.argv[2]], data.update()) for _ in range(99)]
                def wait():
                    try:
                        engine.wait()
                    except quadriga.Error:
                        pass
                def ask():
                    for future in futures:
                        future.exception()
                threads = [start(wait), start(ask)]
                time.sleep(0.01)
                engine.close()
                for thread in threads:
                    thread.join()
                print("ended")
            """,
            devices,
            codelet,
        )
        assert said.split() == ["ended"] * 20


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
def test_linalg_beside_close_says_that_it_is_closed(devices):
    said = run(
        """
        a = np.eye(300)
        for _ in range(10):
            engine = quadriga.Engine(sys.argv[1])
            ends = []
            def multiply():
                try:
                    while True:
                        linalg.matmul(a, a, engine=engine, tile=50)
                except (quadriga.InvalidArgument, quadriga.Cancelled) as error:
                    ends.append(str(error))
            thread = start(multiply)
            time.sleep(0.03)
            engine.close()
            thread.join()
            print(*ends)
        """,
        devices,
    )
    assert len(said.splitlines()) == 10


_AT_THE_END = {
    "submits": "engine.submit(nap, data.update())",
    "waits": "engine.submit(nap, data.update()); engine.wait()",
    "asks": "engine.submit(nap, data.update()).result()",
    "computes": "linalg.matmul(a, a, engine=engine, tile=50)",
    "counts": "engine.counters(); engine.status()",
    "holds": "exec('with data.on_host(\"rw\"): pass')",
    "registers": "engine.data(np.zeros(3))",
    "opens": "quadriga.Engine(sys.argv[1]).close()",
    "computes_by_default": "linalg.cho_factor(a, devices=sys.argv[1], tile=50)",
}


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=1MiB"])
@pytest.mark.parametrize("what", _AT_THE_END)
def test_a_daemon_thread_at_the_end_of_python(devices, what):
    for pause in ("0.05", "0.2", "0.21", "0.3"):
        run(
            f"""
            engine = quadriga.Engine(sys.argv[1])
            data = engine.data(np.zeros(10))
            a = np.eye(300)
            def work():
                try:
                    while True:
                        {_AT_THE_END[what]}
                except quadriga.Error:
                    pass
            for _ in range(3):
                start(work, daemon=True)
            time.sleep(float(sys.argv[2]))
            """,
            devices,
            pause,
        )


def test_python_ends_while_a_thread_of_ours_drops_chunks(tmp_path):
    """It holds Python's lock, and what it drops releases that for a while."""
    for _ in range(8):
        run_script(EXAMPLES / "stream.py", tmp_path)


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2", "emulated:2,memory=1MiB"])
def test_a_body_closes_its_engine_while_others_wait_for_it(devices):
    for _ in range(5):
        done = []
        x = np.zeros(3)
        engine = quadriga.Engine(devices)

        def body(view, engine=engine, done=done):
            engine.close()
            view += 1  # its operand is still there
            done.append(float(view.sum()))

        engine.submit(quadriga.codelet(access=["update"])(body), engine.data(x).update())
        with contextlib.suppress(quadriga.Error):  # closed, before the wait or within it
            engine.wait()
        del engine
        for _ in range(240_000):
            if done:
                break
            time.sleep(1e-3)
        assert done == [3]


def test_a_body_closes_another_engine_as_anybody_does():
    y = np.zeros(3)
    begun = threading.Event()
    seen = {}

    def slow(x):
        begun.set()
        time.sleep(0.3)
        x += 1
        return 42

    def body(x):
        other = quadriga.Engine("cpu:1")
        future = other.submit(quadriga.codelet(access=["update"])(slow), other.data(y).update())
        begun.wait(120)
        other.close()
        seen["result"], seen["y"] = future.result(), y.copy()

    with quadriga.Engine("cpu:1") as engine:
        codelet = quadriga.codelet(access=["update"])(body)
        engine.submit(codelet, engine.data(np.zeros(3)).update()).result()
    assert seen["result"] == 42
    assert list(seen["y"]) == [1, 1, 1]
