# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_limits.py: limits of the process end in an error that says which.
import os
import subprocess
import sys
import textwrap

import pytest

_HEAD = """
import faulthandler, os, resource, sys, time
import numpy as np, quadriga
from quadriga import linalg
faulthandler.dump_traceback_later(200, exit=True)
a = np.eye(96) * 4
def use(devices):
    with quadriga.Engine(devices) as engine:
        data = engine.data(np.zeros(10))
        add = quadriga.codelet(["update"], host_only=False)(lambda y: y.__iadd__(1))
        for _ in range(20):
            engine.submit(add, data.update())
        engine.wait()
        linalg.cho_factor(a, engine=engine, tile=32).solve(np.ones(96))
def stream(devices):
    stages = quadriga.Pipeline(devices=devices).source(np.ones(100_000) for _ in range(20))
    stages.kernel(lambda array: array * 2, returns="y")
    assert sum(chunk["y"][0] for chunk in stages.results()) == 40
def stream_through_bodies(devices):
    stages = quadriga.Pipeline(devices=devices).source(np.ones(10_000) for _ in range(20))
    stages.map(lambda chunk: {"z": chunk["array"] * 2})
    stages.kernel(lambda z: z * 2, returns="y")
    stages.map(lambda chunk: None, mode="serial")
    stages.run()
def solve(devices):
    size = 700  # what it copies is given back to the system when the call ends
    linalg.cho_factor(4 * np.eye(size), devices=devices, tile=100).solve(np.ones(size))
"""


def run(text, *arguments):
    result = subprocess.run(
        [sys.executable, "-c", _HEAD + textwrap.dedent(text), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"},
    )
    assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)
    return result.stdout.splitlines()


@pytest.mark.parametrize("calls", ["use", "stream", "stream_through_bodies", "solve"])
@pytest.mark.parametrize("devices", ["cpu:3", "emulated:2,memory=32MiB"])
def test_too_few_threads_are_an_error(devices, calls):
    said = run(
        """
        called = globals()[sys.argv[2]]
        called("cpu:1")  # whatever is opened late is open
        if os.getuid() == 0:
            # Root has no limit, and others may run processes as nobody.
            os.setgid(65534), os.setuid(60_000 + os.getpid() % 5_000)
            most = len(os.listdir("/proc/self/task")) + 14
        else:
            most = 0
        threads = lambda: len(os.listdir("/proc/self/task"))
        alone = threads()
        # The last has room for threads that an engine before leaves late, too.
        for limit in [*range(most + 1), most + 60]:
            # An engine that couldn't start may still end; threads for bodies stay.
            for _ in range(30):
                if threads() > alone: time.sleep(0.01)
            hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            resource.setrlimit(resource.RLIMIT_NPROC, (limit, hard))
            try:
                called(sys.argv[1])
                print("ended")
            except quadriga.Unavailable as error:
                print(error)
        """,
        devices,
        calls,
    )
    assert "thread" in said[0]
    assert "ulimit -u" in said[0]
    refused = [each for each in said if each != "ended"]
    assert all("can't start a thread" in each for each in refused), refused
    if os.getuid() == 0:
        assert said[-1] == "ended"


@pytest.mark.skipif(os.getuid() != 0, reason="counts threads of a user without any other")
@pytest.mark.parametrize("calls", ["stream", "stream_through_bodies"])
def test_a_source_without_a_thread_is_an_error(calls):
    said = run(
        """
        faulthandler.dump_traceback_later(20, exit=True)
        os.setgid(65534), os.setuid(60_000 + os.getpid() % 5_000)
        # Two workers and the thread that drives the stream can be started, and no other.
        limit = len(os.listdir("/proc/self/task")) + 3
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, limit))
        try:
            globals()[sys.argv[1]]("cpu:2")
        except quadriga.Unavailable as error:
            print(error)
        """,
        calls,
    )
    assert "can't start a thread" in said[0], said


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=200MiB"])
@pytest.mark.parametrize("spare", [0, 60, 130, 200, 330, 460, 600, 800])
def test_too_little_memory_is_an_error(devices, spare):
    said = run(
        """
        def cholesky():
            with quadriga.Engine(sys.argv[1]) as engine:
                return linalg.cholesky(np.eye(600), engine=engine, tile=200).sum()
        used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        limit = used + (int(sys.argv[2]) << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            print(cholesky())
        except (quadriga.Error, MemoryError) as error:
            print(type(error).__name__, error)
        """,
        devices,
        str(spare),
    )
    assert said == ["600.0"] or "ulimit -v" in said[0] or "MemoryError" in said[0], said
    assert spare > 0 or said != ["600.0"]
    assert spare < 800 or said == ["600.0"]
