# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/page.py: fills the HTML template with a run's figures and pictures.
"""The report: one HTML file that needs nothing else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from . import drawing, formats
from .analysis import Analysis
from .counters import by_kind
from .gaps import CAUSES
from .intervals import coverage, rates
from .summary import LIMITS, above, largest_loss, summarize, verdict
from .timeline import Timeline, tick_row, why_css
from .trace import COPY, HOST, Trace, load

_BUCKETS = 240
_MOST_WAYS = 16
_MOST_KERNELS = 20
_MOST_FOUND = 20
_HEIGHT = 1000


def to_html(trace: Trace) -> str:
    """The report on a run, as one HTML page without anything from elsewhere.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    str
        Under 5 MB for a million events; the same trace gives the same text.
    """
    run = Analysis(trace)
    facts, timeline, states = summarize(run), Timeline(run), _states(run)
    return (
        _environment()
        .get_template("report.html")
        .render(
            facts=facts,
            name=Path(trace.path).name,
            source=_source(facts),
            sentence=verdict(facts)[0],
            loss=largest_loss(facts),
            tiles=_tiles(facts),
            bounds=_bounds(facts),
            states=states,
            states_legend=_states_legend(states),
            timeline=timeline,
            devices=timeline.whole(),
            ticks=_ticks(trace),
            use=_use(run),
            ways=_ways(run),
            other_ways=max(0, len(run.ways) - _MOST_WAYS),
            matrix=_matrix(run),
            counters=_counters(facts, trace),
            kernels=_kernels(facts, timeline),
            copies=[row | {"css": why_css(row["why"])} for row in facts["copies"]],
            gaps=run.gaps(),
            whole=trace.end,
            most_found=_MOST_FOUND,
        )
    )


def write_report(trace_path: str | os.PathLike[str], out_path: str | os.PathLike[str]) -> Trace:
    """Read a trace and write the report on it.

    Parameters
    ----------
    trace_path, out_path : path-like

    Returns
    -------
    Trace
        What was read, for a caller that prints a summary too.

    Raises
    ------
    TraceError
        If the file isn't a trace; nothing is written.
    OSError
        If the report can't be written; what was there stays.
    """
    trace = load(trace_path)
    write_beside(out_path, to_html(trace))
    return trace


def write_beside(path: str | os.PathLike[str], text: str) -> None:
    """Write a file so that it is there whole or, if anything fails, as it was before."""
    target = Path(path)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    written = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        written.chmod(0o666 & ~mask)
        written.replace(target)
    except BaseException:
        written.unlink(missing_ok=True)
        raise


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for formatter in (formats.time, formats.size, formats.share, formats.count, formats.rate):
        environment.filters[formatter.__name__] = formatter
    environment.filters["plural"] = formats.plural
    return environment


def _source(facts: dict[str, Any]) -> list[str]:
    """Which run this is about."""
    policy = f"policy {facts['policy']}" if facts["policy"] else ""
    parts = [Path(facts["file"]).name, facts["devices_requested"], policy]
    return [part for part in [*parts, f"{facts['clock']} clock"] if part]


def _tiles(facts: dict[str, Any]) -> list[dict[str, str]]:
    """The four figures that a glance should catch."""
    bound, overlap = facts["bound"], facts["overlap"]
    tasks = formats.plural(facts["totals"]["tasks"], "task")
    devices = formats.plural(len(facts["devices"]), "device")
    tiles = [_tile("Time", formats.time(facts["seconds"]), f"{tasks} on {devices}")]
    if bound:
        words = above(bound["ratio"]).split(" ", 2)
        number = " ".join(words[:2]) if bound["ratio"] >= 1.0005 else "0 %"
        rest = f"over the bound of {formats.time(bound['seconds'])}"
        if bound["ratio"] >= 3:
            number, rest = f"{words[0]} times", f"the bound of {formats.time(bound['seconds'])}"
        grade = "good" if bound["ratio"] <= 1.05 else "fair" if bound["ratio"] <= 1.25 else "far"
        tiles.append(_tile("Distance to the bound", number, rest, grade))
        tiles.append(_limit_tile(bound))
    else:
        tiles.append(_tile("Distance to the bound", "none", "the trace gives no bound"))
    if overlap["fraction"] is None:
        tiles.append(_tile("Overlap", "none", "nothing was copied"))
    else:
        part, whole = formats.time(overlap["seconds"]), formats.time(overlap["possible_seconds"])
        fraction = overlap["fraction"]
        grade = "good" if fraction >= 0.9 else "fair" if fraction >= 0.6 else "far"
        if overlap["possible_seconds"] < 0.01 * facts["seconds"] * len(facts["devices"]):
            grade = ""  # too little to matter
        rest = f"{part} of {whole} possible"
        tiles.append(_tile("Overlap", formats.share(fraction), rest, grade))
    return tiles


def _limit_tile(bound: dict[str, Any]) -> dict[str, str]:
    number, rest = {
        "work_seconds": ("Work", "of all kernels, shared by the devices"),
        "critical_path_seconds": ("Path", "the longest chain of dependent tasks"),
        "link_seconds": ("Link", f"what must cross {bound['link'] or 'the busiest link'}"),
    }[bound["binding"]]
    return _tile("What sets the bound", number, rest)


def _tile(title: str, number: str, rest: str, grade: str = "") -> dict[str, str]:
    words = {"good": "good", "fair": "fair", "far": "look here", "": ""}
    return {"title": title, "number": number, "rest": rest, "grade": grade, "word": words[grade]}


def _bounds(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The time and the three bounds, as bars of one scale."""
    if not facts["bound"]:
        return []
    longest = max(facts["seconds"], *(facts["bound"][key] for key in LIMITS), 1e-12)
    link = facts["bound"]["link"]
    names = {
        "work_seconds": "Work over devices",
        "critical_path_seconds": "Longest chain",
        "link_seconds": f"Link {link}" if link else "Busiest link",
    }
    rows = [{"name": "This run", "seconds": facts["seconds"], "css": "run"}]
    for key, name in names.items():
        if facts["bound"][key] == 0:
            continue
        css = "binding" if key == facts["bound"]["binding"] else "slack"
        rows.append({"name": name, "seconds": facts["bound"][key], "css": css})
    return [row | {"percent": 100 * row["seconds"] / longest} for row in rows]


def _states(run: Analysis) -> list[dict[str, Any]]:
    """Each device's time, divided without remainder."""
    end = run.trace.end
    keys = ("hidden", "alone", "waited", "not_ready", "not_started", "finished")
    names = ("computing, copies hidden", "computing, no copies", *CAUSES)
    rows = []
    for use in run.devices:
        parts = [
            {"css": f"s-{key}", "name": name, "share": getattr(use, key) / len(use.units) / end}
            for key, name in zip(keys, names, strict=True)
        ]
        rows.append({"name": use.name, "use": use.share(run.trace.end), "parts": parts})
    return rows


def _states_legend(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts that some device's bar shows."""
    parts = states[0]["parts"] if states else []
    return [part for i, part in enumerate(parts) if any(s["parts"][i]["share"] for s in states)]


def _ticks(trace: Trace) -> list[dict[str, Any]]:
    """Marks of the time axis; the finer ones appear as the time line is widened."""
    seen: set[float] = set()
    rows = []
    for zoom, wanted in ((1, 6), (4, 24), (16, 96)):
        for percent, text in drawing.ticks(trace.end, wanted):
            if round(percent, 6) not in seen:
                seen.add(round(percent, 6))
                rows.append(tick_row(percent, text, zoom))
    return rows


def _use(run: Analysis) -> list[dict[str, Any]]:
    """Share of each device's time that it computes and copies, over time."""
    edges = drawing.edges_between(0, run.trace.end, _BUCKETS)
    widths = np.maximum(np.diff(edges), 1)
    rows = []
    for use in run.devices:
        copies, parts = run.busy(use.pid, COPY), [unit.busy for unit in use.units]
        computing = sum(coverage(part.start, part.end, edges) for part in parts) / len(parts)
        shares = [computing / widths, coverage(copies.start, copies.end, edges) / widths]
        hover = drawing.zones(edges, _HEIGHT, _use_text(*shares))
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


def _ways(run: Analysis) -> list[dict[str, Any]]:
    """Bytes a second on each way over time, the busiest ways first."""
    edges = drawing.edges_between(0, run.trace.end, _BUCKETS)
    rows = []
    for (source, target), spans in list(run.ways.items())[:_MOST_WAYS]:
        speeds = rates(spans.start, spans.end, spans.bytes, edges) * 1e9
        capacity, peak = run.way_capacity(source, target), float(speeds.max())
        top = max(peak, capacity or 0.0, 1e-9)
        body = drawing.area(speeds / top, _HEIGHT, "u-link")
        body += drawing.zones(edges, _HEIGHT, _speed_text(speeds))
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
            }
        )
    return rows


def _speed_text(speeds: drawing.Floats) -> Any:
    return lambda first, last: formats.rate(float(speeds[first:last].mean()))


def _matrix(run: Analysis) -> dict[str, Any]:
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


def _counters(facts: dict[str, Any], trace: Trace) -> list[dict[str, Any]]:
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


def _kernels(facts: dict[str, Any], timeline: Timeline) -> list[dict[str, Any]]:
    rows = [row | {"css": timeline.kernel_css(row["name"])} for row in facts["kernels"]]
    return rows[:_MOST_KERNELS]
