# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/bound.py: the lower bound of a part of a run, from its events.
"""What the engine writes as ``bound``, computed from events, for a part of what it recorded."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..trace.trace import KERNEL, Trace
from .counters import busy


def lower_bound(trace: Trace) -> dict[str, Any]:
    """Work over devices, longest chain and busiest link, as a file's ``bound`` has them.

    All three are of what was observed: kernels take the time that they took, links carry the bytes
    that were copied.
    """
    work, path = work_seconds(trace), _path_seconds(trace)
    link_seconds, link = _busiest_link(trace)
    return {
        "seconds": max(work, path, link_seconds),
        "work_seconds": work,
        "critical_path_seconds": path,
        "link_seconds": link_seconds,
        "link": link,
    }


def work_seconds(trace: Trace) -> float:
    """Seconds of all kernels, shared by all that can compute at once."""
    described = (trace.header.get("machine") or {}).get("devices", [])
    spans, seconds, workers = trace.spans, 0.0, 0
    for pid in trace.devices:
        device = described[pid - 1 : pid]
        workers += _workers(device)
        if device and device[0].get("kind") == "cpu":
            own = (spans.pid == pid) & (spans.kind == KERNEL)
            seconds += int(spans.duration[own].sum()) / 1e9
        else:  # Kernels that run at once on an accelerator share its speed.
            seconds += busy(trace, pid, KERNEL).length / 1e9
    return seconds / max(workers, 1)


def table_seconds(trace: Trace) -> float | None:
    """What the work would take at the rates of the machine's table; None where it isn't known.

    Kernels that the table doesn't have count with their own time if they are a hundredth at most.
    """
    spans = trace.spans.take(trace.spans.kind == KERNEL)
    known = spans.expected > 0
    taken = int(spans.duration.sum())
    unknown = int(spans.duration[~known].sum())
    if taken == 0 or unknown > 0.01 * taken:
        return None
    described = (trace.header.get("machine") or {}).get("devices", [])
    workers = sum(_workers(described[pid - 1 : pid]) for pid in trace.devices)
    return (int(spans.expected.sum()) + unknown) / 1e9 / max(workers, 1)


def _workers(described: list[dict[str, Any]]) -> int:
    """How many kernels a device can run without sharing, by its description if there is one."""
    if described and described[0].get("kind") == "cpu":
        return int(described[0].get("cores") or 0)
    return 0 if described and described[0].get("kind") == "file" else 1


def _path_seconds(trace: Trace) -> float:
    spans = trace.spans.take((trace.spans.kind == KERNEL) & (trace.spans.task >= 0))
    taken = dict(zip(spans.task.tolist(), spans.duration.tolist(), strict=True))
    ends: dict[int, int] = {}
    # Predecessors were submitted before, so that one pass in order of the ids will do.
    for task in sorted(trace.tasks, key=lambda task: int(task["id"])):
        before = max((ends.get(other, 0) for other in task.get("after", [])), default=0)
        ends[task["id"]] = before + taken.get(task["id"], 0)
    return max(ends.values(), default=0) / 1e9


def _busiest_link(trace: Trace) -> tuple[float, str]:
    """The link that all copies took longest to cross, by their bytes."""
    machine, spans = trace.header.get("machine") or {}, trace.spans
    links = machine.get("links", {})
    seconds = dict.fromkeys(links, 0.0)
    for route in machine.get("routes", []):
        source, target = trace.label(route.get("from", "")), trace.label(route.get("to", ""))
        own = (spans.source == source) & (spans.target == target) & (spans.kind != KERNEL)
        moved = int(np.sum(spans.bytes[own]))
        for name in route.get("links", []):
            if name in links:
                seconds[name] += moved / links[name]["bandwidth"]
    name = max(seconds, key=lambda name: seconds[name], default="")
    return (seconds[name], name) if name and seconds[name] > 0 else (0.0, "")
