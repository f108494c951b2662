# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_trace.py: what loads, and what is refused with which words.
import copy
import json

import pytest
import report_traces as traces
from hypothesis import given, settings
from hypothesis import strategies as st

from quadriga import report

DOCUMENT = traces.run(traces.cholesky_tasks(4))
TEXT = json.dumps(DOCUMENT)


def refused(path, text):
    """The message of the error that a file's text causes; it always names the file."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(report.TraceError) as caught:
        report.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def changed(edit):
    document = copy.deepcopy(DOCUMENT)
    edit(document)
    return json.dumps(document)


def test_columns_hold_the_events(tmp_path):
    trace = report.load(traces.write(tmp_path / "t.json", DOCUMENT))
    spans = [event for event in DOCUMENT["traceEvents"] if event["ph"] == "X"]
    assert len(trace.spans) == len(spans)
    for row, event in enumerate(spans):
        assert trace.spans.start[row] == round(event["ts"] * 1000)
        assert trace.spans.duration[row] == round(event["dur"] * 1000)
        assert trace.labels[trace.spans.name[row]] == event["name"]
        assert trace.spans.bytes[row] == event["args"].get("bytes", 0)
        assert trace.spans.task[row] == event["args"].get("task", -1)
    assert trace.devices == {1: "emulated0", 2: "emulated1"}
    assert trace.seconds == DOCUMENT["quadriga"]["seconds"]


def test_times_keep_their_nanoseconds_in_a_long_run(tmp_path):
    def shift(document):
        for event in document["traceEvents"]:
            if "ts" in event:
                event["ts"] += 1e10  # almost three hours
        document["quadriga"]["seconds"] += 1e4

    path = tmp_path / "t.json"
    path.write_text(changed(shift))
    assert report.check(report.load(path)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty"]),
        (" \n", ["is empty"]),
        ("hello", ["isn't JSON", "line 1, column 1"]),
        (b"\x89PNG\r\n\x1a\n", ["isn't text", "expected JSON"]),
        ("{'traceEvents': []}", ["isn't JSON"]),
        ("[1, 2]", ["expected an object with 'traceEvents'"]),
        ('{"a": 1}', ["traceEvents"]),
        ('{"traceEvents": []}', ["'quadriga'", "another program"]),
        ('{"traceEvents": 3, "quadriga": {}}', ["a list for 'traceEvents'", "found 3"]),
        ('{"traceEvents": [7], "quadriga": {}}', ["objects with 'ph'"]),
        ('{"traceEvents": [], "quadriga": {"version": 2}}', ["'quadriga.version' 1", "found 2"]),
        ("[" * 100_000, ["nested too deeply"]),
    ],
)
def test_other_files_are_refused(tmp_path, text, words):
    message = refused(tmp_path / "other.json", text)
    assert all(word in message for word in [*words, "expected"])


@settings(max_examples=150, deadline=None)
@given(st.integers(1, len(TEXT) - 1))
def test_every_shortened_file_is_called_cut_short(tmp_path_factory, length):
    path = tmp_path_factory.mktemp("cut") / "t.json"
    assert "ends in the middle" in refused(path, TEXT[:length])


def test_a_file_cut_inside_a_character_is_called_cut_short(tmp_path):
    text = TEXT.replace("emulated0", "émulé0")
    text = json.dumps(json.loads(text), ensure_ascii=False).encode()
    place = text.index("é".encode()) + 1
    assert "ends in the middle" in refused(tmp_path / "t.json", text[:place])


def span(document, category):
    return next(event for event in document["traceEvents"] if event.get("cat") == category)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda d: span(d, "copy").pop("dur"), ["event ", "lacks 'dur'"]),
        (lambda d: span(d, "copy").update(ts="soon"), ["wrong type"]),
        (lambda d: span(d, "copy").update(ts=-1), ["has ts -1", "microseconds from 0"]),
        (lambda d: span(d, "kernel").update(dur=1e300), ["has dur 1e+300"]),
        (lambda d: span(d, "kernel").update(dur=float("nan")), ["NaN", "finite"]),
        (lambda d: span(d, "kernel").update(pid=1.5), ["wrong type"]),
        (lambda d: span(d, "kernel").update(pid=10**30), ["wrong type"]),
        (lambda d: span(d, "kernel").update(name=["dgemm"]), ["wrong type", "dgemm"]),
        (lambda d: span(d, "copy")["args"].pop("bytes"), ["lacks 'bytes'"]),
        (lambda d: span(d, "copy")["args"].update(bytes=-5), ["moves -5 bytes"]),
        (lambda d: span(d, "hit").update(ts=-3), ["has ts -3"]),
        (lambda d: d["traceEvents"][0].update(pid="x"), ["event 0", "wrong type"]),
    ],
)
def test_damaged_events_are_named(tmp_path, edit, words):
    message = refused(tmp_path / "t.json", changed(edit))
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (lambda q: q.pop("seconds"), "quadriga.seconds"),
        (lambda q: q.update(policy=3), "quadriga.policy"),
        (lambda q: q.pop("counters"), "quadriga.counters"),
        (lambda q: q["counters"].pop("links"), "quadriga.counters.links"),
        (lambda q: q["counters"]["links"][0].pop("to"), "quadriga.counters.links[0].to"),
        (lambda q: q["counters"]["links"][0].update(bytes="9"), "links[0].bytes"),
        (lambda q: q["counters"]["devices"][1].update(hits=-1), "devices[1].hits"),
        (lambda q: q["counters"]["devices"][1].pop("name"), "devices[1].name"),
        (lambda q: q["counters"]["devices"][0].update(busy_seconds=1), "busy_seconds"),
        (lambda q: q["bound"].update(link_seconds="long"), "quadriga.bound.link_seconds"),
        (lambda q: q["machine"].update(links=[1]), "quadriga.machine.links"),
        (lambda q: q["tasks"][2].pop("id"), "quadriga.tasks[2]"),
        (lambda q: q["tasks"][2].update(after=4), "quadriga.tasks[2]"),
    ],
)
def test_damaged_headers_are_named(tmp_path, edit, place):
    message = refused(tmp_path / "t.json", changed(lambda document: edit(document["quadriga"])))
    assert place in message


def test_what_a_run_may_leave_out(tmp_path):
    def edit(document):
        for key in ("bound", "machine", "tasks", "policy", "devices_requested"):
            del document["quadriga"][key]
        document["traceEvents"].append({"ph": "C", "name": "memory", "pid": 1, "ts": 0})
        document["traceEvents"].append({"ph": "X", "cat": "mine", "ts": 0, "dur": 1, "pid": 1})

    path = tmp_path / "t.json"
    path.write_text(changed(edit))
    trace = report.load(path)
    assert trace.bound == {} and trace.tasks == []
    assert "<html" in report.to_html(trace) and report.summary(trace)["bound"] is None


def test_a_file_that_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        report.load(tmp_path / "absent.json")
