# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/world.py: one page of all ranks of a world, with messages as arrows.
"""The report on several ranks: their kernels and messages along one time line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import formats
from ..analysis.world import World, join
from ..trace.trace import KERNEL, Message, Trace
from . import drawing
from .page import environment

_WIDTH = 1000  # of the picture, in its own units
_BAND = 46  # of a rank
_MOST_ARROWS = 2000
_MOST_BARS = 4000  # a rank


def to_world_html(traces: Sequence[Trace]) -> str:
    """A page on the traces of several ranks, which draws the messages of their tasks as arrows.

    Parameters
    ----------
    traces : sequence of Trace
        One of each rank that is to be shown.

    Returns
    -------
    str
        One HTML page without external resources.

    Raises
    ------
    TraceError
        If they aren't traces of the ranks of one world, with messages of tasks.
    """
    world = join(traces)
    arrows = sorted(world.arrows, key=lambda arrow: -arrow.bytes)[:_MOST_ARROWS]
    text = (
        environment()
        .get_template("world.html")
        .render(
            bands=[_band(world, place, rank) for place, rank in enumerate(world.ranks)],
            arrows=[_arrow(world, each) for each in sorted(arrows, key=lambda arrow: arrow.start)],
            left_out=len(world.arrows) - len(arrows),
            unmatched=world.unmatched,
            rows=[_row(rank, trace) for rank, trace in world.ranks.items()],
            ticks=[
                (percent * _WIDTH / 100, name) for percent, name, *_ in drawing.ticks(world.end, 8)
            ],
            width=_WIDTH,
            band=_BAND,
            height=_BAND * len(world.ranks),
            seconds=world.end / 1e9,
        )
    )
    return formats.printable(text)


def _at(world: World, time: int) -> float:
    return round(time / world.end * _WIDTH, 2)


def _band(world: World, place: int, rank: int) -> dict[str, Any]:
    trace, offset = world.ranks[rank], world.offsets[rank]
    kernels = [
        (_at(world, start + offset), _at(world, end + offset))
        for start, end in _busy(trace, world.end // (2 * _WIDTH))
    ]
    bars = [_bar(world, offset, each) for each in trace.messages[:_MOST_BARS]]
    return {"rank": rank, "top": place * _BAND, "kernels": kernels, "bars": bars}


def _busy(trace: Trace, gap: int) -> list[tuple[int, int]]:
    """When any kernel ran; gaps that nobody could see are closed."""
    spans = trace.spans.take(trace.spans.kind == KERNEL)
    merged: list[tuple[int, int]] = []
    for index in np.argsort(spans.start, kind="stable").tolist():
        start, end = int(spans.start[index]), int(spans.end[index])
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _bar(world: World, offset: int, message: Message) -> dict[str, Any]:
    kind = message.name.split()[0]
    seconds = (message.end - message.start) / 1e9
    tag = f", tag {message.tag}" if kind in ("send", "recv") else ""
    ended = ", failed" if message.failed else ""
    return {
        "from": _at(world, message.start + offset),
        "to": _at(world, message.end + offset),
        "css": kind if kind in ("send", "recv") else "collective",
        "title": f"{message.name}{tag}: {formats.size(message.bytes)}, "
        f"{formats.time(seconds)}{ended}",
    }


def _arrow(world: World, arrow: Any) -> dict[str, Any]:
    places = {rank: place for place, rank in enumerate(world.ranks)}
    source, target = places[arrow.source], places[arrow.target]
    down = target > source
    return {
        "x1": _at(world, arrow.start),
        "y1": source * _BAND + (_BAND - 6 if down else 24),
        "x2": _at(world, arrow.end),
        "y2": target * _BAND + (24 if down else _BAND - 6),
        "title": f"{arrow.source} to {arrow.target}, tag {arrow.tag}: {formats.size(arrow.bytes)}, "
        f"{formats.time((arrow.end - arrow.start) / 1e9)}",
    }


def _row(rank: int, trace: Trace) -> dict[str, Any]:
    good = [each for each in trace.messages if not each.failed]
    sent = [each for each in good if each.name.startswith("send")]
    received = [each for each in good if each.name.startswith("recv")]
    return {
        "rank": rank,
        "path": trace.path,
        "tasks": sum(device["tasks"] for device in trace.counters["devices"]),
        "sent": len(sent),
        "bytes_sent": sum(each.bytes for each in sent),
        "received": len(received),
        "bytes_received": sum(each.bytes for each in received),
        "collectives": len(good) - len(sent) - len(received),
        "failed": len(trace.messages) - len(good),
    }
