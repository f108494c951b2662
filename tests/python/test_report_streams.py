# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_streams.py: reports tell what the stages of pipelines did.
import json

import numpy as np
import pytest

import quadriga
from quadriga import report


@pytest.fixture
def path(tmp_path):
    """The trace of a pipeline that a slow stage limits."""
    machine = quadriga.Machine.parse("emulated:1,memory=1GiB,h2d=1GB/s,d2h=1GB/s;cpu:4")
    with quadriga.Engine(machine, virtual_clock=True, trace=True) as engine:
        pipeline = quadriga.Pipeline(engine=engine).source({"x": np.ones(1000)} for _ in range(50))
        pipeline.kernel(lambda x: None, updates=["x"], cost=quadriga.Cost("seconds", 1, 0.001))
        pipeline.map(lambda chunk: None, mode="serial", name="write <it>")
        pipeline.takes("write <it>", 0.1).run()
        engine.save_trace(tmp_path / "trace.json")
    return tmp_path / "trace.json"


def test_a_stream_has_a_section_and_a_line(path):
    trace = report.load(path)
    (stream,) = report.summary(trace)["pipelines"]
    assert stream["chunks"] == 50
    assert stream["limit"] == "write <it>"
    assert stream["stages"][-1]["occupancy"] > 0.95
    assert stream["stages"][0]["acquire_seconds"] > 0
    text = report.summary_text(trace)
    assert "stream 50 chunks in 5" in text
    assert "write <it> limits" in text
    page = report.to_html(trace)
    begin = page.index("Stages of the pipeline</h2>")
    assert begin < page.index("write &lt;it&gt; (serial)", begin)
    for name in ("source", "copy in", "copy out"):
        assert begin < page.index(f"<td>{name}</td>", begin)


def test_a_run_without_streams_has_no_such_section(tmp_path):
    with quadriga.Engine("cpu:1", trace=True) as engine:
        quadriga.linalg.matmul(np.eye(50), np.eye(50))
        engine.save_trace(tmp_path / "trace.json")
    trace = report.load(tmp_path / "trace.json")
    assert report.summary(trace)["pipelines"] == []
    assert "Stages of the pipeline" not in report.to_html(trace)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [("limit", 3, "text for"), ("seconds", -1, "a number from 0"), ("stages", None, "a list for")],
)
def test_damaged_streams_are_refused(path, key, value, expected):
    document = json.loads(path.read_text())
    document["quadriga"]["sections"][0]["stream"][key] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=expected):
        report.load(path)
