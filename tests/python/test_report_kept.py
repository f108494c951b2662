# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_kept.py: traces that keep their last seconds.
"""Streams by the virtual clock, whose kernels take a stated time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quadriga
from quadriga import report


@pytest.fixture
def two_seconds() -> Iterator[None]:
    quadriga.config["trace_seconds"] = 2
    yield
    quadriga.config["trace_seconds"] = 0


def add(array: Any) -> None:
    array += 1


def traced_run(path: Path, chunks: int) -> quadriga.pipeline.PipelineStats:
    with quadriga.Engine("emulated:2,memory=1MiB", virtual_clock=True, trace=path) as engine:
        pipeline = quadriga.Pipeline(engine=engine)
        pipeline.source(np.zeros(100 + n % 7) for n in range(chunks))
        pipeline.kernel(add, updates=["array"], cost=quadriga.Cost.of_seconds(0.02))
        return pipeline.run()


@pytest.mark.usefixtures("two_seconds")
def test_a_trace_has_the_last_seconds_and_its_report_agrees(tmp_path: Path) -> None:
    stats = traced_run(tmp_path / "trace.json", 600)
    trace = report.load(tmp_path / "trace.json")
    assert stats.seconds > 5.9
    assert trace.seconds == pytest.approx(2, abs=0.05)
    assert report.check(trace) == []
    assert 190 < sum(device["tasks"] for device in trace.counters["devices"]) < 210
    report.write_report(tmp_path / "trace.json", tmp_path / "trace.html")
    assert "2." in report.summary_text(trace)


@pytest.mark.usefixtures("two_seconds")
def test_a_trace_of_a_longer_run_is_no_larger(tmp_path: Path) -> None:
    sizes = []
    for chunks in (600, 2400):
        traced_run(tmp_path / "trace.json", chunks)
        sizes.append((tmp_path / "trace.json").stat().st_size)
    assert sizes[1] < 1.3 * sizes[0]
