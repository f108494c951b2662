# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_host_device.py: the place for what needs the host is shown where it was used.
import json

import numpy as np
import pytest

import quadriga
from quadriga import linalg, report
from quadriga.report.analysis.analysis import Analysis
from quadriga.report.render import panels

DEVICES = "emulated:2,memory=1MiB"


@quadriga.codelet(access=["read", "update"])
def add(a, b):
    b += a


def traced(path, work):
    with quadriga.Engine(DEVICES, trace=path) as engine:
        work(engine)
        counters = engine.counters()
    return report.load(path), counters


def factorize(engine):
    linalg.cholesky(np.eye(200), tile=50, engine=engine)


def bodies(engine):
    """Python bodies run on the host, unless they say otherwise."""
    data = [engine.data(np.ones((8, 8))) for _ in range(4)]
    for i in range(40):
        engine.submit(add, data[i % 4].read(), data[(i + 1) % 4].update())
    engine.wait()


def test_an_idle_host_is_no_device_of_the_report(tmp_path):
    trace, counters = traced(tmp_path / "t.json", factorize)
    assert list(trace.devices.values()) == ["emulated0", "emulated1"]
    facts = report.summary(trace)
    assert [device["name"] for device in facts["devices"]] == ["emulated0", "emulated1"]
    assert "on 2 devices" in report.summary_text(trace)
    assert report.check(trace) == []
    assert "host cpu" not in str(counters)
    assert "host cpu" not in report.to_html(trace)


def test_bytes_to_the_host_are_counted_once(tmp_path):
    trace, counters = traced(tmp_path / "t.json", factorize)
    moved = panels.matrix(Analysis(trace))
    assert len(set(moved["names"])) == len(moved["names"])
    assert moved["total"] == counters.bytes > 0


def test_a_host_that_worked_has_a_name_of_its_own(tmp_path):
    trace, counters = traced(tmp_path / "t.json", bodies)
    assert list(trace.devices.values()) == ["emulated0", "emulated1", "host cpu"]
    assert report.check(trace) == []
    assert counters.devices[-1].tasks == 40
    assert "host cpu: 40 tasks" in str(counters)
    assert "host cpu" in report.to_html(trace)


def test_what_is_held_and_estimated_names_only_memories():
    with quadriga.Engine(DEVICES) as engine:
        factor = linalg.cho_factor(np.eye(200), engine=engine)
        assert list(factor.held().devices) == ["emulated0", "emulated1"]
        found = linalg.estimate("cholesky", 200, engine=engine)
        assert list(found.device_bytes) == ["emulated0", "emulated1"]


@pytest.mark.parametrize("trace", [False, True])
def test_cores_count_their_work(trace):
    a = np.eye(300)
    with quadriga.Engine("cpu:2", trace=trace) as engine:
        linalg.matmul(a, a, tile=100, engine=engine)
        counters = engine.counters()
    (cpu,) = counters.devices
    assert cpu.computing_seconds == pytest.approx(sum(cpu.busy_seconds.values())) != 0
    assert counters.work_seconds == pytest.approx(cpu.computing_seconds)
    assert str(counters).endswith("overlap -")  # nothing was copied
    assert "computing 0 s" not in str(counters)


def test_links_name_what_they_join():
    """Devices without a memory of their own have no place among memory spaces."""
    a = np.eye(200)
    with quadriga.Engine("cpu:1;emulated:1,memory=1MiB", trace=True) as engine:
        linalg.matmul(a, a, tile=50, engine=engine)
        link, *_ = engine.counters().links
    assert {link.source_name, link.target_name} == {"host", "emulated0"}


def test_perfetto_files_hold_events(tmp_path):
    trace, _ = traced(tmp_path / "t.json", bodies)
    events = json.loads(report.to_perfetto(trace))["traceEvents"]
    named = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {"host", "host cpu", "emulated0"} <= named
