# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/collector.py: what the garbage collector finds is let go when the engine ends.
"""Repeatable runs under the virtual clock, whenever the garbage collector runs.

Data freed by reference counts leave the engine at the same step of each run. Data freed by the
collector are kept until the engine ends, so that it doesn't matter when it ran.
"""

from __future__ import annotations

import gc
from collections import deque
from typing import Any

_collecting = False


def _note(phase: str, _: dict[str, int]) -> None:
    global _collecting
    _collecting = phase == "start"


class Kept(deque[Any]):
    """Data without references; those that the collector found are in `late`."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[Any] = []
        if _note not in gc.callbacks:
            gc.callbacks.append(_note)

    def append(self, found: Any) -> None:
        if _collecting:
            self.late.append(found)
        else:
            super().append(found)

    def keep(self, found: Any) -> None:
        """Keeps a thing that the collector frees; nothing else."""
        if _collecting:
            self.late.append(found)

    def clear(self) -> None:
        super().clear()
        self.late.clear()
