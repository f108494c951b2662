# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/counters.py: recomputes each counter from the events.
"""Counters computed from the events of a trace; ``check`` compares them with the engine's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..trace.trace import COPY, HOST, INSTANTS, KERNEL, Spans, Trace
from .intervals import Intervals, common_length, merge

COUNTED = ("tasks", "hits", "misses", "prefetches", "evictions", "write_backs", "steals")
KINDS = ("copy_in", "copy_out", "peer_in", "compute", "panel")
_INSTANT_OF = {
    "hits": "hit",
    "misses": "miss",
    "prefetches": "prefetch",
    "evictions": "evict",
    "write_backs": "write_back",
    "steals": "steal",
}
# Files carry whole nanoseconds; sums of seconds round a little.
_SLACK_SECONDS = 1e-6


@dataclass(frozen=True)
class Disagreement:
    """One counter whose reported value differs from the sum of its events.

    Attributes
    ----------
    where, counter : str
        The device, link or run; the counter's name.
    reported, recounted : float
        The engine's value, and the value from the events, in the counter's unit.
    """

    where: str
    counter: str
    reported: float
    recounted: float

    def __str__(self) -> str:
        return (
            f"{self.where}: {self.counter} is reported as {self.reported:.12g},"
            f" the events give {self.recounted:.12g}"
        )


def stream_kind(name: str) -> str:
    """What a stream is for: its name without the number that tells it from its like.

    Examples
    --------
    >>> stream_kind("compute 1"), stream_kind("copy_in")
    ('compute', 'copy_in')
    """
    return re.sub(r"[\s_#-]*\d+$", "", name.strip().lower()).replace(" ", "_").replace("-", "_")


def busy(trace: Trace, pid: int, kind: int) -> Intervals:
    """When at least one kernel ran on a device, or at least one copy to or from it."""
    spans = trace.spans
    rows = spans.pid == pid
    if kind == COPY:
        own = trace.label(trace.devices[pid])
        rows |= (spans.source == own) | (spans.target == own)
    rows &= spans.kind == kind
    return merge(spans.start[rows], spans.end[rows])


def recount(trace: Trace) -> dict[str, Any]:
    """Compute all counters from the events alone.

    Returns
    -------
    dict
        ``links`` and ``devices``, in the form of the file's ``counters`` (docs/report.md).
    """
    devices = [_device(trace, pid, name) for pid, name in trace.devices.items()]
    return {"links": _links(trace), "devices": devices}


def _links(trace: Trace) -> list[dict[str, Any]]:
    spans, labels = trace.spans, trace.labels
    copies = spans.kind == COPY
    pairs = spans.source[copies] * len(labels) + spans.target[copies]
    ways, which = np.unique(pairs, return_inverse=True)
    moved = np.zeros(len(ways), np.int64)  # bincount would sum as floats and lose bytes
    np.add.at(moved, which, spans.bytes[copies])
    counts = np.bincount(which, minlength=len(ways))
    return [
        {
            "from": labels[int(way) // len(labels)],
            "to": labels[int(way) % len(labels)],
            "bytes": int(total),
            "copies": int(count),
        }
        for way, total, count in zip(ways, moved, counts, strict=True)
    ]


def _device(trace: Trace, pid: int, name: str) -> dict[str, Any]:
    spans = trace.spans.take(trace.spans.pid == pid)
    seen = np.bincount(trace.instants.what[trace.instants.pid == pid], minlength=len(INSTANTS))
    kernels, copies = busy(trace, pid, KERNEL), busy(trace, pid, COPY)
    counted: dict[str, Any] = {"name": name, "tasks": int((spans.kind == KERNEL).sum())}
    for counter, instant in _INSTANT_OF.items():
        counted[counter] = int(seen[INSTANTS.index(instant)])
    counted["busy_seconds"] = _busy_seconds(trace, pid, spans)
    counted["overlap_seconds"] = common_length(kernels, copies) / 1e9
    counted["overlap_possible_seconds"] = min(kernels.length, copies.length) / 1e9
    return counted


def _busy_seconds(trace: Trace, pid: int, spans: Spans) -> dict[str, float]:
    seconds = dict.fromkeys(KINDS[:4], 0.0)
    for tid in np.unique(spans.tid):
        stream = spans.take(spans.tid == tid)
        kind = kind_of_stream(trace, pid, int(tid), stream)
        seconds[kind] = seconds.get(kind, 0.0) + int(stream.duration.sum()) / 1e9
    return seconds


def kind_of_stream(trace: Trace, pid: int, tid: int, stream: Spans) -> str:
    """As the file says, by its name, or if that tells nothing, by what ran on it."""
    if (pid, tid) in trace.kinds:
        return stream_kind(trace.kinds[pid, tid])
    if stream_kind(trace.streams.get((pid, tid), "")) in KINDS:
        return stream_kind(trace.streams[pid, tid])
    if len(stream) == 0:
        return "compute"
    if (stream.kind == KERNEL).any():
        return "compute"
    if trace.labels[int(stream.source[0])] == HOST:
        return "copy_in"
    return "copy_out" if trace.labels[int(stream.target[0])] == HOST else "peer_in"


def by_kind(busy_seconds: dict[str, float]) -> dict[str, float]:
    """Busy seconds by what streams are for; kernels of high priority count as computing."""
    seconds: dict[str, float] = {}
    for name, value in busy_seconds.items():
        kind = "compute" if stream_kind(name) == "panel" else stream_kind(name)
        seconds[kind] = seconds.get(kind, 0.0) + value
    return seconds


def check(trace: Trace) -> list[Disagreement]:
    """Compare the file's counters with its events.

    Returns
    -------
    list of Disagreement
        Empty if all agree: numbers exactly, seconds to a microsecond. For a part of a trace the
        whole trace is compared, since the engine counted the whole.
    """
    trace = trace.whole or trace
    reported, recounted = trace.counters, recount(trace)
    found = _compare_links(reported["links"], recounted["links"])
    ours = {device["name"]: device for device in reported["devices"]}
    theirs = {device["name"]: device for device in recounted["devices"]}
    for name in ours | theirs:
        found += _compare_device(name, ours.get(name, {}), theirs.get(name, {}))
    last = int(trace.spans.end.max(initial=0)) / 1e9
    if last > trace.seconds + _SLACK_SECONDS:
        found.append(Disagreement("run", "seconds", trace.seconds, last))
    return found


def _compare_links(
    reported: list[dict[str, Any]], recounted: list[dict[str, Any]]
) -> list[Disagreement]:
    ours = {(link["from"], link["to"]): link for link in reported}
    theirs = {(link["from"], link["to"]): link for link in recounted}
    found = []
    for way in ours | theirs:
        for counter in ("bytes", "copies"):
            one, other = ours.get(way, {}).get(counter, 0), theirs.get(way, {}).get(counter, 0)
            if one != other:
                found.append(Disagreement(f"{way[0]} to {way[1]}", counter, one, other))
    return found


def _compare_device(name: str, one: dict[str, Any], other: dict[str, Any]) -> list[Disagreement]:
    found = []
    for counter in COUNTED:
        if one.get(counter, 0) != other.get(counter, 0):
            found.append(Disagreement(name, counter, one.get(counter, 0), other.get(counter, 0)))
    seconds = {
        counter: (one.get(counter, 0.0), other.get(counter, 0.0))
        for counter in ("overlap_seconds", "overlap_possible_seconds")
    }
    ours, theirs = (by_kind(entry.get("busy_seconds", {})) for entry in (one, other))
    for kind in ours | theirs:
        seconds[f"busy_seconds.{kind}"] = (ours.get(kind, 0.0), theirs.get(kind, 0.0))
    for counter, (value, expected) in seconds.items():
        if abs(value - expected) > _SLACK_SECONDS + 1e-9 * abs(expected):
            found.append(Disagreement(name, counter, value, expected))
    return found
