# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/running.py: runs of the figures, each simulated once, on all cores.
"""Simulates the runs of figures, as many at once as there are cores."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from .. import program
from .experiments import Experiment, Point, points
from .kept import Kept

Row = dict[str, Any]
Words = dict[str, object]


def _simulated(words: Words, policy: str) -> Row:
    machine = program.package() / "machines" / "papers" / f"{words['machine']}.json"
    given = words | {"machine": machine, "policy": "" if policy == "default" else policy}
    flat = [part for key, value in given.items() for part in (f"--{key}", value)]
    (row,) = program.run(program.OURS, "papers", *flat)
    return row


def _tasks(words: Words) -> int:
    """How many tasks a run has: what it takes goes by that."""
    tiles = int(str(words["n"])) // int(str(words["tile"]))
    return tiles**3 if words.get("operation") == "gemm" else tiles * (tiles + 1) * (tiles + 2) // 6


class _Runs:
    """Runs whose results are known, and those that are simulated when they are asked for."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Begin no run any more."""
        self._stopped.set()

    def _one(self, words: Words, policy: str) -> Row:
        known = self._kept.find(words, policy)
        if known is None:
            known = _simulated(words, policy)
            self._kept.add(words, policy, known)
        return known | {"tile": words["tile"]}

    def best(self, runs: list[Words], policy: str) -> Row:
        """The best of some tile sizes.

        Small tiles come last, and no more of them once one is slower than the one before: what
        they gain at the ends of a run they have lost to the rate of their kernels by then.
        """
        best: Row | None = None
        for words in sorted(runs, key=lambda each: -int(str(each["tile"]))):
            if self._stopped.is_set():
                break
            row = self._one(words, policy)
            if best is not None and row["value"] < best["value"]:
                break
            best = row
        assert best is not None or self._stopped.is_set()
        return best or {}


def _shown(experiment: Experiment, policy: str, point: Point, row: Row) -> Row:
    return {
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


def run(
    names: tuple[str, ...],
    quick: bool,
    progress: Callable[[float], object],
    resume: Path | None = None,
) -> Iterator[Row]:
    """Simulate figures.

    Parameters
    ----------
    names : tuple of str
        Of experiments; empty: all.
    quick : bool
        Fewer and smaller runs.
    progress : callable
        Called with the part that is done, by tasks.
    resume : path, optional
        A file of runs: those in it aren't simulated again, others are added.

    Yields
    ------
    dict
        figure, line, policy, x, value, unit, n, tile, seconds (simulated), host_bytes, tasks.
    """
    wanted = list(points(names, quick))
    runs = _Runs(Kept(resume))
    # Two figures may show the same runs.
    weights: dict[str, int] = {}
    futures: dict[str, Future[Row]] = {}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            keys = []
            for _, policy, point in wanted:
                keys.append(repr((point.runs, policy)))
                if keys[-1] not in futures:
                    futures[keys[-1]] = pool.submit(runs.best, point.runs, policy)
                    weights[keys[-1]] = sum(map(_tasks, point.runs))
            of_future = {future: key for key, future in futures.items()}
            done, shown = 0, 0
            for future in as_completed(of_future):
                future.result()
                done += weights[of_future[future]]
                progress(done / sum(weights.values()))
                while shown < len(wanted) and futures[keys[shown]].done():
                    yield _shown(*wanted[shown], futures[keys[shown]].result())
                    shown += 1
        finally:
            runs.stop()
            pool.shutdown(cancel_futures=True)
