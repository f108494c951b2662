# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/picture.py: the timeline as one SVG file, for pages and slides.
"""The top of a report as a picture, for places without HTML: a README, a slide, an issue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..analysis.analysis import Analysis
from ..analysis.summary import summarize, verdict
from ..formats import printable
from ..trace.trace import Trace
from . import drawing, panels
from .page import environment
from .timeline import Colour, Timeline

_WIDTH = 1000
_LEFT = 140  # where lanes begin
_KERNEL, _COPY, _SPACE = 20, 9, 2
_HEAD, _BAR = 56, 22
_LETTER = 7  # of the legend's text, about
_STATE_COLOURS = {"s-hidden": "hidden", "s-alone": "alone", "s-waited": "waited",
                  "s-not_ready": "idle", "s-not_started": "late", "s-finished": "done"}  # fmt: skip


@dataclass
class _Lane:
    """A stream's place: its name and its picture at a height."""

    device: str
    name: str
    top: int
    height: int
    picture: Markup


def to_svg(trace: Trace) -> str:
    """The run's headline, where each device's time went, and the timeline, as an SVG picture.

    Parameters
    ----------
    trace : Trace

    Returns
    -------
    str
        The file's text; the same for the same trace.
    """
    run = Analysis(trace)
    facts, timeline = summarize(run), Timeline(run, drawing.SMALL, hover=False)
    states = panels.states(run)
    lanes_top = _HEAD + _BAR * len(states) + 14
    lanes, bottom = _place(timeline.whole(), lanes_top)
    legend = timeline.legend()
    entries = _states_legend(states) + legend["kernels"] + legend["copies"]
    legend_top = bottom + 30
    placed, height = _place_legend(entries, legend_top)
    right = _WIDTH - _LEFT - 60
    template = environment().get_template("picture.svg")
    text = template.render(
        width=_WIDTH,
        height=height,
        left=_LEFT,
        span=right,
        title=verdict(facts)[0],
        source=" · ".join(part for part in (Path(trace.path).name, trace.part) if part),
        bars=[_bar(state, _HEAD + _BAR * i, right) for i, state in enumerate(states)],
        bar=_BAR,
        lanes=lanes,
        lanes_top=lanes_top,
        lanes_bottom=bottom,
        ticks=drawing.ticks(trace.end, 8),
        legend=placed,
    )
    return printable(text)


def _place(devices: list[dict[str, Any]], top: int) -> tuple[list[_Lane], int]:
    """Lanes below each other, and where they end."""
    lanes = []
    for device in devices:
        name = device["name"]
        for lane in device["lanes"]:
            height = _KERNEL if lane["kind"] == "kernel" else _COPY
            lanes.append(_Lane(name, lane["name"], top, height, lane["picture"]))
            top, name = top + height + _SPACE, ""
        top += 8
    return lanes, top


def _bar(state: dict[str, Any], top: int, span: int) -> dict[str, Any]:
    """A device's time as a row of rectangles."""
    parts, x = [], 0.0
    for part in state["parts"]:
        width = part["share"] * span
        if width > 0:
            parts.append({"x": x, "width": width, "colour": _STATE_COLOURS[part["css"]]})
        x += width
    return {"name": state["name"], "use": state["use"], "top": top, "parts": parts}


def _states_legend(states: list[dict[str, Any]]) -> list[Colour]:
    rows = panels.states_legend(states)
    return [Colour(f"f-{_STATE_COLOURS[row['css']]}", row["name"]) for row in rows]


def _place_legend(entries: list[Colour], top: int) -> tuple[list[dict[str, Any]], int]:
    """Entries side by side, in as many lines as they need; and the picture's height."""
    placed, x = [], 10.0
    for entry in entries:
        width = 28 + _LETTER * len(entry.name)
        if x + width > _WIDTH:
            x, top = 10.0, top + 18
        placed.append({"css": entry.css, "name": entry.name, "x": x, "top": top})
        x += width
    return placed, top + 26
