# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/export.py: a trace for Graphviz and for Perfetto.
"""Exports: the task graph for Graphviz, and the trace with additions for Perfetto."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from ..analysis.analysis import Analysis
from ..analysis.intervals import rates
from ..formats import printable
from ..trace.header import TraceError
from ..trace.reading import contents
from ..trace.trace import KERNEL, Trace

# Fill colours by device: light enough for black text.
_FILLS = ("#bcd9f7", "#c9ecd9", "#fbe3ab", "#d8d2f5", "#f9d0e1", "#fcd3bd", "#c6e5c3", "#e3e3e0")
_LARGEST_GRAPH = 20_000
_MOST_FLOWS = 50_000
_RATE_POINTS = 500


def to_dot(trace: Trace) -> str:
    """The task graph in Graphviz's DOT language, with a colour for each device.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    str

    Raises
    ------
    TraceError
        If the file has no graph, or one with too many tasks to be drawn.
    """
    tasks = trace.tasks
    if not tasks:
        raise TraceError(f"{trace.path}: holds no task graph; expected 'quadriga.tasks'")
    if len(tasks) > _LARGEST_GRAPH:
        raise TraceError(
            f"{trace.path}: its graph has {len(tasks)} tasks; expected at most {_LARGEST_GRAPH}"
        )
    lines = ["digraph tasks {", "  rankdir=TB;", '  node [shape=box, style="rounded,filled",']
    lines += ['    fontname="Helvetica", color="#666666"];', '  edge [color="#666666"];']
    for task in tasks:
        device = task.get("device", -1)
        where = trace.devices.get(device + 1, "")
        fill = _FILLS[device % len(_FILLS)] if device >= 0 else "#ffffff"
        label = _quoted(f"{task.get('name', 'task')} {task['id']}")
        lines.append(
            f'  t{task["id"]} [label={label}, tooltip={_quoted(where)}, fillcolor="{fill}"];'
        )
    for task in tasks:
        lines += [f"  t{other} -> t{task['id']};" for other in task.get("after", [])]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = printable(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def to_perfetto(trace: Trace) -> str:
    """The trace as JSON for Perfetto, with additions.

    Devices and streams are ordered, each link has a track of bytes per second, and if the file has
    the graph, arrows lead from each task to those that waited for it. Of a part, the whole trace is
    exported.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    str

    Raises
    ------
    TraceError, OSError
        If the file has changed since it was loaded, or can't be read again.
    """
    trace = trace.whole or trace
    events: list[dict[str, Any]] = []
    for pid in (0, *trace.devices):
        events.append(_metadata("process_sort_index", pid, {"sort_index": pid}))
    for pid, tid in trace.streams:
        events.append(_metadata("thread_sort_index", pid, {"sort_index": tid}, tid))
    if 0 not in trace.processes:
        events.append(_metadata("process_name", 0, {"name": "host"}))
    return _with_events(trace, events + _rates(trace) + _flows(trace))


def _with_events(trace: Trace, events: list[dict[str, Any]]) -> str:
    """The file's own text with events put first, so that a large one isn't taken apart again."""
    text = contents(trace.path).decode("utf-8")
    opening = re.search(r'"traceEvents"\s*:\s*\[', text)
    if opening is None:
        raise TraceError(f"{trace.path}: has changed since it was read; expected 'traceEvents'")
    added = json.dumps(events, separators=(",", ":"))[1:-1]
    empty = text[opening.end() :].lstrip().startswith("]")
    return text[: opening.end()] + added + ("" if empty else ",\n") + text[opening.end() :]


def _metadata(name: str, pid: int, args: dict[str, Any], tid: int | None = None) -> dict[str, Any]:
    event: dict[str, Any] = {"ph": "M", "name": name, "pid": pid, "args": args}
    return event if tid is None else event | {"tid": tid}


def _rates(trace: Trace) -> list[dict[str, Any]]:
    edges = np.linspace(0, trace.end, _RATE_POINTS + 1).astype(np.int64)
    events = []
    for (source, target), spans in Analysis(trace).ways.items():
        speeds = rates(spans.start, spans.end, spans.bytes, edges) * 1e9
        for at, rate in zip(edges[:-1].tolist(), speeds.tolist(), strict=True):
            events.append(
                {
                    "ph": "C",
                    "name": f"{source} to {target}, GB/s",
                    "pid": 0,
                    "ts": at / 1e3,
                    "args": {"GB/s": round(rate / 1e9, 3)},
                }
            )
    return events


def _flows(trace: Trace) -> list[dict[str, Any]]:
    spans = trace.spans.take((trace.spans.kind == KERNEL) & (trace.spans.task >= 0))
    rows = {task: row for row, task in enumerate(spans.task.tolist())}
    events: list[dict[str, Any]] = []
    edges = ((other, task["id"]) for task in trace.tasks for other in task.get("after", []))
    for number, (before, after) in enumerate(edges):
        if number >= _MOST_FLOWS:
            break
        if before not in rows or after not in rows:
            continue
        tail, head = rows[before], rows[after]
        base = {"cat": "dependency", "name": "after", "id": number + 1}
        for phase, row, at in (("s", tail, spans.start[tail]), ("f", head, spans.start[head])):
            event = base | {"ph": phase, "pid": int(spans.pid[row]), "tid": int(spans.tid[row])}
            events.append(event | {"ts": int(at) / 1e3} | ({"bp": "e"} if phase == "f" else {}))
    return events
