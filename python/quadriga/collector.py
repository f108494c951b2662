# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/collector.py: what the garbage collector finds is let go when the engine ends.
"""Under the virtual clock runs repeat to the byte, but the collector runs whenever it likes.

What reference counts free is freed at the same step of each run and leaves its engine there. What
the collector frees is kept until the engine ends, so that it makes no difference when it ran.
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
    """What nobody holds any more, but for what the collector found: that is in `late`."""

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
