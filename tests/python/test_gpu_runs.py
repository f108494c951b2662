# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_gpu_runs.py: docs/gpu-runs.md says what its traces say, and its pages are small.
import subprocess
import sys
from pathlib import Path

import pytest

from quadriga import report

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/gpu-runs.md"
TRACES = sorted((ROOT / "bench/results").glob("*-h200/*.json.gz"))


def names():
    return [path.name.removesuffix(".json.gz") for path in TRACES]


def test_the_table_is_what_the_tool_prints():
    command = [sys.executable, ROOT / "tools/gpu_runs", *TRACES]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(TRACES) + 2
    table = [line for line in PAGE.read_text().splitlines() if line in lines]
    assert table == lines


@pytest.mark.parametrize("name", names())
def test_pages_and_pictures_are_there_and_small(name):
    page, picture = (PAGE.parent / f"gpu-runs/{name}{end}" for end in (".html", ".svg"))
    assert page.stat().st_size < 170_000 and picture.stat().st_size < 60_000
    assert f"gpu-runs/{name}.svg" in PAGE.read_text()


@pytest.mark.parametrize("path", TRACES, ids=names())
def test_a_bound_from_events_is_the_engines(path):
    """The engine wrote the bound of all repetitions; the report computes it from their events."""
    trace = report.load(path)
    again = report.part(trace, start=0)
    for key, value in trace.bound.items():
        expected = value if key == "link" else pytest.approx(value, rel=1e-9)
        assert again.bound[key] == expected, key
    assert report.check(trace) == []
