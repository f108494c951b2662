# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_report_analysis.py: where the time went, why devices waited, and the summary.
import json

import pytest
import report_traces as traces

from quadriga import report
from quadriga.report.analysis import analysis

MS = 1000.0  # microseconds


def kernel(name, start, length, task, pid=1):
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": pid,
        "tid": 4,
        "ts": start * MS,
        "dur": length * MS,
        "args": {"task": task},
    }


def copied(start, length, pid=1, why="stage", source="host", target="gpu0", tile=5):
    args = {"from": source, "to": target, "bytes": 2**20, "tile": tile, "why": why}
    return {
        "ph": "X",
        "cat": "copy",
        "name": f"{source} to {target}",
        "pid": pid,
        "tid": 1,
        "ts": start * MS,
        "dur": length * MS,
        "args": args,
    }


def load(tmp_path, events, tasks=(), devices=1, seconds=0.1, **header):
    names = [{"name": f"gpu{i}"} for i in range(devices)]
    document = {"traceEvents": events, "quadriga": {"version": 1, "seconds": seconds, **header}}
    document["quadriga"]["counters"] = {"links": [], "devices": names}
    document["quadriga"]["tasks"] = [
        {"id": i, "name": "t", "device": 0, "after": list(after)} for i, after in tasks
    ]
    return report.load(traces.write(tmp_path / "t.json", document))


def test_each_gap_has_its_cause(tmp_path):
    """Copies until 20, kernel to 40, no copies until 70 (nothing ready), kernel to 80, the end."""
    events = [copied(0, 20), kernel("dgemm", 20, 20, 0), copied(45, 2), kernel("dgemm", 70, 10, 1)]
    run = analysis.Analysis(load(tmp_path, events))
    gaps = {gap.cause: gap for gap in run.gaps()}
    assert gaps["waited for copies"].length == 20_000_000
    assert "tile 5 from host to gpu0" in gaps["waited for copies"].detail
    assert (gaps["nothing ready"].start, gaps["nothing ready"].length) == (40_000_000, 30_000_000)
    assert gaps["nothing ready"].detail == "next: dgemm, task 1"
    assert gaps["finished"].length == 20_000_000
    (use,) = run.devices
    assert (use.waited, use.not_ready, use.finished) == (22_000_000, 28_000_000, 20_000_000)


def test_the_graph_tells_waiting_for_tasks_from_waiting_for_copies(tmp_path):
    """A copy runs all the while, but the second task's predecessor ends only at 60."""
    events = [
        *(kernel("dpotrf", 0, 10, 0), kernel("slow", 0, 60, 1, pid=2)),
        *(copied(10, 55), kernel("dgemm", 70, 30, 2)),
    ]
    blind = analysis.Analysis(load(tmp_path, events, devices=2))
    assert blind.gaps()[0].cause == "waited for copies"
    known = analysis.Analysis(load(tmp_path, events, [(0, ()), (1, ()), (2, (0, 1))], devices=2))
    gap = known.gaps()[0]
    assert (gap.cause, gap.detail) == ("nothing ready", "next: dgemm, task 2, after task 1")
    use = known.devices[0]
    assert (use.not_ready, use.waited, use.not_started) == (50_000_000, 5_000_000, 5_000_000)


def test_a_ready_task_that_nobody_starts(tmp_path):
    events = [kernel("a", 0, 10, 0), kernel("b", 90, 10, 1)]
    run = analysis.Analysis(load(tmp_path, events, [(0, ()), (1, (0,))]))
    assert run.gaps()[0].cause == "not started"
    assert "left ready tasks unstarted for 80.0 ms" in report.summary_text(run.trace)


def test_making_room_counts_as_waiting_and_going_home_does_not(tmp_path):
    for why, cause in (("evict", "waited for copies"), ("final", "nothing ready")):
        events = [kernel("a", 0, 10, 0), copied(10, 80, why=why, source="gpu0", target="host")]
        run = analysis.Analysis(load(tmp_path, [*events, kernel("b", 90, 10, 1)]))
        assert run.gaps()[0].cause == cause


@pytest.mark.parametrize("graph", [True, False])
@pytest.mark.parametrize("devices", [1, 3])
def test_a_device_spends_its_time_once(tmp_path, graph, devices):
    document = traces.run(traces.cholesky_tasks(8), graph, devices=devices, room=8)
    run = analysis.Analysis(report.load(traces.write(tmp_path / "t.json", document)))
    for use in run.devices:
        parts = (use.hidden, use.alone, use.waited, use.not_ready, use.not_started, use.finished)
        assert min(parts) >= 0 and sum(parts) == run.trace.end


def test_each_core_of_a_cpu_is_idle_by_itself(tmp_path):
    """Two workers, one always busy, the other half the time: the device is used by 75 %."""
    other = kernel("b", 0, 50, 1) | {"tid": 5}
    trace = load(tmp_path, [kernel("a", 0, 100, 0), other])
    (device,) = report.summary(trace)["devices"]
    assert device["use"] == 0.75
    assert device["idle_seconds"]["finished"] == pytest.approx(0.025)
    (gap,) = analysis.Analysis(trace).gaps()
    assert (gap.device, gap.length) == ("gpu0 5", 50_000_000)


def test_streams_of_a_device_with_copies_share_it(tmp_path):
    other = kernel("b", 0, 50, 1) | {"tid": 5}
    trace = load(tmp_path, [copied(0, 1), kernel("a", 0, 100, 0), other])
    assert report.summary(trace)["devices"][0]["use"] == 1


def test_summary_is_plain_and_says_what_happened(tmp_path):
    document = traces.run(traces.cholesky_tasks(8), devices=2)
    header = document["quadriga"]
    facts = report.summary(report.load(traces.write(tmp_path / "t.json", document)))
    assert json.loads(json.dumps(facts)) == facts
    assert facts["bound"]["binding"] == "work_seconds"
    assert facts["bound"]["ratio"] == pytest.approx(header["seconds"] / header["bound"]["seconds"])
    devices = header["counters"]["devices"]
    reached = sum(device["overlap_seconds"] for device in devices)
    possible = sum(device["overlap_possible_seconds"] for device in devices)
    assert facts["overlap"]["fraction"] == pytest.approx(reached / possible)
    assert facts["totals"]["tasks"] == sum(row["count"] for row in facts["kernels"]) == 120
    moved = sum(link["bytes"] for link in header["counters"]["links"])
    assert sum(facts["bytes"].values()) == sum(row["bytes"] for row in facts["copies"]) == moved
    assert facts["disagreements"] == []


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ({"work_seconds": 0.08, "critical_path_seconds": 0.01}, "25 % above the bound set by work"),
        ({"critical_path_seconds": 0.1}, "on the bound set by the longest chain of tasks"),
        ({"link_seconds": 0.02, "link": "host to gpu0"}, "5.00 times the bound set by the link"),
        ({"seconds": 0, "work_seconds": 0}, "100 ms on 1 device."),
        ({"seconds": 0.2, "work_seconds": 0.2}, "50 % below the bound"),
    ],
)
def test_the_verdict_names_the_bound(tmp_path, bound, words):
    trace = load(tmp_path, [kernel("a", 0, 100, 0)], bound=bound)
    assert words in report.summary_text(trace)
    assert "<html" in report.to_html(trace)


def test_the_terminal_shows_disagreements(tmp_path):
    trace = load(tmp_path, [kernel("a", 0, 100, 0)])
    assert "! gpu0: tasks is reported as 0, the events give 1" in report.summary_text(trace)


def test_kernels_that_share_a_device_are_told_from_those_alone(tmp_path):
    """a runs from 0 to 20, b from 10 to 40 beside it, a again by itself from 50 to 55."""
    other = kernel("b", 10, 30, 1) | {"tid": 5}
    events = [copied(0, 1), kernel("a", 0, 20, 0), other, kernel("a", 50, 5, 2)]
    trace = load(tmp_path, events)
    rows = {row["name"]: row for row in report.summary(trace)["kernels"]}
    assert rows["a"]["alone"] == pytest.approx(15 / 25)
    assert rows["b"]["alone"] == pytest.approx(20 / 30)
    assert rows["a"]["median_alone_seconds"] == pytest.approx(0.005)
    assert rows["b"]["median_alone_seconds"] is None
    assert "share it: each takes longer than alone" in report.to_html(trace)
    assert "and go first wherever both" in report.to_html(trace)
    apart = load(tmp_path, [copied(0, 1), kernel("a", 0, 20, 0), kernel("b", 20, 20, 1)])
    assert "share it: each takes longer than alone" not in report.to_html(apart)
    assert "and go first wherever both" not in report.to_html(apart)


def test_start_and_end_of_a_device(tmp_path):
    """Operands come until 30, kernels run 10 to 20 and 25 to 60, the result is home at 80."""
    home = copied(60, 20, source="gpu0", target="host", why="final")
    events = [copied(0, 10), copied(15, 15), kernel("a", 10, 10, 0), kernel("a", 25, 35, 1), home]
    trace = load(tmp_path, events, devices=2)
    one, idle = report.summary(trace)["devices"]
    assert idle["phases"] is None
    assert one["phases"] == {
        "first_kernel_seconds": 0.01,
        "last_operand_seconds": 0.03,
        "last_kernel_seconds": 0.06,
        "last_result_seconds": 0.08,
        "computing_until_last_operand": 0.5,
        "computing_from_last_operand": 1.0,
    }
    assert "last operand from the host" in report.to_html(trace)
    bare = load(tmp_path, [kernel("a", 0, 10, 0)])
    assert report.summary(bare)["devices"][0]["phases"] is None
    assert "last operand from the host" not in report.to_html(bare)


def test_kernels_are_compared_with_the_machines_table(tmp_path):
    """a takes 20 instead of 10 and 12 instead of 10, b isn't in the table but hardly counts."""
    events = [kernel("a", 0, 20, 0), kernel("a", 30, 12, 1), kernel("b", 50, 0.2, 2)]
    for event in events[:2]:
        event["args"]["expected"] = 10 * MS
    bound = {"work_seconds": 0.0322}
    trace = load(tmp_path, events, bound=bound)
    facts = report.summary(trace)
    rows = {row["name"]: row for row in facts["kernels"]}
    assert rows["a"]["of_table"] == pytest.approx(1.6) and rows["b"]["of_table"] is None
    assert facts["bound"]["table_seconds"] == pytest.approx(0.0202)
    assert "the work would take 20.2 ms" in report.to_html(trace).replace("\n", " ")
    cut = report.summary(report.part(trace, start=0.01))
    assert cut["bound"]["table_seconds"] == pytest.approx(0.0152)
    del events[0]["args"]["expected"]
    trace = load(tmp_path, events, bound=bound)
    assert report.summary(trace)["bound"]["table_seconds"] is None
    assert "By the machine" not in report.to_html(trace)


def test_a_host_that_looks_late_is_told(tmp_path):
    """Four streams end at 20 to the nanosecond and nothing before: nobody looked for 18 ms."""
    events = [copied(0, 2)]
    events += [kernel(f"k{i}", 1 + i, 19 - i, i) | {"tid": 4 + i} for i in range(4)]
    events += [kernel("alone", 30, 20, 9)]
    facts = report.summary(load(tmp_path, events))
    assert facts["late"]["seconds"] == facts["late"]["longest_seconds"] == pytest.approx(0.018)
    assert facts["late"]["longest_start_seconds"] == pytest.approx(0.002)
    assert facts["late"]["share"] == pytest.approx(0.18)
    trace = load(tmp_path, events)
    assert "Operations were seen to end late: 18 % of the time" in report.summary_text(trace)
    assert "Operations were seen to end late" in report.to_html(trace)
    for quiet in (load(tmp_path, events, clock="virtual"), load(tmp_path, events[:4])):
        assert report.summary(quiet)["late"]["seconds"] == 0
        assert "Operations were seen to end late" not in report.to_html(quiet)
