# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/check.py: one of the figures that decide whether the demo accepts a run.
"""A figure and its limit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A figure that the demo accepts itself by."""

    name: str
    value: float
    limit: float

    @property
    def passed(self) -> bool:
        return bool(self.value <= self.limit)  # False for what isn't a number.
