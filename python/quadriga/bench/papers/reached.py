# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/reached.py: what curves say in one number, beside what is expected.
"""Ratios of simulated rates, each with the least that is expected of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .experiments import EXPERIMENTS, POLICIES

Row = dict[str, Any]

_RANGE = (576, 1152)  # of B, for which divided tasks keep most of the best rate
# What 3 K40 and 16 cores compute together by their rates alone, in GFLOP/s (Wu, section 3.7.4).
_ALL = 3 * 1200 + 160


@dataclass(frozen=True)
class Reached:
    """A ratio that was found, and the least that is expected.

    Attributes
    ----------
    figure, policy, what : str
    value, least : float
    where : str
        The point that decides it.
    """

    figure: str
    policy: str
    what: str
    value: float
    least: float
    where: str


def _lines(rows: Sequence[Row]) -> dict[str, dict[float, float]]:
    found: dict[str, dict[float, float]] = {}
    for row in rows:
        found.setdefault(row["line"], {})[row["x"]] = row["value"]
    return found


def _range(least: float) -> Callable[[str, str, Sequence[Row]], Iterator[Reached]]:
    """The slowest of all B in the range, by any b, over the best rate of all."""

    def reached(figure: str, policy: str, rows: Sequence[Row]) -> Iterator[Reached]:
        best = max(row["value"] for row in rows)
        inside = [
            (rate / best, f"{line}, B = {tile:g}")
            for line, by_tile in _lines(rows).items()
            for tile, rate in by_tile.items()
            if line != "flat" and _RANGE[0] <= tile <= _RANGE[1]
        ]
        if inside:
            value, where = min(inside)
            what = f"B from {_RANGE[0]} to {_RANGE[1]} over the best"
            yield Reached(figure, policy, what, value, least, where)

    return reached


def _cards(figure: str, policy: str, rows: Sequence[Row]) -> Iterator[Reached]:
    """Divided over flat tasks by the best rate of each, and the share of all rates together."""
    best = {
        line: max((rate, order) for order, rate in by_order.items())
        for line, by_order in _lines(rows).items()
    }
    ratios = [
        (rate / best[flat][0], line)
        for line, (rate, _) in best.items()
        if (flat := line.replace("divided", "flat")) in best and flat != line
    ]
    if ratios:
        value, where = min(ratios)
        yield Reached(figure, policy, "divided over flat tasks", value, 1.1, where)
    if "divided, 3 GPUs" in best:
        rate, order = best["divided, 3 GPUs"]
        what = "3 GPUs over 3 x 1.2 + 0.16 TFLOP/s"
        yield Reached(figure, policy, what, rate / _ALL, 0.98, f"order {order:g}")


def _default(figure: str, rows: Sequence[Row]) -> Iterator[Reached]:
    """The default over the best policy, where it is furthest behind."""
    found: dict[tuple[str, float], dict[str, float]] = {}
    for row in rows:
        found.setdefault((row["line"], row["x"]), {})[row["policy"]] = row["value"]
    ratios = [
        (rates["default"] / max(rates.values()), f"{line}, {x:g} {EXPERIMENTS[figure].x}")
        for (line, x), rates in found.items()
        if len(rates) == len(POLICIES)
    ]
    if ratios:
        value, where = min(ratios)
        yield Reached(figure, "default", "the default over the best policy", value, 0.97, where)


_OF_FIGURES: dict[str, Callable[[str, str, Sequence[Row]], Iterator[Reached]]] = {
    "wu-3.9-16K": _range(0.8),
    "wu-3.9-48K": _range(0.9),
    "wu-3.10": _cards,
}


def reached(rows: Sequence[Row]) -> list[Reached]:
    """All ratios of some runs.

    Parameters
    ----------
    rows : sequence of dict
        As `running.run` yields them.
    """
    found: list[Reached] = []
    for figure, experiment in EXPERIMENTS.items():
        of_figure = [row for row in rows if row["figure"] == figure]
        if figure in _OF_FIGURES:
            for policy in POLICIES:
                of_policy = [row for row in of_figure if row["policy"] == policy]
                if of_policy:
                    found += _OF_FIGURES[figure](figure, policy, of_policy)
        if not experiment.host_gib:
            found += _default(figure, of_figure)
    return found
