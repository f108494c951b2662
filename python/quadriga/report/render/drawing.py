# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/drawing.py: time lines and areas as small SVG.
"""Pictures whose size depends on the pixels of a screen, not on the number of events.

A lane (one stream) with few events is drawn event by event. Otherwise its time is cut into buckets
and each bucket shows, stacked, which part of it every kind of operation took. All pictures have
``WIDTH`` units across and are stretched to the page, so they carry no text of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from .. import formats
from ..analysis.intervals import Integers, coverage
from ..trace.trace import KERNEL, Spans

WIDTH = 20_000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Detail:
    """How many shapes a page may have."""

    exact_in_all: int  # kernels, or copies, drawn one by one
    exact_a_lane: int
    points_in_all: int  # of lanes drawn by buckets: about 12 bytes each
    least_buckets: int  # of a lane; and of any other picture
    most_buckets: int
    close_up_spans: int
    zones_each: int  # fields with a hover text, in a picture drawn by buckets
    zones_in_all: int  # of all pictures of a kind

    def zones(self, pictures: int) -> int:
        """How many of them each of some pictures may have."""
        return min(max(self.zones_in_all // max(pictures, 1), 5), self.zones_each)


FULL = Detail(6_000, 2_000, 120_000, 240, 1600, 2_500, 100, 1_000_000)
SMALL = Detail(250, 250, 3_000, 100, 400, 50, 20, 100)


def svg(body: str, height: int, kind: str = "") -> Markup:
    """A picture that fills its box in both directions."""
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none"'
        f' aria-hidden="true">{body}</svg>'
    )


def edges_between(start: int, end: int, buckets: int) -> Integers:
    """Borders of buckets, in nanoseconds."""
    return np.linspace(start, max(end, start + 1), buckets + 1).round().astype(np.int64)


def exact_lane(
    spans: Spans,
    window: tuple[int, int],
    classes: Sequence[str],
    describe: Callable[[Spans, int], str] | None,
    height: int = 10,
) -> str:
    """One rectangle an event; ``classes`` says the colour of each, ``describe`` its hover text."""
    start, end = window
    scale = WIDTH / max(end - start, 1)
    left = np.clip((spans.start - start) * scale, 0, WIDTH)
    right = np.clip((spans.end - start) * scale, 0, WIDTH)
    shapes = []
    for row, (x, far) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        width = max(far - x, 2)
        title = f"<title>{escape(describe(spans, row))}</title>" if describe else ""
        shapes.append(
            f'<rect class="{classes[row]}" x="{x:.0f}" width="{width:.0f}" height="{height}">'
            f"{title}</rect>"
        )
    return "".join(shapes)


def bucket_lane(
    layers: Sequence[tuple[str, str, Spans]], edges: Integers, most_zones: int, height: int = 100
) -> str:
    """Stacked shares of each bucket; a layer is its colour's class, its name and its events."""
    widths = np.maximum(np.diff(edges), 1)
    shares = [coverage(s.start, s.end, edges) / widths for _, _, s in layers]
    top = np.zeros(len(widths))
    shapes = []
    for (colour, _, _), part in zip(layers, shares, strict=True):
        top = top + part
        shapes.append(f'<path class="{colour}" d="{_steps(top, height)}"/>')
    shapes.reverse()  # the whole stack first, each lower layer painted over it
    if most_zones == 0:
        return "".join(shapes)
    names = [name for _, name, _ in layers]
    fields = zones(edges, height, lambda a, b: _shares_text(names, shares, a, b), most_zones)
    return "".join(shapes) + fields


def _shares_text(names: Sequence[str], shares: Sequence[Floats], first: int, last: int) -> str:
    means = [float(part[first:last].mean()) for part in shares]
    text = f"{formats.share(min(sum(means), 1))} busy"
    parts = sorted(zip(means, names, strict=True), reverse=True)
    return text + "".join(f"; {name} {formats.share(mean)}" for mean, name in parts if mean > 0.001)


def area(values: Floats, height: int, colour: str) -> str:
    """A filled curve of shares between 0 and 1, in steps."""
    return f'<path class="{colour}" d="{_steps(values, height)}"/>'


def _steps(values: Floats, height: int) -> str:
    """The outline of a bar chart without gaps; neighbours of one height become one bar."""
    levels = (height - np.clip(values, 0, 1) * height).round().astype(int)
    changes = np.flatnonzero(np.diff(levels)) + 1
    lefts = np.concatenate(([0], changes, [len(levels)])) * WIDTH // len(levels)
    steps = [f"V{levels[0]}"]
    for x, level in zip(lefts[1:-1].tolist(), levels[changes].tolist(), strict=True):
        steps.append(f"H{x}V{level}")
    return f"M0 {height}{''.join(steps)}H{WIDTH}V{height}Z"


def zones(edges: Integers, height: int, text: Callable[[int, int], str], most: int) -> str:
    """Invisible fields that tell, on hover, what ``text`` says of a run of buckets."""
    count = len(edges) - 1
    borders = np.unique(np.linspace(0, count, min(most, count) + 1).astype(int)).tolist()
    shapes = []
    for first, last in pairwise(borders):
        x, far = first * WIDTH // count, last * WIDTH // count
        when = f"{formats.time(edges[first] / 1e9)} to {formats.time(edges[last] / 1e9)}"
        shapes.append(
            f'<rect class="zone" x="{x}" width="{far - x}" height="{height}">'
            f"<title>{escape(when)}: {escape(text(first, last))}</title></rect>"
        )
    return "".join(shapes)


def ticks(end: int, wanted: int, start: int = 0) -> list[tuple[float, str]]:
    """Round times of a scale, as per cent of its width and text.

    Examples
    --------
    >>> ticks(28_900_000_000, 6)[1:3]
    [(17.301038062283737, '5 s'), (34.602076124567475, '10 s')]
    """
    span = max(end - start, 1)
    rough = span / wanted
    power = 10.0 ** np.floor(np.log10(rough))
    step = float(power * min((m for m in (1, 2, 5, 10) if m * power >= rough), default=10))
    step = max(step, 1.0)
    unit, name = next((u, n) for u, n in _UNITS if span >= u or u == 1)
    places = max(0, int(np.ceil(np.log10(unit / step) - 1e-9)))
    first = int(np.ceil(start / step))
    found = []
    for index in range(first, int(end / step) + 1):
        at = index * step
        found.append(((at - start) / span * 100, f"{at / unit:,.{places}f} {name}"))
    return found


_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def describe_span(labels: Sequence[str]) -> Callable[[Spans, int], str]:
    """What hovering over one event says."""

    def describe(spans: Spans, row: int) -> str:
        name = labels[int(spans.name[row])]
        length, start = int(spans.duration[row]) / 1e9, int(spans.start[row]) / 1e9
        text = f"{name}: {formats.time(length)} from {formats.time(start)}"
        if spans.kind[row] == KERNEL:
            return text + (f", task {spans.task[row]}" if spans.task[row] >= 0 else "")
        tile = f", tile {spans.tile[row]}" if spans.tile[row] >= 0 else ""
        count = int(spans.bytes[row])
        speed = f" at {formats.rate(count / length)}" if length > 0 else ""
        return f"{text}, {labels[int(spans.why[row])]}{tile}, {formats.size(count)}{speed}"

    return describe
