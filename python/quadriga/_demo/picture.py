# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/picture.py: the demo's picture: truth, prediction, error, RMSE.
"""One PNG: three maps of the same land on the same scales, close-ups, and RMSE against points."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LightSource, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .terrain import Floats, Terrain

INK, QUIET, PAPER = "#22282e", "#6b757e", "#ffffff"
ACCENT = "#b5482a"
#: Valley green to bare ridge; light enough at both ends that the shading stays visible.
LAND = LinearSegmentedColormap.from_list(
    "land", ["#3f6b57", "#6f9668", "#a9b97c", "#dccf94", "#c9a06b", "#a3744f", "#f2ece4"]
)
#: Too low is blue, too high is red, right is nearly white.
ERROR = LinearSegmentedColormap.from_list(
    "error", ["#0b3c6f", "#3f83b8", "#a9cde2", "#f7f7f4", "#f3b391", "#cf5246", "#7a0f26"]
)
MOST_ERROR = 60.0  # Metres where the colours of the error end.
DPI = 100
WIDTH, HEIGHT = 1500, 1006
STYLE: Any = {
    "font.family": "DejaVu Sans", "font.size": 10.5, "text.color": INK, "axes.labelcolor": QUIET,
    "xtick.color": QUIET, "ytick.color": QUIET, "axes.edgecolor": "#c4cacf",
}  # fmt: skip


@dataclass(frozen=True)
class Result:
    """What one number of learned points gave."""

    points: int
    rmse: float
    map: Floats  # Heights of the whole grid: predicted, and learned where they were learned.


@dataclass(frozen=True)
class Window:
    """A part of the grid shown larger."""

    row: int
    column: int
    rows: int
    columns: int

    def of(self, grid: Floats) -> Floats:
        return grid[self.row : self.row + self.rows, self.column : self.column + self.columns]


#: Where the fault's straight scarp meets the plateau that streams have cut.
CLOSE_UP = Window(100, 140, 84, 130)


def draw(path: Path, terrain: Terrain, results: Sequence[Result], caption: str) -> None:
    """Writes the picture; ``results`` by rising number of points, the last one on the maps."""
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=PAPER)
        _Picture(figure, terrain, results).draw(caption)
        _save(figure, path)


class _Picture:
    """Places by pixels from the upper left corner, so that one cell of the grid is one pixel."""

    def __init__(self, figure: Figure, terrain: Terrain, results: Sequence[Result]) -> None:
        self._figure = figure
        self._terrain = terrain
        self._results = results
        self._heights = Normalize(*np.percentile(terrain.heights, [0.5, 99.8]))
        self._errors = Normalize(-MOST_ERROR, MOST_ERROR)
        width, height = terrain.extent
        self._map_width = 456
        self._map_height = round(self._map_width * height / width)

    def draw(self, caption: str) -> None:
        truth, last = self._terrain.heights, self._results[-1]
        share = last.points / truth.size
        top, gap = 74, 33
        lefts = [33 + index * (self._map_width + gap) for index in range(3)]
        titles = [
            ("The land as surveyed", f"{truth.size:,} heights from orbit"),
            (
                f"Predicted from {last.points:,} of them",
                f"{100 * share:.1f} % of the heights known",
            ),
            ("Prediction minus survey", f"{last.rmse:.1f} m root mean square where held out"),
        ]
        pictures = [self._shaded(truth), self._shaded(last.map), self._error(last.map)]
        for left, title, picture in zip(lefts, titles, pictures, strict=True):
            self._map(left, top, title, picture)
        below = top + self._map_height + 12
        self._height_bar(lefts[0], below, lefts[1] + self._map_width - lefts[0])
        self._error_bar(lefts[2], below, self._map_width)
        self._lower(below + 92, lefts)
        self._text(33, HEIGHT - 22, caption, size=9, color=QUIET, va="center")

    def _lower(self, top: int, lefts: list[int]) -> None:
        chart_left, chart_width = lefts[2] + 52, self._map_width - 52
        self._text(lefts[2], top, "Error where held out", weight="bold", va="baseline")
        self._text(lefts[2], top + 18, "root mean square, metres", color=QUIET, va="baseline")
        self._chart(self._axes(chart_left, top + 40, chart_width, 222))
        shown = [("As surveyed", self._terrain.heights)]
        shown += [(f"{each.points:,} points", each.map) for each in _few(self._results)]
        width = (lefts[1] + self._map_width - lefts[0] - 14 * (len(shown) - 1)) // len(shown)
        self._text(
            lefts[0], top, "The framed part: more points, more detail", weight="bold",
            va="baseline",
        )  # fmt: skip
        for index, (title, grid) in enumerate(shown):
            left = lefts[0] + index * (width + 14)
            self._text(left, top + 18, title, color=QUIET, va="baseline")
            axes = self._axes(left, top + 40, width, 222)
            self._close_up(axes, grid, width / 222)

    def _axes(self, left: float, top: float, width: float, height: float) -> Axes:
        return self._figure.add_axes(
            (left / WIDTH, 1 - (top + height) / HEIGHT, width / WIDTH, height / HEIGHT)
        )

    def _text(self, x: float, y: float, text: str, **how: Any) -> None:
        self._figure.text(x / WIDTH, 1 - y / HEIGHT, text, **how)

    def _shaded(self, grid: Floats) -> Floats:
        light = LightSource(azdeg=315, altdeg=42)
        return np.asarray(
            light.shade(
                grid, cmap=LAND, norm=self._heights, blend_mode="soft", vert_exag=2.4,
                dx=self._terrain.metres_per_column, dy=self._terrain.metres_per_row, fraction=1.15,
            )
        )  # fmt: skip

    def _error(self, grid: Floats) -> Floats:
        return np.asarray(ERROR(self._errors(grid - self._terrain.heights)))

    def _map(self, left: int, top: int, title: tuple[str, str], picture: Floats) -> None:
        self._text(left, top - 30, title[0], size=15, weight="bold", va="baseline")
        self._text(left, top - 10, title[1], size=11, color=QUIET, va="baseline")
        axes = self._axes(left, top, self._map_width, self._map_height)
        axes.imshow(picture, aspect="auto", interpolation="antialiased")
        _frame(axes)
        window = CLOSE_UP
        axes.add_patch(
            Rectangle(
                (window.column - 0.5, window.row - 0.5), window.columns, window.rows,
                fill=False, edgecolor=INK, linewidth=1,
            )
        )  # fmt: skip
        self._scale_bar(axes, 5)

    def _scale_bar(self, axes: Axes, kilometres: int) -> None:
        rows, columns = self._terrain.heights.shape
        length = kilometres * 1000 / self._terrain.metres_per_column
        x, y = columns * 0.035, rows * 0.955
        axes.plot([x, x + length], [y, y], color=PAPER, linewidth=5, solid_capstyle="butt")
        axes.plot([x, x + length], [y, y], color=INK, linewidth=2.5, solid_capstyle="butt")
        label = axes.text(
            x + length / 2, y - rows * 0.014, f"{kilometres} km", ha="center", va="bottom", size=10
        )
        import matplotlib.patheffects as effects

        label.set_path_effects([effects.withStroke(linewidth=2.5, foreground=PAPER)])

    def _close_up(self, axes: Axes, grid: Floats, aspect: float) -> None:
        window = CLOSE_UP
        axes.imshow(window.of(self._shaded(grid)), aspect="auto", interpolation="bicubic")
        cell = self._terrain.metres_per_column / self._terrain.metres_per_row
        wanted = window.rows * aspect / cell
        middle = window.columns / 2
        axes.set_xlim(middle - wanted / 2 - 0.5, middle + wanted / 2 - 0.5)
        _frame(axes)

    def _height_bar(self, left: int, top: int, width: int) -> None:
        bar = self._bar(left, top, width, LAND, self._heights)
        bar.set_label("height above the sea in metres, the same colours in both maps", size=10)

    def _error_bar(self, left: int, top: int, width: int) -> None:
        bar = self._bar(left, top, width, ERROR, self._errors)
        ends = [MOST_ERROR * part for part in (-1, -0.5, 0, 0.5, 1)]
        bar.set_ticks(
            ends, labels=[f"{each:+.0f}".replace("-", "−") if each else "0" for each in ends]
        )
        bar.set_label("metres: too low is blue, too high is red", size=10)

    def _bar(self, left: int, top: int, width: int, cmap: Any, norm: Normalize) -> Colorbar:
        axes = self._axes(left, top, width, 12)
        bar = self._figure.colorbar(ScalarMappable(norm, cmap), cax=axes, orientation="horizontal")
        bar.outline.set_visible(False)
        axes.tick_params(length=0, labelsize=10)
        return bar

    def _chart(self, axes: Axes) -> None:
        points = [each.points for each in self._results]
        errors = [each.rmse for each in self._results]
        axes.plot(points, errors, color=ACCENT, linewidth=2.2, marker="o", markersize=7)
        for x, y in zip(points, errors, strict=True):
            axes.annotate(
                f"{y:.1f} m", (x, y), xytext=(8, 7), textcoords="offset points", color=INK,
                size=11.5, weight="bold",
            )  # fmt: skip
        axes.set_ylim(0, max(errors) * 1.22)
        axes.set_xscale("log")
        axes.set_xlim(points[0] * 0.8, points[-1] * 1.45)
        axes.set_xticks(points, labels=[f"{each:,}" for each in points])
        axes.minorticks_off()
        axes.grid(axis="y", color="#e4e8eb", linewidth=1)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, labelsize=10)
        axes.set_xlabel("points learned", size=10)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)


def _few(results: Sequence[Result]) -> list[Result]:
    """The first, a middle one and the last."""
    places = sorted({0, len(results) // 2, len(results) - 1})
    return [results[place] for place in places]


def _frame(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_edgecolor("#8b949b")
        spine.set_linewidth(0.8)


def _save(figure: Figure, path: Path) -> None:
    """As a PNG of 256 colours, which takes a third of the bytes and looks the same."""
    from PIL import Image

    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    with Image.open(buffer) as image:
        small = image.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, kmeans=3)
        small.save(path, optimize=True)
