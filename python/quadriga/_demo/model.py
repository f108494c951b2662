# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/model.py: the Gaussian process, its likelihood, and SciPy's solution.
"""Kriging in plain NumPy and SciPy: what the demo's result is compared with.

A height is a constant mean plus a Gaussian process with Matérn 3/2 covariance plus noise (the
nugget). Source: Rasmussen, Williams, Gaussian Processes for Machine Learning, 2006, chapters 2, 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, optimize
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from .terrain import Floats, Integers

#: Heights are whole metres; rounding alone adds this variance, in square metres.
ROUNDING = 1 / 12
#: The likelihood's subset: neighbourhoods, and points in each.
NEIGHBOURHOODS, NEIGHBOURS = 10, 100


@dataclass(frozen=True)
class Model:
    """Metres, and square metres for the variance and the nugget."""

    length_scale: float
    variance: float
    nugget: float
    origin: str = "given"

    def replaced(
        self, length_scale: float | None, deviation: float | None, nugget: float | None
    ) -> Model:
        """The same with what is stated in place of what was found; the deviation in metres."""
        changes: dict[str, float] = {}
        if length_scale is not None:
            changes["length_scale"] = length_scale
        if deviation is not None:
            changes["variance"] = deviation**2
        if nugget is not None:
            changes["nugget"] = nugget
        if not changes:
            return self
        return replace(self, **changes, origin=f"{self.origin}; given: {', '.join(changes)}")

    def covariance(self, rows: Floats, cols: Floats) -> Floats:
        """Matérn 3/2 between two sets of points, without the nugget.

        Examples
        --------
        >>> here, there = np.zeros((1, 2)), np.array([[3.0, 4.0]])
        >>> Model(5.0, 2.0, 0.1).covariance(here, there).round(6)
        array([[0.966715]])
        """
        s: Floats = cdist(rows, cols)
        s *= np.sqrt(3) / self.length_scale
        decay = np.exp(-s)
        s += 1
        s *= decay
        s *= self.variance
        return s


def reference(model: Model, points: Floats, heights: Floats, wanted: Floats) -> Floats:
    """The prediction at ``wanted`` by SciPy, the whole matrix in memory."""
    matrix = model.covariance(points, points)
    matrix[np.diag_indices_from(matrix)] += model.nugget
    mean = float(heights.mean())
    factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    weights = linalg.cho_solve(factor, heights - mean, check_finite=False)
    blocks = [model.covariance(block, points) @ weights for block in _blocks(wanted, 1024)]
    return np.concatenate(blocks) + mean


def _blocks(points: Floats, rows: int) -> Iterator[Floats]:
    for first in range(0, len(points), rows):
        yield points[first : first + rows]


def fit(points: Floats, heights: Floats, seed: int) -> Model:
    """Length scale, variance and nugget of the greatest likelihood on a subset.

    The subset is ``NEIGHBOURHOODS`` points chosen at random, each with its nearest neighbours,
    taken as independent of the others. Neighbours tell the short distances, which decide about
    the prediction; a thin sample of all points would tell none. The nugget is at least what
    rounding to whole metres adds.
    """
    count = min(NEIGHBOURS, len(points))
    centres = np.random.default_rng(seed).choice(len(points), NEIGHBOURHOODS, replace=False)
    near: Integers = cKDTree(points).query(points[centres], count)[1]
    rests = heights - heights.mean()
    subset = [(cdist(points[chosen], points[chosen]), rests[chosen]) for chosen in near]
    spread = float(heights.var())

    def cost(logs: Floats) -> float:
        return _negative_likelihood(logs, subset)

    start = np.log([np.ptp(points, axis=0).max() / 20, spread, spread / 100])
    low = np.log([1.0, spread / 1000, ROUNDING])
    high = np.log([10 * np.ptp(points), spread * 1000, spread])
    found = optimize.minimize(cost, start, method="L-BFGS-B", bounds=optimize.Bounds(low, high))
    length_scale, variance, nugget = (float(value) for value in np.exp(found.x))
    origin = f"likelihood of {NEIGHBOURHOODS} neighbourhoods of {count} points"
    return Model(length_scale, variance, nugget, origin)


def _negative_likelihood(logs: Floats, subset: list[tuple[Floats, Floats]]) -> float:
    """Up to a constant (section 5.4.1); ``subset`` holds distances and heights above the mean."""
    length_scale, variance, nugget = np.exp(logs)
    total = 0.0
    for distances, rests in subset:
        s = distances * (np.sqrt(3) / length_scale)
        matrix = variance * (1 + s) * np.exp(-s)
        matrix[np.diag_indices_from(matrix)] += nugget
        factor = linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
        solved = linalg.solve_triangular(factor, rests, lower=True, check_finite=False)
        total += 0.5 * float(solved @ solved) + float(np.log(np.diag(factor)).sum())
    return total
