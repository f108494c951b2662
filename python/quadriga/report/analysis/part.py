# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/part.py: one of several runs, or a period of time.
"""Parts of traces. A trace covers its engine's lifetime; often one of several calls is of interest.

*Runs* are separated by pauses of 50 µs or more in which no operation was in flight and after which
no task waited for an earlier one. Calls that end with their results at home are runs. A copy home
right after a pause is a late result, and no run starts with it.
"""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from .. import formats
from ..trace.trace import HOST, KERNEL, Instants, Spans, Trace
from .bound import lower_bound
from .counters import recount
from .intervals import Integers, merge

_PAUSE = 50_000  # nanoseconds


def runs(trace: Trace) -> list[tuple[float, float]]:
    """Start and end of each run in a trace.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    list of (float, float)
        Seconds of the trace, in order; empty for a trace without events.
    """
    return [(start / 1e9, end / 1e9) for start, end in _runs(trace)]


def part(
    trace: Trace,
    *,
    run: int | Literal["last"] | None = None,
    start: float | None = None,
    end: float | None = None,
) -> Trace:
    """One run of a trace, or the events between two times, as a separate trace.

    Parameters
    ----------
    trace : Trace
    run : int or "last", optional
        Number of a run in `runs`, from 1.
    start, end : float, optional
        Seconds of the trace, or of the run if one is given. Events that cross them are cut, and
        their bytes are reduced in proportion to their time.

    Returns
    -------
    Trace
        Its time starts at 0. Counters and bound are computed from its events alone.

    Raises
    ------
    ValueError
        If there is no such run, or no time between start and end.
    """
    if run is None and start is None and end is None:
        return trace
    window, name = (0, trace.end), ""
    marks = window
    if run is not None:
        window, marks, name = _run(trace, run)
    if start is not None or end is not None:
        window = marks = _within(window, start, end)
        told = [formats.time(at / 1e9) for at in window]
        name += f"{', ' if name else ''}{told[0]} to {told[1]}"
    return _cut(trace, window, marks, f"{name} of {formats.time(trace.seconds)} recorded")


def _run(trace: Trace, run: int | str) -> tuple[tuple[int, int], tuple[int, int], str]:
    """A run's time, the time of the marks that belong to it, and what it is called.

    What a run looks for is marked before its first copy, what it wrote home after its last: marks
    in a pause belong to the nearer run.
    """
    found = _runs(trace)
    number = len(found) if run == "last" else int(run)
    if not 1 <= number <= len(found):
        expected = f"1 to {len(found)}" if found else "a trace with events"
        raise ValueError(f"{trace.path}: holds no run {run}; expected {expected}")
    middles = [(one[1] + other[0]) // 2 for one, other in pairwise(found)]
    borders = [0, *middles, max(trace.end, found[-1][1])]
    marks = borders[number - 1], borders[number]
    return found[number - 1], marks, f"run {number} of {len(found)}"


def _within(window: tuple[int, int], start: float | None, end: float | None) -> tuple[int, int]:
    first = window[0] + round((start or 0) * 1e9)
    last = window[1] if end is None else min(window[0] + round(end * 1e9), window[1])
    if not window[0] <= first < last:
        length = formats.time((window[1] - window[0]) / 1e9)
        until = "the end" if end is None else f"{end} s"
        raise ValueError(f"nothing between {start or 0} s and {until}; expected a part of {length}")
    return first, last


def _runs(trace: Trace) -> list[tuple[int, int]]:
    under_way = merge(trace.spans.start, trace.spans.end)
    if len(under_way.start) == 0:
        return []
    after, before = under_way.start[1:], under_way.end[:-1]
    apart = (after - before >= _PAUSE) & (_crossings(trace, after) == 0)
    going_home = trace.spans.target == trace.label(HOST)
    apart &= np.isin(after, trace.spans.start[~going_home])
    starts = np.concatenate((under_way.start[:1], after[apart])).tolist()
    ends = np.concatenate((before[apart], under_way.end[-1:])).tolist()
    return list(zip(starts, ends, strict=True))


def _crossings(trace: Trace, borders: Integers) -> Integers:
    """At each border, how many later tasks waited for an earlier one."""
    spans = trace.spans.take((trace.spans.kind == KERNEL) & (trace.spans.task >= 0))
    starts = dict(zip(spans.task.tolist(), spans.start.tolist(), strict=True))
    edges = [
        (starts[other], starts[task["id"]])
        for task in trace.tasks
        for other in task.get("after", [])
        if other in starts and task["id"] in starts
    ]
    crossings = np.zeros(len(borders) + 1, np.int64)
    if edges:
        begin, end = np.array(edges, np.int64).T
        np.add.at(crossings, np.searchsorted(borders, begin, "right"), 1)
        np.add.at(crossings, np.searchsorted(borders, end, "right"), -1)
    return np.cumsum(crossings)[:-1]


def _cut(trace: Trace, window: tuple[int, int], marks: tuple[int, int], name: str) -> Trace:
    start, end = window
    spans = _cut_spans(trace.spans, start, end)
    last = marks[1] + (marks[1] == trace.end)  # the end is the last part's
    rows = (trace.instants.at >= marks[0]) & (trace.instants.at < last)
    taken = {key: getattr(trace.instants, key)[rows] for key in Instants.__dataclass_fields__}
    taken["at"] = np.clip(taken["at"] - start, 0, end - start)
    ran = set(spans.task.tolist())
    tasks = [
        task
        | {"after": [other for other in task.get("after", []) if other in ran]}
        | ({"submitted": task["submitted"] - start / 1e9} if "submitted" in task else {})
        for task in trace.tasks
        if task["id"] in ran
    ]
    header: dict[str, Any] = trace.header | {
        "seconds": (end - start) / 1e9,
        "tasks": tasks,
        "sections": _cut_sections(trace.sections, start / 1e9, end / 1e9),
    }
    whole = trace.whole or trace
    cut = dataclasses.replace(
        trace, spans=spans, instants=Instants(**taken), header=header, whole=whole, part=name
    )
    header["counters"] = recount(cut)
    header["bound"] = lower_bound(cut)
    return cut


def _cut_sections(sections: list[dict[str, Any]], start: float, end: float) -> list[dict[str, Any]]:
    return [
        each | {"start": max(each["start"], start) - start, "end": min(each["end"], end) - start}
        for each in sections
        if each["start"] < end and each["end"] > start
    ]


def _cut_spans(spans: Spans, start: int, end: int) -> Spans:
    """What happened between two times; time counts from the first of them."""
    spans = spans.take((spans.start < end) & (spans.end > start))
    begin, finish = np.maximum(spans.start, start), np.minimum(spans.end, end)
    length = finish - begin
    shares = length / np.maximum(spans.duration, 1)

    def kept(whole: Integers) -> Integers:
        cut = np.rint(whole * shares).astype(np.int64)
        return np.where(length == spans.duration, whole, cut)

    return dataclasses.replace(
        spans,
        start=begin - start,
        duration=length,
        bytes=kept(spans.bytes),
        expected=kept(spans.expected),
    )
