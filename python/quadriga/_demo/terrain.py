# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/terrain.py: the elevation model that the demo learns, and who learns what.
"""Heights around the Jacksboro fault, Tennessee, as matplotlib ships them (SRTM, public domain)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FILE = "jacksboro_fault_dem.npz"
#: Metres that one degree along a meridian takes on a sphere of Earth's mean radius.
METRES_PER_DEGREE = 2 * np.pi * 6_371_008.8 / 360


@dataclass(frozen=True)
class Terrain:
    """Heights on a grid, the northernmost row first, columns from west to east."""

    heights: Floats  # Metres; rows x columns.
    metres_per_row: float
    metres_per_column: float

    @property
    def points(self) -> Floats:
        """Where each height is: metres to the east and to the south of the north-western corner."""
        rows, columns = np.indices(self.heights.shape)
        east = columns.ravel() * self.metres_per_column
        south = rows.ravel() * self.metres_per_row
        return np.stack([east, south], axis=1)

    @property
    def extent(self) -> tuple[float, float]:
        """Kilometres from west to east and from north to south, the outer halves of cells included.

        Examples
        --------
        >>> Terrain(np.zeros((2, 4)), 500.0, 250.0).extent
        (1.0, 1.0)
        """
        rows, columns = self.heights.shape
        return columns * self.metres_per_column / 1000, rows * self.metres_per_row / 1000


def load() -> Terrain:
    """Reads the elevation model from matplotlib's sample data."""
    from matplotlib import cbook

    with np.load(cbook.get_sample_data(FILE, asfileobj=False)) as file:
        heights = file["elevation"].astype(np.float64)
        # The file names its northern edge ymin. Meridians converge: a degree of longitude is
        # shorter by the cosine of the latitude, here taken in the middle (36.6 degrees).
        latitude = np.radians((float(file["ymin"]) + float(file["ymax"])) / 2)
        per_row = METRES_PER_DEGREE * float(file["dy"])
        per_column = METRES_PER_DEGREE * float(file["dx"]) * float(np.cos(latitude))
    return Terrain(heights, per_row, per_column)


@dataclass(frozen=True)
class Split:
    """Which points are learned and which are held out; indices into the grid, row by row."""

    learned: Integers  # In random order, so that the first n are a random choice too.
    held_out: Integers  # In the grid's order.


def split(count: int, learned: int, seed: int) -> Split:
    """Chooses points to learn at random; all others are held out.

    Examples
    --------
    >>> both = split(100, 30, seed=1)
    >>> len(both.learned), len(both.held_out), len(set(both.learned) & set(both.held_out))
    (30, 70, 0)
    """
    order = np.random.default_rng(seed).permutation(count)
    return Split(order[:learned], np.sort(order[learned:]))
