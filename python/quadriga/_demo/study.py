# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/study.py: the demo from its data to its findings.
"""Learns from more and more points, compares, accepts or not, and writes report and picture."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .. import report
from ..machine import Machine
from ..report import formats
from . import model as models
from . import options as asked
from . import picture, solver, terrain
from .check import Check
from .telling import Teller
from .terrain import Floats

#: How far a solution may be from solving its system, normwise.
MOST_BACKWARD_ERROR = 1e-14
#: How far predictions may be from SciPy's, in standard deviations of the heights.
MOST_DIFFERENCE = 1e-8


class Study:
    """One run of the demo; `run` does everything in order."""

    def __init__(self, options: asked.Options, teller: Teller) -> None:
        self._options = options
        self._teller = teller
        self._land = terrain.load()
        self.count = asked.points_of(options.points, self._land.heights.size)
        self._points = self._land.points
        self._heights = self._land.heights.ravel()
        self._split = terrain.split(self._heights.size, self.count, options.seed)
        self._machine = Machine.parse(options.devices)
        self._setting = solver.Setting(options.devices, options.spill, options.tile, options.policy)
        options.output.mkdir(parents=True, exist_ok=True)

    def run(self, sizes: list[int]) -> dict[str, Any]:
        """What was found, for people's eyes through the teller, and as plain numbers."""
        self._teller.begin(self._land, self._split)
        with self._teller.progress("trying whether the factor fits"):
            solver.check_fit(self._setting, self.count)
        self._model = self._choose_model()
        self._teller.setting(self._model, self._machine, self.count, self._options.spill)
        runs, results = [], []
        with self._teller.table():
            for count in sizes:
                runs.append(self._learn(count, count == sizes[-1]))
                results.append(self._result(runs[-1]))
                self._teller.row(runs[-1], results[-1].rmse)
        checks = self._checks(runs)
        facts = self._report()
        self._teller.last(runs[-1], facts)
        self._teller.checks(checks)
        picture.draw(self._file("kriging.png"), self._land, results, self._caption(runs[-1]))
        return self._findings(runs, results, checks, facts)

    def _file(self, name: str) -> Path:
        return self._options.output / name

    def _choose_model(self) -> models.Model:
        """By likelihood on a subset, less what the user states."""
        given = self._options
        stated = (given.length_scale, given.deviation, given.nugget)
        if all(each is not None for each in stated):
            length_scale, deviation, nugget = (float(each or 0) for each in stated)
            return models.Model(length_scale, deviation**2, nugget)
        learned = self._split.learned
        with self._teller.progress("choosing the model by likelihood"):
            fitted = models.fit(self._points[learned], self._heights[learned], given.seed)
        return fitted.replaced(*stated)

    def _learn(self, count: int, is_last: bool) -> solver.Run:
        chosen = self._split.learned[:count]
        with self._teller.progress(f"{count:,} points") as progress:
            return solver.krige(
                self._setting,
                self._model,
                self._points[chosen],
                self._heights[chosen],
                self._points,
                self._file("trace.json") if is_last else None,
                progress,
            )

    def _result(self, run: solver.Run) -> picture.Result:
        held_out = self._split.held_out
        misses = run.predicted[held_out] - self._heights[held_out]
        grid = run.predicted.copy()
        known = self._split.learned[: run.points]
        grid[known] = self._heights[known]
        rmse = float(np.sqrt(np.mean(misses**2)))
        return picture.Result(run.points, rmse, grid.reshape(self._land.heights.shape))

    def _checks(self, runs: list[solver.Run]) -> list[Check]:
        worst = max(runs, key=lambda run: run.backward_error)
        checks = [
            Check(
                f"backward error, largest of {len(runs)} (at {worst.points:,} points)",
                worst.backward_error,
                MOST_BACKWARD_ERROR,
            )
        ]
        same = [run for run in runs if run.points <= asked.REFERENCE_POINTS][-1]
        chosen = self._split.learned[: same.points]
        with self._teller.progress(f"the same by SciPy at {same.points:,} points"):
            expected: Floats = models.reference(
                self._model, self._points[chosen], self._heights[chosen], self._points
            )
        difference = np.abs(same.predicted - expected).max() / self._heights.std()
        name = f"largest difference from SciPy at {same.points:,} points, in standard deviations"
        return [*checks, Check(name, float(difference), MOST_DIFFERENCE)]

    def _report(self) -> dict[str, Any]:
        trace = report.load(self._file("trace.json"))
        report.write_report(trace.path, self._file("report.html"))
        return report.summary(trace)

    def _caption(self, run: solver.Run) -> str:
        devices = self._machine.devices
        sizes = {formats.size(each.memory_bytes) for each in devices if each.memory_bytes}
        each = f" of {sizes.pop()} each" if len(sizes) == 1 else ""
        return (
            f"Kriging, Matérn 3/2. {run.points:,} × {run.points:,} covariances"
            f" ({formats.size(8 * run.points**2)}), computed tile by tile on"
            f" {formats.plural(len(devices), 'device')}{each}."
            " Jacksboro fault, Tennessee: SRTM, public domain."
        )

    def _findings(
        self,
        runs: list[solver.Run],
        results: list[picture.Result],
        checks: list[Check],
        facts: dict[str, Any],
    ) -> dict[str, Any]:
        names = ("kriging.png", "report.html", "trace.json")
        return {
            "accepted": all(check.passed for check in checks),
            "checks": [asdict(check) | {"passed": check.passed} for check in checks],
            "devices": self._options.devices,
            "model": asdict(self._model),
            "held_out": len(self._split.held_out),
            "runs": [
                {
                    "points": run.points,
                    "rmse": result.rmse,
                    "backward_error": run.backward_error,
                    "seconds": run.seconds,
                    "flops_per_second": run.flops_per_second,
                    "tile": run.tile,
                    "counters": run.counters.as_dict(),
                }
                for run, result in zip(runs, results, strict=True)
            ],
            "bound": facts["bound"],
            "overlap": facts["overlap"],
            "files": {name: str(self._file(name)) for name in names},
        }
