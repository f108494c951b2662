# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/panels.py: what each panel of the page shows, for the template.
"""Rows and pictures of the page's panels."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup, escape

from .. import formats
from ..analysis.analysis import Analysis
from ..analysis.counters import by_kind
from ..analysis.gaps import CAUSES
from ..analysis.intervals import coverage, rates
from ..trace.trace import COPY, HOST, Trace
from . import drawing
from .timeline import Timeline, tick_row

MOST_WAYS = 16
_MOST_KERNELS = 20
_HEIGHT = 1000
_MOST_SECTIONS = 400  # the longest
_MOST_DEPTH = 4
_WORTH_TELLING = 0.005  # of all devices' time
_LITTLE = 0.01  # of the bytes: what a link carried that is folded away


def states(run: Analysis) -> list[dict[str, Any]]:
    """Each device's time, divided without remainder."""
    end = run.trace.end
    keys = ("hidden", "alone", "waited", "not_ready", "not_started", "finished")
    names = ("computing and copying", "computing only", *CAUSES)
    rows = []
    for use in run.devices:
        parts = [
            {"css": f"s-{key}", "name": name, "share": getattr(use, key) / len(use.units) / end}
            for key, name in zip(keys, names, strict=True)
        ]
        rows.append({"name": use.name, "use": use.share(run.trace.end), "parts": parts})
    return rows


def why_not_started(run: Analysis) -> str | None:
    """What the time was that counts as not started, in words; None if there was hardly any."""
    units = [unit for use in run.devices for unit in use.units]
    total = sum(use.not_started for use in run.devices)
    if total < _WORTH_TELLING * run.trace.end * max(len(units), 1):
        return None
    if not any("submitted" in task for task in run.trace.tasks):
        return "Not started: a task was ready and its operands were there, and nothing ran."
    late = run.unsubmitted()
    by_program, by_engine = (formats.share(part, total) for part in (late, max(total - late, 0)))
    return (
        f"Not started: for {by_program} of it the program had not submitted the next task yet; "
        f"for {by_engine} the engine was placing and queueing it."
    )


def sections(trace: Trace) -> list[dict[str, Any]]:
    """Calls above the time line, as a device of it: a lane for each depth of nesting."""
    shown = sorted(trace.sections, key=lambda each: each["start"] - each["end"])[:_MOST_SECTIONS]
    lanes: list[list[str]] = []
    ends: list[float] = []
    for each in sorted(shown, key=lambda each: (each["start"], -each["end"])):
        depth = next((i for i, end in enumerate(ends) if end <= each["start"]), len(ends))
        if depth == len(ends):
            if depth == _MOST_DEPTH:
                continue
            ends.append(0.0)
            lanes.append([])
        ends[depth] = each["end"]
        lanes[depth].append(_section(each, trace.end / 1e9))
    rows = [{"name": "", "kind": "kernel call", "picture": Markup("".join(r))} for r in lanes]
    return [{"name": "calls", "lanes": rows}] if rows else []


def _section(section: dict[str, Any], seconds: float) -> str:
    left = 100 * section["start"] / seconds
    width = 100 * (section["end"] - section["start"]) / seconds
    name, lasted = escape(section["name"]), formats.time(section["end"] - section["start"])
    return (
        f'<span style="left:{left:.4f}%;width:{min(width, 100 - left):.4f}%" '
        f'title="{name}: {lasted}">{name}</span>'
    )


def states_legend(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts that some device's bar shows."""
    parts = states[0]["parts"] if states else []
    return [part for i, part in enumerate(parts) if any(s["parts"][i]["share"] for s in states)]


def ticks(trace: Trace) -> list[dict[str, Any]]:
    """Marks of the time axis; the finer ones appear as the time line is widened."""
    seen: set[float] = set()
    rows = []
    for zoom, wanted in ((1, 6), (4, 24), (16, 96)):
        for percent, text in drawing.ticks(trace.end, wanted):
            if round(percent, 6) not in seen:
                seen.add(round(percent, 6))
                rows.append(tick_row(percent, text, zoom))
    return rows


def use(run: Analysis, detail: drawing.Detail) -> list[dict[str, Any]]:
    """Share of each device's time that it computes and copies, over time."""
    edges = drawing.edges_between(0, run.trace.end, detail.least_buckets)
    zones = detail.zones(2 * len(run.devices))
    widths = np.maximum(np.diff(edges), 1)
    rows = []
    for use in run.devices:
        copies, parts = run.busy(use.pid, COPY), [unit.busy for unit in use.units]
        computing = sum(coverage(part.start, part.end, edges) for part in parts) / len(parts)
        shares = [computing / widths, coverage(copies.start, copies.end, edges) / widths]
        hover = drawing.zones(edges, _HEIGHT, _use_text(*shares), zones)
        pictures = [
            drawing.svg(drawing.area(part, _HEIGHT, css) + hover, _HEIGHT)
            for part, css in zip(shares, ("u-compute", "u-copy"), strict=True)
        ]
        rows.append(
            {
                "name": use.name,
                "computing": pictures[0],
                "copying": pictures[1] if shares[1].any() else None,
                "share": use.share(run.trace.end),
            }
        )
    return rows


def _use_text(kernels: drawing.Floats, copies: drawing.Floats) -> Any:
    def text(first: int, last: int) -> str:
        computing = formats.share(float(kernels[first:last].mean()))
        return f"computing {computing}, copying {formats.share(float(copies[first:last].mean()))}"

    return text


def ways(run: Analysis, detail: drawing.Detail) -> list[dict[str, Any]]:
    """Bytes a second on each way over time, the busiest ways first."""
    edges = drawing.edges_between(0, run.trace.end, detail.least_buckets)
    zones = detail.zones(min(len(run.ways), MOST_WAYS))
    rows = []
    for (source, target), spans in list(run.ways.items())[:MOST_WAYS]:
        speeds = rates(spans.start, spans.end, spans.bytes, edges) * 1e9
        capacity, peak = run.way_capacity(source, target), float(speeds.max())
        top = max(peak, capacity or 0.0, 1e-9)
        body = drawing.area(speeds / top, _HEIGHT, "u-link")
        body += drawing.zones(edges, _HEIGHT, _speed_text(speeds), zones)
        total = int(spans.bytes.sum())
        rows.append(
            {
                "source": source,
                "target": target,
                "picture": drawing.svg(body, _HEIGHT),
                "bytes": total,
                "mean": total / (run.trace.end / 1e9),
                "peak": peak,
                "capacity": capacity,
                "level": 100 * (capacity or 0.0) / top,
                "top": top,
                "little": total < _LITTLE * sum(int(s.bytes.sum()) for s in run.ways.values()),
            }
        )
    return rows


def _speed_text(speeds: drawing.Floats) -> Any:
    return lambda first, last: formats.rate(float(speeds[first:last].mean()))


def matrix(run: Analysis) -> dict[str, Any]:
    """Bytes from each memory space to each, with sums."""
    names = [HOST, *(n for n in run.trace.devices.values() if any(n in way for way in run.ways))]
    names += sorted({name for way in run.ways for name in way} - set(names))
    moved = {way: int(spans.bytes.sum()) for way, spans in run.ways.items()}
    copies = {way: len(spans) for way, spans in run.ways.items()}
    most = max(moved.values(), default=0) or 1
    rows = []
    for source in names:
        cells: list[dict[str, Any]] = [
            {
                "bytes": moved.get((source, target), 0),
                "copies": copies.get((source, target), 0),
                "heat": moved.get((source, target), 0) / most,
                "target": target,
            }
            for target in names
        ]
        rows.append({"name": source, "cells": cells, "sum": sum(c["bytes"] for c in cells)})
    sums = [sum(moved.get((source, target), 0) for source in names) for target in names]
    return {"names": names, "rows": rows, "sums": sums, "total": sum(sums)}


def has_several_streams(run: Analysis) -> bool:
    """Whether kernels of one device ran on more than one of its streams."""
    units = [use.units[0] for use in run.devices if len(use.units) == 1]
    return any(len(np.unique(unit.kernels.tid)) > 1 for unit in units)


def phases(run: Analysis) -> list[dict[str, Any]]:
    """When each device's operands came and its results went, as text."""
    rows = []
    for pid, seen in run.phases.items():
        after = seen.share_after()
        rows.append(
            {
                "name": run.trace.devices[pid],
                "first_kernel": formats.time(seen.first_kernel / 1e9),
                "last_operand": formats.time(seen.last_operand / 1e9),
                "before": formats.share(seen.share_before()),
                "last_kernel": formats.time(seen.last_kernel / 1e9),
                "after": "-" if after is None else formats.share(after),
                "last_result": formats.time(seen.last_result / 1e9),
            }
        )
    return rows


def counters(facts: dict[str, Any], trace: Trace) -> list[dict[str, Any]]:
    """The engine's own counters, a row a device."""
    rows = []
    for counted in trace.counters["devices"]:
        rows.append(
            {
                "name": counted["name"],
                "counts": {key: counted.get(key, 0) for key in facts["totals"]},
                "hit_rate": formats.share(
                    counted.get("hits", 0), counted.get("hits", 0) + counted.get("misses", 0)
                ),
                "busy": by_kind(counted.get("busy_seconds", {})),
                "overlap": counted.get("overlap_seconds", 0.0),
                "possible": counted.get("overlap_possible_seconds", 0.0),
            }
        )
    return rows


def kernels(facts: dict[str, Any], timeline: Timeline) -> list[dict[str, Any]]:
    rows = [row | {"css": timeline.kernel_css(row["name"])} for row in facts["kernels"]]
    return rows[:_MOST_KERNELS]
