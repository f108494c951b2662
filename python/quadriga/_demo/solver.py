# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/solver.py: kriging on an engine's devices; no matrix exists on the host.
"""Factor, solve, predict and check, with covariances computed where they are needed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import linalg
from ..counters import Counters
from ..engine import Engine
from .model import Model
from .terrain import Floats

#: Called with what is being done and how much of it is done, 0 to 1.
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Setting:
    """Where a run computes."""

    devices: str
    spill: Path | None = None
    tile: int | None = None
    policy: str | None = None

    def engine(self, trace: Path | None = None, pretends: bool = False) -> Engine:
        """One that works, or one that only pretends to, on the virtual clock."""
        return Engine(
            self.devices,
            policy=self.policy,
            trace=trace if trace is not None else False,
            spill=self.spill,
            virtual_clock=pretends,
            compute=not pretends,
        )


@dataclass(frozen=True)
class Run:
    """What one number of points gave, and what it took."""

    points: int
    predicted: Floats
    backward_error: float
    seconds: dict[str, float]  # By phase, and "total".
    tile: int
    counters: Counters

    @property
    def flops_per_second(self) -> float:
        """Of factor and solve, for one right-hand side."""
        order = float(self.points)
        return (order**3 / 3 + 2 * order**2) / (self.seconds["factor"] + self.seconds["solve"])


def check_fit(setting: Setting, points: int) -> None:
    """Raises `TooLarge`, with the figure, if nothing here can hold a factor of so many points.

    The tasks run on the virtual clock without their numbers, in a small part of the run's time.
    """
    with setting.engine(pretends=True) as engine:
        linalg.estimate("cho_solve", points, 1, from_source=True, engine=engine, tile=setting.tile)


def krige(
    setting: Setting,
    model: Model,
    points: Floats,
    heights: Floats,
    wanted: Floats,
    trace: Path | None,
    progress: Progress,
) -> Run:
    """Learns from points and heights, and predicts at the points wanted.

    Raises
    ------
    TooLarge
        If devices and host buffers (or the spill file's disk) can't hold the factor.
    """
    with setting.engine(trace) as engine:
        clock = _Clock()
        work = _Work(engine, setting.tile, model, progress)
        mean = float(heights.mean())
        rests = heights - mean
        factor = work.factorize(points)
        tile = factor.tile
        clock.lap("factor")
        weights = factor.solve(rests)
        del factor  # What it held is room for products.
        clock.lap("solve")
        backward_error = work.backward_error(points, weights, rests)
        clock.lap("check")
        predicted = work.product("predicting", wanted, points, weights[:, None])[:, 0] + mean
        clock.lap("predict")
        counters = engine.counters()
    return Run(len(points), predicted, backward_error, clock.laps(), tile, counters)


class _Work:
    """The calls of quadriga.linalg, with the options that all of them share."""

    def __init__(self, engine: Engine, tile: int | None, model: Model, progress: Progress) -> None:
        self._engine = engine
        self._tile = tile
        self._order = tile or 256  # Of the tiles of products: the factor's, once there is one.
        self._model = model
        self._progress = progress

    def factorize(self, points: Floats) -> linalg.Factor:
        """Of the covariances of points with the nugget on the diagonal."""
        model = self._model
        matrix = linalg.matern32(
            points,
            length_scale=model.length_scale,
            variance=model.variance,
            nugget=model.nugget,
        )
        factor = linalg.cho_factor(
            matrix,
            lower=True,
            engine=self._engine,
            tile=self._tile,
            progress=lambda done: self._progress("factoring", done),
        )
        self._order = factor.tile
        return factor

    def product(self, what: str, rows: Floats, cols: Floats, right: Floats) -> Floats:
        """Covariances between two sets of points, without the nugget, times a few columns.

        In bands of rows: what a band computes is forgotten with it, before memory is so full that
        its tiles would have to leave. A band takes at most half of the devices' memory, and as
        many rows of tiles from each device.
        """
        model = self._model
        devices = [
            each
            for each in self._engine.machine.devices
            if not each.is_bare_host and not each.only_stores
        ]
        memory = sum(device.memory_bytes for device in devices)
        step = self._order * len(devices)
        height = max(1, memory // 2 // (8 * len(cols)) // step) * step if memory else 4096
        out = np.empty((len(rows), right.shape[1]))
        for first in range(0, len(rows), height):
            band = slice(first, first + height)
            linalg.matmul(
                linalg.matern32(
                    rows[band], cols, length_scale=model.length_scale, variance=model.variance
                ),
                right,
                out=out[band],
                engine=self._engine,
                tile=self._order,
            )
            self._progress(what, min(1.0, (first + height) / len(rows)))
        return out

    def backward_error(self, points: Floats, solution: Floats, right: Floats) -> float:
        """Of a solution x of K x = y: ||K x - y|| / (||K|| ||x|| + ||y||), in the maximum norm.

        The norm of K is its greatest row sum, a product with a vector of ones, for no covariance
        is negative. Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, 7.1.
        """
        both = np.stack([solution, np.ones_like(solution)], axis=1)
        product = self.product("checking", points, points, both) + self._model.nugget * both
        residual = np.abs(product[:, 0] - right).max()
        norm = product[:, 1].max()
        return float(residual / (norm * np.abs(solution).max() + np.abs(right).max()))


class _Clock:
    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self._laps[name], self._last = now - self._last, now

    def laps(self) -> dict[str, float]:
        return self._laps | {"total": self._last - self._start}
