# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/running.py: runs of the figures, each simulated once.
"""Simulates the runs of figures, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import program
from .experiments import points

Row = dict[str, Any]


def _simulated(words: dict[str, object], policy: str) -> Row:
    machine = program.package() / "machines" / "papers" / f"{words['machine']}.json"
    given = words | {"machine": machine, "policy": "" if policy == "default" else policy}
    flat = [part for key, value in given.items() for part in (f"--{key}", value)]
    (row,) = program.run(program.OURS, "papers", *flat)
    return row


def run(names: tuple[str, ...], quick: bool, note: Callable[[str], None]) -> Iterator[Row]:
    """Simulate figures.

    Parameters
    ----------
    names : tuple of str
        Of experiments; empty: all.
    quick : bool
        Fewer and smaller runs.
    note : callable
        Called with what is being simulated.

    Yields
    ------
    dict
        figure, line, policy, x, value, unit, n, tile, seconds (simulated), host_bytes, tasks.
    """
    wanted = list(points(names, quick))
    known: dict[str, Row] = {}
    for number, (experiment, policy, point) in enumerate(wanted, 1):
        note(f"{number} of {len(wanted)}: {experiment.name}, {point.line}, {policy}")
        tried = []
        for words in point.runs:
            # Two figures may show the same run.
            key = repr((sorted(words.items()), policy))
            if key not in known:
                known[key] = _simulated(words, policy) | {"tile": words["tile"]}
            tried.append(known[key])
        row = max(tried, key=lambda each: each["value"])
        yield {
            "figure": experiment.name,
            "line": point.line,
            "policy": policy,
            "x": point.x,
            "value": experiment.value(row),
            "unit": experiment.unit,
            "n": int(row["n"]),
            "tile": row["tile"],
            "seconds": row["seconds"],
            "host_bytes": int(row["host_bytes"]),
            "tasks": int(row["tasks"]),
        }
