# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_calls.py: reports name calls, late submissions and tasks of the host.
import json
import time

import numpy as np
import pytest
import scipy.sparse

import quadriga
from quadriga import linalg, report, sparse


@pytest.fixture
def recorded(tmp_path):
    """Loads what an engine has recorded."""

    def load(engine):
        path = tmp_path / "trace.json"
        engine.save_trace(path)
        return report.load(path)

    return load


@pytest.mark.parametrize("devices", ["cpu:2", "emulated:2,memory=4MiB"])
def test_calls_stand_above_the_time_line(devices, recorded):
    a = np.eye(200) * 3
    with quadriga.Engine(devices, trace=True) as engine:
        x = linalg.solve(a, np.ones(200), assume_a="pos", tile=64)
        with engine.section("check <it>"):
            assert np.allclose(linalg.matmul(a, x), 1)
        trace = recorded(engine)
    names = [each["name"] for each in trace.sections]
    assert names == ["cho_factor", "cho_solve", "solve", "matmul", "check <it>"]
    whole = {each["name"]: each for each in trace.sections}
    assert whole["cho_factor"]["end"] <= whole["cho_solve"]["start"] <= whole["solve"]["end"]
    assert whole["check <it>"]["start"] <= whole["matmul"]["start"]
    page = report.to_html(trace)
    begin = page.index("Timeline of kernels and copies</h2>")
    for name in ("solve", "cho_factor", "cho_solve", "matmul", "check &lt;it&gt;"):
        assert f">{name}</span>" in page[begin:]
    assert "check <it>" not in page
    part = report.part(trace, start=whole["matmul"]["start"])
    assert [each["name"] for each in part.sections] == ["matmul", "check <it>"]
    assert ">solve</span>" not in report.to_html(part)


def test_calls_of_sparse_solvers_are_named_once(recorded):
    a = scipy.sparse.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(36, 36), format="csr")
    with quadriga.Engine("cpu:2", trace=True) as engine:
        solver = sparse.Solver(a, engine=engine)
        solver.solve(np.ones(36))
        solver @ np.ones(36)
        solver.update(a)
        trace = recorded(engine)
    names = [each["name"] for each in trace.sections]
    assert names == ["sparse setup", "cg", "sparse product", "sparse update"]


def test_without_a_trace_nothing_is_kept():
    with quadriga.Engine("cpu:1") as engine, engine.section("quiet"):
        linalg.matmul(np.eye(8), np.eye(8), engine=engine)
    with quadriga.Engine("cpu:1", trace=True) as engine, pytest.raises(TypeError, match="a str"):
        engine.section(3).__enter__()


def test_a_late_submission_is_the_reason_of_not_started(recorded):
    work = quadriga.codelet(access=["update"])(lambda x: time.sleep(0.002))
    with quadriga.Engine("cpu:1", trace=True) as engine:
        data = engine.data(np.zeros(1))
        engine.submit(work, data.update())
        engine.wait()
        time.sleep(0.05)
        engine.submit(work, data.update())
        engine.wait()
        trace = recorded(engine)
    page = report.to_html(trace)
    assert "the program submitted it" in page
    assert "the program had not submitted the next task" in " ".join(page.split())
    assert all(task["submitted"] < 3600 for task in trace.tasks)


def test_codelets_of_the_host_are_named(recorded):
    kept = quadriga.codelet(access=["update"], name="kept home")(lambda x: None)
    free = quadriga.codelet(access=["update"], name="free", host_only=False)(lambda x: None)
    with quadriga.Engine("emulated:1,memory=1MiB", trace=True) as engine:
        data = engine.data(np.zeros(4))
        for codelet in (kept, free):
            engine.submit(codelet, data.update())
        engine.wait()
        trace = recorded(engine)
    assert trace.host_only == ["kept home"]
    page = " ".join(report.to_html(trace).split())
    assert "no variant for these devices: kept home." in page


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        (3, "an object for 'quadriga.sections"),
        ({"start": 0, "end": 1}, "text for 'quadriga.sections"),
        ({"name": "x", "start": "0", "end": 1}, "a number from 0 for 'quadriga.sections"),
    ],
)
def test_damaged_sections_are_refused(section, expected, tmp_path):
    with quadriga.Engine("cpu:1", trace=True) as engine:
        document = json.loads(engine.trace_json())
    document["quadriga"]["sections"] = [section]
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(document))
    with pytest.raises(report.TraceError, match=expected):
        report.load(path)


def test_links_with_next_to_nothing_are_folded(recorded):
    free = quadriga.codelet(access=["update"], host_only=False)(lambda x: None)
    with quadriga.Engine("emulated:2,memory=8MiB", trace=True) as engine:
        engine.submit(free, engine.data(np.zeros(100_000)).update(), device=0)
        engine.submit(free, engine.data(np.zeros(1)).update(), device=1)
        engine.wait()
        trace = recorded(engine)
    page = report.to_html(trace)
    folded = page[page.index("<details><summary>") :]
    assert "2 more routes with less than 1 % of the bytes" in folded
    assert "emulated1" in folded[: folded.index("</details>")]
    assert "emulated0" not in folded[: folded.index("</details>")]


def test_a_notebook_shows_a_trace_in_one_line(tmp_path):
    with quadriga.Engine("cpu:2", trace=tmp_path / "trace.json") as engine:
        linalg.matmul(np.eye(300), np.eye(300), engine=engine, tile=16)
    shown = repr(report.write_report(tmp_path / "trace.json", tmp_path / "report.html"))
    assert len(shown) < 200
    assert "operations" in shown
