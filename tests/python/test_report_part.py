# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_part.py: one run of several, stretches of time, packed files, pictures.
import copy
import gzip
import json
import xml.etree.ElementTree as ElementTree

import pytest
import report_traces as traces

from quadriga import report
from quadriga.cli.main import status_of

DOCUMENT = traces.run(traces.cholesky_tasks(6), devices=2)
PAUSE = 4000.0  # microseconds


def repeated(document, times, pause=PAUSE):
    """The same run several times in one trace, as one engine records calls."""
    header = copy.deepcopy(document["quadriga"])
    events = [event for event in document["traceEvents"] if event["ph"] == "M"]
    timed = [event for event in document["traceEvents"] if event["ph"] != "M"]
    length, count = header["seconds"] * 1e6 + pause, len(header["tasks"])
    for number in range(times):
        for event in copy.deepcopy(timed):
            event["ts"] += number * length
            if "task" in event.get("args", {}):
                event["args"]["task"] += number * count
            events.append(event)
    header["seconds"] += (times - 1) * length / 1e6
    header["tasks"] = [
        task
        | {"id": task["id"] + n * count, "after": [other + n * count for other in task["after"]]}
        for n in range(times)
        for task in header["tasks"]
    ]
    for link in header["counters"]["links"]:
        link.update(bytes=link["bytes"] * times, copies=link["copies"] * times)
    for device in header["counters"]["devices"]:
        for key, value in device.items():
            if isinstance(value, int | float):
                device[key] = value * times
        device["busy_seconds"] = {k: v * times for k, v in device["busy_seconds"].items()}
    return {"traceEvents": events, "quadriga": header}


@pytest.fixture
def trace(tmp_path):
    return report.load(traces.write(tmp_path / "t.json", repeated(DOCUMENT, 3)))


def test_runs_are_found_and_each_is_the_one_that_was_repeated(trace):
    found = report.runs(trace)
    begin = min(e["ts"] for e in DOCUMENT["traceEvents"] if e["ph"] == "X") / 1e6
    length = DOCUMENT["quadriga"]["seconds"] + PAUSE / 1e6
    assert [start for start, _ in found] == pytest.approx([begin + n * length for n in range(3)])
    whole = report.summary(trace)
    assert whole["runs"] == 3 and whole["part"] is None and whole["disagreements"] == []
    for number in (1, 2, "last"):
        facts = report.summary(report.part(trace, run=number))
        assert facts["totals"] == {key: n / 3 for key, n in whole["totals"].items()}
        assert facts["bytes"] == {key: n / 3 for key, n in whole["bytes"].items()}
        assert facts["bound"]["work_seconds"] == pytest.approx(whole["bound"]["work_seconds"])
        assert facts["seconds"] == pytest.approx(DOCUMENT["quadriga"]["seconds"] - begin)
        assert f"run {3 if number == 'last' else number} of 3" in facts["part"]
        assert facts["disagreements"] == []


def test_a_pause_that_a_task_waits_across_parts_nothing(tmp_path):
    document = repeated(DOCUMENT, 2)
    count = len(DOCUMENT["quadriga"]["tasks"])
    document["quadriga"]["tasks"][count]["after"] = [0]
    trace = report.load(traces.write(tmp_path / "t.json", document))
    assert len(report.runs(trace)) == 1
    short = report.load(traces.write(tmp_path / "s.json", repeated(DOCUMENT, 2, pause=20.0)))
    assert len(report.runs(short)) == 1


def test_results_that_go_home_after_a_pause_belong_to_the_run_before(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    late = max((e for e in document["traceEvents"] if e["ph"] == "X"), key=lambda e: e["ts"])
    assert late["args"]["to"] == "host"
    late["ts"] += 300.0
    document["quadriga"]["seconds"] += 300e-6
    trace = report.load(traces.write(tmp_path / "t.json", repeated(document, 2)))
    assert len(report.runs(trace)) == 2


def test_the_bound_of_a_part_is_the_engines_rule(tmp_path):
    """Against the maker's own sums, of all events; the link by what was copied."""
    trace = report.load(traces.write(tmp_path / "t.json", DOCUMENT))
    cut = report.part(trace, run=1)
    given = DOCUMENT["quadriga"]["bound"]
    assert cut.bound["work_seconds"] == pytest.approx(given["work_seconds"])
    assert cut.bound["critical_path_seconds"] == pytest.approx(given["critical_path_seconds"])
    moved = {(link["from"], link["to"]): link["bytes"] for link in trace.counters["links"]}
    host = {way: n for way, n in moved.items() if "host" in way}
    most = max(host, key=lambda way: host[way])
    assert cut.bound["link_seconds"] == pytest.approx(host[most] / 3e9)
    assert cut.bound["link"] == " to ".join(most)


def test_a_stretch_cuts_what_crosses_it(tmp_path):
    """A copy of 40 ms, cut in the middle: half of its time and of its bytes are left."""
    args = {"from": "host", "to": "gpu0", "bytes": 1000, "why": "stage"}
    event = {"ph": "X", "cat": "copy", "name": "c", "pid": 1, "tid": 1, "ts": 0, "dur": 40e3}
    header = {"version": 1, "seconds": 0.1}
    header["counters"] = {"links": [], "devices": [{"name": "gpu0"}]}
    document = {"traceEvents": [event | {"args": args}], "quadriga": header}
    trace = report.load(traces.write(tmp_path / "t.json", document))
    cut = report.part(trace, start=0.02, end=0.06)
    assert cut.seconds == pytest.approx(0.04)
    assert cut.counters["links"][0]["bytes"] == 500
    assert (cut.spans.start[0], cut.spans.duration[0]) == (0, 20_000_000)
    assert cut.part == "20.0 ms to 60.0 ms of 100 ms recorded"
    assert report.part(trace) is trace


def test_parts_that_arent_there(trace):
    for options, words in (
        ({"run": 4}, "no run 4; expected 1 to 3"),
        ({"run": 0}, "no run 0"),
        ({"start": 1e3}, "expected a part of"),
        ({"run": 1, "start": 0.2, "end": 0.1}, "nothing between 0.2 s and 0.1 s"),
    ):
        with pytest.raises(ValueError, match=words):
            report.part(trace, **options)


def test_counters_that_lie_are_told_of_a_part_too(tmp_path):
    document = repeated(DOCUMENT, 2)
    document["quadriga"]["counters"]["devices"][0]["hits"] += 1
    trace = report.load(traces.write(tmp_path / "t.json", document))
    assert report.summary(report.part(trace, run=1))["disagreements"] != []


def test_a_packed_file(tmp_path):
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(DOCUMENT).encode()))
    plain = report.load(traces.write(tmp_path / "t.json", DOCUMENT))
    trace = report.load(packed)
    assert report.recount(trace) == report.recount(plain)
    assert report.to_perfetto(trace) == report.to_perfetto(plain)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(report.TraceError, match="can't be unpacked"):
        report.load(packed)


def test_small_pages_are_small(tmp_path):
    many = repeated(traces.run(traces.cholesky_tasks(16), devices=4), 4)
    trace = report.load(traces.write(tmp_path / "t.json", many))
    small, full = report.to_html(trace, small=True), report.to_html(trace)
    assert len(small.encode()) < 250_000 < len(full.encode()) / 2
    assert small.count("<h2") == full.count("<h2")


def test_the_picture_shows_each_stream_and_colour(trace):
    text = report.to_svg(report.part(trace, run=2))
    picture = ElementTree.fromstring(text)
    words = {node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")}
    for wanted in ("emulated0", "emulated1", "compute", "copy in", "dgemm", "waited for copies"):
        assert wanted in words
    kernels = [node for node in picture.iter() if node.get("class") in {"k0", "k1", "k2", "k3"}]
    assert len(kernels) == 56 + 4  # the tasks of the second run, and the legend
    assert "run 2 of 3" in text and "<script" not in text
    assert len(text.encode()) < 40_000


def test_the_command(tmp_path, capsys):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps(repeated(DOCUMENT, 3)).encode()))
    svg = tmp_path / "t.svg"
    assert status_of(["report", str(path), "--run", "last", "--small", "--svg", str(svg)]) == 0
    assert "This is run 3 of 3" in capsys.readouterr().out
    assert (tmp_path / "t.html").read_text().startswith("<!doctype html>")
    ElementTree.parse(svg)
    assert status_of(["report", str(path)]) == 0
    assert "It holds 3 runs; --run 1 shows the first" in capsys.readouterr().out
    assert status_of(["report", str(path), "--from", "12ms", "--to", "0.05", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["part"].startswith("12.0 ms to 50.0 ms")
    assert status_of(["report", str(path), "--run", "9"]) == 1
    assert "expected 1 to 3" in capsys.readouterr().err
    for wrong in (["--from", "soon"], ["--to", "-1ms"], ["--run", "first"], ["--svg", str(path)]):
        assert status_of(["report", str(path), *wrong]) == 2
