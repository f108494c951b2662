# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/timeline.py: the time line by device, whole and in close-ups.
"""Lanes, their colours and the windows to look at more closely."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from .. import formats
from ..analysis.analysis import Analysis
from ..analysis.counters import kind_of_stream
from ..trace.trace import COPY, KERNEL, WHYS, Spans
from . import drawing

_KERNEL_COLOURS = 6
_OUTLINED = drawing.WIDTH // 300  # narrower shapes would vanish behind their outlines
_CLOSE_UP_KERNELS = 40
_ORDER = ("panel", "compute", "copy_in", "peer_in", "copy_out")
_NAMES = {"copy_in": "copy in", "copy_out": "copy out", "peer_in": "from devices"}
#: What copies are for, by the reason that the trace gives.
MEANINGS = {
    "stage": "operands that a task waits for",
    "prefetch": "operands, ahead of their tasks",
    "write_back": "results that the program asked for",
    "evict": "results, to make room for other operands",
    "final": "results that no later task changes",
}


@dataclass(frozen=True)
class Lane:
    """One stream of one device."""

    device: str
    name: str
    kind: str  # "kernel" or "copy": sets its height
    spans: Spans


@dataclass(frozen=True)
class Colour:
    """An entry of the legend."""

    css: str
    name: str
    meaning: str = ""


class Timeline:
    """Everything that the page shows along time, stream by stream.

    Parameters
    ----------
    run : Analysis
    detail : Detail
        How many shapes there may be.
    hover : bool
        Whether shapes say what they are when pointed at.
    """

    def __init__(
        self, run: Analysis, detail: drawing.Detail = drawing.FULL, hover: bool = True
    ) -> None:
        self.run = run
        self.detail = detail if hover else replace(detail, zones_each=0)
        self.labels = run.trace.labels
        self.describe = drawing.describe_span(self.labels) if hover else None
        self._kernel_colour = self._assign_colours()
        self.lanes = self._find_lanes()

    def _assign_colours(self) -> dict[str, str]:
        names = [row["name"] for row in self.run.kernels()]
        return {n: f"k{i}" if i < _KERNEL_COLOURS else "kx" for i, n in enumerate(names)}

    def kernel_css(self, name: str) -> str:
        return self._kernel_colour.get(name, "kx")

    def legend(self) -> dict[str, list[Colour]]:
        """Colours in use, of kernels and of copies."""
        kernels = [Colour(css, n) for n, css in self._kernel_colour.items() if css != "kx"]
        others = len(self._kernel_colour) - len(kernels)
        if others:
            kernels.append(Colour("kx", formats.plural(others, "other kernel")))
        found = {row["why"] for row in self.run.copies()}
        copies = [
            Colour(why_css(why), why.replace("_", "-"), MEANINGS[why])
            for why in WHYS
            if why in found
        ]
        if found - set(WHYS):
            copies.append(Colour("cx", "other copies"))
        return {"kernels": kernels, "copies": copies}

    def _find_lanes(self) -> list[Lane]:
        trace, lanes = self.run.trace, []
        names = {0: trace.processes.get(0, "host")} | trace.devices
        for pid in sorted(names):
            spans = self.run.spans_of(pid)
            own = []
            for tid in sorted(set(spans.tid.tolist()) | self._idle_streams(pid)):
                stream = spans.take(spans.tid == tid)
                kind = kind_of_stream(trace, pid, tid, stream)
                place = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
                shown = trace.streams.get((pid, tid), kind)
                copies = (stream.kind == COPY).all() if len(stream) else kind in _NAMES
                height = "copy" if copies else "kernel"
                lane = Lane(names[pid], _NAMES.get(shown, shown), height, stream)
                own.append((place, tid, lane))
            lanes += [lane for _, _, lane in sorted(own, key=lambda item: item[:2])]
        return lanes

    def _idle_streams(self, pid: int) -> set[int]:
        """Streams without events whose like another device used: shown, to align devices."""
        trace, spans = self.run.trace, self.run.trace.spans
        pairs = set(zip(spans.pid.tolist(), spans.tid.tolist(), strict=True))
        used = {trace.streams.get(pair) for pair in pairs} - {None}
        return {tid for (own, tid), name in trace.streams.items() if own == pid and name in used}

    def whole(self) -> list[dict[str, Any]]:
        """The run from start to end: devices, each with its lanes."""
        window = (0, self.run.trace.end)
        exact = self._lanes_drawn_exactly()
        layers = sum(len(self._layers(lane)) for i, lane in enumerate(self.lanes) if i not in exact)
        wanted = self.detail.points_in_all // max(layers, 1)
        buckets = int(np.clip(wanted, self.detail.least_buckets, self.detail.most_buckets))
        edges = drawing.edges_between(*window, buckets)
        zones = self.detail.zones(len(self.lanes) - len(exact))
        drawn = []
        for index, lane in enumerate(self.lanes):
            if index in exact:
                picture = self._exact(lane, window)
            else:
                body = drawing.bucket_lane(self._layers(lane), edges, zones)
                picture = drawing.svg(body, 100)
            drawn.append((lane, picture))
        return _by_device(drawn)

    def _lanes_drawn_exactly(self) -> set[int]:
        """All lanes of kernels or none, so that devices compare; the same for those of copies."""
        chosen: set[int] = set()
        for kind in ("kernel", "copy"):
            alike = [i for i, lane in enumerate(self.lanes) if lane.kind == kind]
            counts = [len(self.lanes[i].spans) for i in alike]
            in_all, longest = sum(counts), max(counts, default=0)
            if in_all <= self.detail.exact_in_all and longest <= self.detail.exact_a_lane:
                chosen.update(alike)
        return chosen

    @property
    def aggregated(self) -> bool:
        return len(self._lanes_drawn_exactly()) < len(self.lanes)

    def close_ups(self) -> list[dict[str, Any]]:
        """Start, middle and end, near enough to see single kernels; none if the whole is."""
        end = self.run.trace.end
        most = max((len(lane.spans) for lane in self.lanes if lane.kind == "kernel"), default=0)
        if most < 4 * _CLOSE_UP_KERNELS:
            return []
        width = max(int(end * _CLOSE_UP_KERNELS / most), 1)
        middle = (end - width) // 2
        windows = {"start": 0, "middle": middle, "end": end - width}
        return [self._close_up(name, at, at + width) for name, at in windows.items()]

    def _close_up(self, name: str, start: int, end: int) -> dict[str, Any]:
        shown = [self._cut(lane, start, end) for lane in self.lanes]
        most = self.detail.close_up_spans
        while sum(len(lane.spans) for lane in shown) > most and end - start > 1000:
            middle = start if name == "start" else end if name == "end" else (start + end) // 2
            half = (end - start) // 4
            start, end = max(middle - half, start), min(middle + half, end)
            shown = [self._cut(lane, start, end) for lane in shown]
        drawn = [(lane, self._exact(lane, (start, end))) for lane in shown]
        return {
            "name": name,
            "width": formats.time((end - start) / 1e9),
            "devices": _by_device(drawn),
            "ticks": [tick_row(*tick) for tick in drawing.ticks(end, 3, start)],
        }

    def _cut(self, lane: Lane, start: int, end: int) -> Lane:
        rows = (lane.spans.start < end) & (lane.spans.end > start)
        return Lane(lane.device, lane.name, lane.kind, lane.spans.take(rows))

    def _css(self, spans: Spans) -> list[str]:
        kernels = (spans.kind == KERNEL).tolist()
        names, whys = spans.name.tolist(), spans.why.tolist()
        return [
            self.kernel_css(self.labels[name]) if kernel else why_css(self.labels[why])
            for kernel, name, why in zip(kernels, names, whys, strict=True)
        ]

    def _exact(self, lane: Lane, window: tuple[int, int]) -> Markup:
        body = drawing.exact_lane(lane.spans, window, self._css(lane.spans), self.describe)
        usual = float(np.median(lane.spans.duration)) if len(lane.spans) else 0.0
        wide = usual / (window[1] - window[0]) * drawing.WIDTH >= _OUTLINED
        return drawing.svg(body, 10, "outlined" if wide else "")

    def _layers(self, lane: Lane) -> list[tuple[str, str, Spans]]:
        """The lane's events by kind, those of one colour together."""
        spans = lane.spans
        keys = np.where(spans.kind == KERNEL, spans.name, -1 - spans.why)
        found: dict[str, tuple[list[str], list[int]]] = {}
        for key in np.unique(keys).tolist():
            name = self.labels[key] if key >= 0 else self.labels[-1 - key]
            css = self.kernel_css(name) if key >= 0 else why_css(name)
            names, members = found.setdefault(css, ([], []))
            names.append(name.replace("_", "-"))
            members.append(key)
        return [
            (css, names[0] if len(names) == 1 else "others", spans.take(np.isin(keys, members)))
            for css, (names, members) in sorted(found.items())
        ]


def tick_row(percent: float, text: str, zoom: int = 1) -> dict[str, Any]:
    """A mark of a time axis, which appears when the time line is `zoom` times as wide."""
    return {"percent": percent, "text": text, "zoom": zoom}


def why_css(why: str) -> str:
    """The class of a copy's colour."""
    return f"c-{why}" if why in WHYS else "cx"


def _by_device(drawn: list[tuple[Lane, Markup]]) -> list[dict[str, Any]]:
    devices: dict[str, list[dict[str, Any]]] = {}
    for lane, picture in drawn:
        row = {"name": lane.name, "kind": lane.kind, "picture": picture}
        devices.setdefault(lane.device, []).append(row)
    return [{"name": name, "lanes": lanes} for name, lanes in devices.items()]
