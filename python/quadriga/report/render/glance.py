# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/glance.py: the figures at the page's head, for the template.
"""The top of the page: time, distance to the bound, its cause, overlap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import formats
from ..analysis.summary import LIMITS, above


def source(facts: dict[str, Any]) -> list[str]:
    """Which run this is about."""
    policy = f"policy {facts['policy']}" if facts["policy"] else ""
    parts = [Path(facts["file"]).name, facts["part"] or "", facts["devices_requested"], policy]
    return [part for part in [*parts, f"{facts['clock']} clock"] if part]


def tiles(facts: dict[str, Any]) -> list[dict[str, str]]:
    """The four figures at the top."""
    bound, overlap = facts["bound"], facts["overlap"]
    tasks = formats.plural(facts["totals"]["tasks"], "task")
    devices = formats.plural(len(facts["devices"]), "device")
    tiles = [_tile("Run time", formats.time(facts["seconds"]), f"{tasks} on {devices}")]
    if bound:
        words = above(bound["ratio"]).split(" ", 2)
        number = " ".join(words[:2]) if bound["ratio"] >= 1.0005 else "0 %"
        rest = f"over the bound of {formats.time(bound['seconds'])}"
        if bound["ratio"] >= 3:
            number, rest = f"{words[0]} times", f"the bound of {formats.time(bound['seconds'])}"
        grade = "good" if bound["ratio"] <= 1.05 else "fair" if bound["ratio"] <= 1.25 else "far"
        tiles.append(_tile("Distance from the lower bound", number, rest, grade))
        tiles.append(_limit_tile(bound))
    else:
        tiles.append(_tile("Distance from the lower bound", "none", "the trace gives no bound"))
    if overlap["fraction"] is None:
        tiles.append(_tile("Overlap of copies and kernels", "none", "nothing was copied"))
    else:
        part, whole = formats.time(overlap["seconds"]), formats.time(overlap["possible_seconds"])
        fraction = overlap["fraction"]
        grade = "good" if fraction >= 0.9 else "fair" if fraction >= 0.6 else "far"
        if overlap["possible_seconds"] < 0.01 * facts["seconds"] * len(facts["devices"]):
            grade = ""  # too little to matter
        rest = f"{part} of {whole} possible"
        tiles.append(_tile("Overlap of copies and kernels", formats.share(fraction), rest, grade))
    return tiles


def _limit_tile(bound: dict[str, Any]) -> dict[str, str]:
    number, rest = {
        "work_seconds": ("Work", "time of all kernels, divided among devices"),
        "critical_path_seconds": ("Critical path", "the longest chain of dependent tasks"),
        "link_seconds": ("Link", f"bytes that must cross {bound['link'] or 'the busiest link'}"),
    }[bound["binding"]]
    return _tile("The lower bound is set by", number, rest)


def _tile(title: str, number: str, rest: str, grade: str = "") -> dict[str, str]:
    words = {"good": "good", "fair": "fair", "far": "look here", "": ""}
    return {"title": title, "number": number, "rest": rest, "grade": grade, "word": words[grade]}


def bounds(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The time and the three bounds, as bars of one scale."""
    if not facts["bound"]:
        return []
    longest = max(facts["seconds"], *(facts["bound"][key] for key in LIMITS), 1e-12)
    link = facts["bound"]["link"]
    names = {
        "work_seconds": "Work, divided among devices",
        "critical_path_seconds": "Critical path",
        "link_seconds": f"Link {link}" if link else "Busiest link",
    }
    rows = [{"name": "This run", "seconds": facts["seconds"], "css": "run"}]
    for key, name in names.items():
        if facts["bound"][key] == 0:
            continue
        css = "binding" if key == facts["bound"]["binding"] else "slack"
        rows.append({"name": name, "seconds": facts["bound"][key], "css": css})
    return [row | {"percent": 100 * row["seconds"] / longest} for row in rows]
