# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_page.py: the HTML page stands alone, is sound, safe and small.
import copy
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import report_traces as traces

from quadriga import report

DOCUMENT = traces.run(traces.cholesky_tasks(7), devices=2)
VOID = {"meta", "input", "br", "link", "img", "hr"}


class Reader(HTMLParser):
    """Checks that every element ends where it should and collects what pages load."""

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.text, self.shapes = [], [], [], 0

    def handle_starttag(self, tag, attributes):
        self.shapes += tag in ("rect", "path")
        self.loads += [v for k, v in attributes if k in ("src", "href", "xlink:href", "srcset")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.shapes += tag in ("rect", "path")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader


def page(tmp_path, document):
    return report.to_html(report.load(traces.write(tmp_path / "run.json", document)))


def test_the_page_is_sound_and_needs_nothing_else(tmp_path):
    html = page(tmp_path, DOCUMENT)
    reader = read(html)
    assert reader.loads == []
    assert not re.search(r"url\(|@import|https?://", html)
    assert "default-src 'none'" in html
    text = " ".join(reader.text)
    for words in (
        "Timeline of kernels and copies",
        "Utilization of each device over time",
        "Transfer rates over time",
        "Bytes copied between memories",
        "Counters of each device",
    ):
        assert words in text
    for words in ("dpotrf", "emulated1", "affinity", "virtual clock", "all agree", "run.json"):
        assert words in text


def test_the_same_trace_gives_the_same_page(tmp_path):
    assert page(tmp_path, DOCUMENT) == page(tmp_path, DOCUMENT)


def test_every_event_of_a_small_trace_is_drawn(tmp_path):
    html = page(tmp_path, DOCUMENT)
    for event in DOCUMENT["traceEvents"]:
        if event.get("cat") == "kernel":
            assert f"task {event['args']['task']}</title>" in html
    colours = set(re.findall(r'<rect class="(k\d|c-\w+)"', html))
    assert {"k0", "k1", "k2", "k3", "c-stage", "c-prefetch"} <= colours


def test_names_cannot_break_out_of_the_page(tmp_path):
    nasty = "</title><script>alert(1)</script>&\"'"
    document = copy.deepcopy(DOCUMENT)
    header = document["quadriga"]
    for event in document["traceEvents"]:
        if event["ph"] == "M":
            event["args"]["name"] += nasty
        elif event["ph"] == "X":
            event["name"] += nasty
            for key in ("from", "to", "why"):
                if key in event["args"]:
                    event["args"][key] += nasty
    header["policy"] = header["devices_requested"] = header["clock"] = nasty
    header["bound"]["link"] = nasty
    header["bound"]["link_seconds"] = 1e3
    for device in header["counters"]["devices"]:
        device["name"] += nasty
    html = page(tmp_path, document)
    read(html)
    assert html.count("<script>") == 1 and "alert(1)</script>" not in html


def test_disagreements_are_shown(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    for device in document["quadriga"]["counters"]["devices"]:
        device["hits"] += 1
    html = page(tmp_path, document)
    assert "Counters and trace events disagree" in html and "all agree" not in html


@pytest.mark.parametrize("seconds", [0, 1e-9, 3.5, 1e5])
def test_runs_without_events(tmp_path, seconds):
    devices = [{"name": "cpu"}]
    header = {"version": 1, "seconds": seconds, "counters": {"links": [], "devices": devices}}
    document = {"traceEvents": [], "quadriga": header}
    read(page(tmp_path, document))
    header["counters"]["devices"] = []
    read(page(tmp_path, document))


def test_events_of_no_length_and_many_kernels(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    spans = [event for event in document["traceEvents"] if event["ph"] == "X"]
    for number, event in enumerate(spans):
        event["dur"] = 0
        if event["cat"] == "kernel":
            event["name"] = f"kernel{number % 40}"
    reader = read(page(tmp_path, document))
    assert "34 other kernels" in " ".join(reader.text)


def large(events, devices):
    """Kernels and copies of many kinds on all streams, without gaps to merge."""
    names = [f"gpu{i}" for i in range(devices)]
    made, at = [], 0.0
    for index in range(events // 2):
        device, at = index % devices, index * 7.001
        base = {"ph": "X", "pid": device + 1, "ts": at, "dur": 3.0 + index * 7 % 50}
        kernel = {"cat": "kernel", "name": f"k{index * 31 % 9}", "tid": 4, "args": {"task": index}}
        way = [("host", names[device]), (names[device], "host")][index // devices % 2]
        why = ("stage", "prefetch", "write_back", "evict", "final")[index * 13 % 5]
        args = {"from": way[0], "to": way[1], "bytes": 4096, "why": why}
        copy_in = {"cat": "copy", "name": "copy", "tid": 1 + index // devices % 2, "args": args}
        made += [base | kernel, base | copy_in]
    header = {"version": 1, "seconds": at / 1e6 + 1e-4, "bound": {"work_seconds": at / 2e6}}
    header["counters"] = {"links": [], "devices": [{"name": name} for name in names]}
    return {"traceEvents": made, "quadriga": header}


def test_a_large_trace_makes_a_page_of_the_same_size(tmp_path):
    sizes = []
    for events in (60_000, 240_000):
        html = page(tmp_path, large(events, 8))
        read(html)
        sizes.append(len(html.encode()))
        assert "shows how much of each moment" in html
        assert "Close-up of the middle: " in html  # close-ups
    assert sizes[1] < 1.1 * sizes[0] and max(sizes) < 5e6


def test_the_file_is_there_whole_or_as_before(tmp_path, monkeypatch):
    trace, out = traces.write(tmp_path / "t.json", DOCUMENT), tmp_path / "report.html"
    out.write_text("before")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(report.TraceError):
        report.write_report(tmp_path / "bad.json", out)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(OSError, match="disk full"):
            report.write_report(trace, out)
    assert out.read_text() == "before"
    report.write_report(trace, out)
    assert out.read_text().startswith("<!doctype html>")
    assert out.stat().st_mode & 0o777 == 0o666 & ~current_umask()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "report.html", "t.json"]


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_exports(tmp_path):
    trace = report.load(traces.write(tmp_path / "t.json", DOCUMENT))
    dot = report.to_dot(trace)
    tasks = DOCUMENT["quadriga"]["tasks"]
    assert dot.startswith("digraph") and dot.rstrip().endswith("}")
    assert dot.count(" -> ") == sum(len(task["after"]) for task in tasks)
    assert all(f'label="{task["name"]} {task["id"]}"' in dot for task in tasks)
    perfetto = json.loads(report.to_perfetto(trace))
    events = perfetto["traceEvents"]
    original = json.dumps(DOCUMENT["traceEvents"])
    assert json.dumps(events[-len(DOCUMENT["traceEvents"]) :]) == original
    starts = [event["id"] for event in events if event["ph"] == "s"]
    ends = [event["id"] for event in events if event["ph"] == "f"]
    assert sorted(starts) == sorted(ends) and len(starts) == dot.count(" -> ")
    assert any(event["ph"] == "C" and event["args"]["GB/s"] > 0 for event in events)
    (tmp_path / "p.json").write_text(json.dumps(perfetto))
    assert report.recount(report.load(tmp_path / "p.json")) == report.recount(trace)


def test_a_graph_that_isnt_there(tmp_path):
    document = traces.run(traces.cholesky_tasks(3), graph=False)
    with pytest.raises(report.TraceError, match="no task graph"):
        report.to_dot(report.load(traces.write(tmp_path / "t.json", document)))


def test_dot_quotes_names(tmp_path):
    document = copy.deepcopy(DOCUMENT)
    document["quadriga"]["tasks"][0]["name"] = 'a"b\\c\nd'
    dot = report.to_dot(report.load(traces.write(tmp_path / "t.json", document)))
    assert '[label="a\\"b\\\\c d 0"' in dot


def test_a_trace_tells_of_itself_in_a_line(tmp_path):
    """As a notebook shows what write_report returns."""
    path = traces.write(tmp_path / "run.json", DOCUMENT)
    trace = report.write_report(path, tmp_path / "run.html")
    shown = repr(trace)
    assert len(shown) < 200
    assert "\n" not in shown
    assert f"{len(trace.spans.start)} operations" in shown
    assert len(repr(trace.spans)) < 200
    assert len(repr(trace.instants)) < 200
