# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/options.py: what the demo is asked for, and how many points that makes.
"""The demo's options, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import InvalidArgument

#: Points of which SciPy holds the whole matrix, for comparison.
REFERENCE_POINTS = 2000
LEAST_POINTS, LEAST_HELD_OUT = 100, 1000
ALL = "all"


@dataclass
class Options:
    """What the command line can change; in metres, the nugget in square metres.

    The points to learn from are a number or ``"all"``: all but those that must be held out.
    """

    points: int | str = 8000
    devices: str = ""
    output: Path = Path("quadriga-demo")
    spill: Path | None = None
    length_scale: float | None = None
    deviation: float | None = None
    nugget: float | None = None
    seed: int = 1
    tile: int | None = None
    policy: str | None = None
    quick: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        self.output = Path(self.output)
        if self.quick:
            known = REFERENCE_POINTS if isinstance(self.points, str) else self.points
            self.points = min(known, REFERENCE_POINTS)
        if not self.devices:
            self.devices = "emulated:2,memory=" + ("8MiB" if self.quick else "128MiB")


def sizes(points: int) -> list[int]:
    """Numbers of points to learn from, each about twice the one before; none close to the last.

    Examples
    --------
    >>> sizes(8000), sizes(2000), sizes(20000), sizes(9000)
    ([2000, 4000, 8000], [500, 1000, 2000], [2000, 4000, 8000, 16000, 20000], [2000, 4000, 9000])
    """
    found = [min(REFERENCE_POINTS, points // 4)]
    while found[-1] * 2 * 1.2 <= points:
        found.append(found[-1] * 2)
    return [*found, points]


def points_of(points: int | str, available: int) -> int:
    """How many points to learn; raises unless they suffice and enough are held out.

    Examples
    --------
    >>> points_of("all", 138_632)
    137632
    """
    most = available - LEAST_HELD_OUT
    if points == ALL:
        return most
    if isinstance(points, str):
        raise InvalidArgument(f"{points!r} points to learn: expected a number or {ALL!r}")
    if not LEAST_POINTS <= points <= most:
        raise InvalidArgument(f"{points} points to learn: expected {LEAST_POINTS} to {most}")
    return points
