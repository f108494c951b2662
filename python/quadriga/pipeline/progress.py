# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/progress.py: a line that tells how far a run is.
"""The live view of a run: rate, time left, what limits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sized
from typing import Any

from .stats import PipelineStats

_EVERY = 0.5  # seconds


def line(stats: PipelineStats, total: int | None) -> str:
    """How far a run is, in a line.

    Parameters
    ----------
    stats : PipelineStats
    total : int or None
        Chunks that the source has in all; None: nobody knows.
    """
    ended = stats.chunks + stats.failed + stats.dropped + stats.missed
    splits = any(stage.kind == "flat_map" for stage in stats.stages)
    if splits:  # of what comes from the source nothing else is known
        ended = stats.stages[0].chunks
    of = f" of {total}" if total is not None and not splits else ""
    parts = [f"{stats.chunks}{of} chunks, {stats.chunks_per_second:.3g} a second"]
    if total is not None and 0 < ended <= total and stats.seconds > 0:
        parts.append(f"{_time(stats.seconds * (total - ended) / ended)} left")
    if stats.limit:
        parts.append(f"{stats.limit} limits")
    if stats.failed:
        parts.append(f"{stats.failed} skipped")
    if stats.missed:
        parts.append(f"{stats.missed} missed")
    return ", ".join(parts)


def _time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


class Progress:
    """Writes the line on standard error twice a second, over itself."""

    def __init__(self, stats: Callable[[], PipelineStats], source: Any) -> None:
        self._stats = stats
        self._total = len(source) if isinstance(source, Sized) else None
        self._told = 0.0
        self._width = 0

    def tell(self, is_last: bool = False) -> None:
        now = time.monotonic()
        if not is_last and now - self._told < _EVERY:
            return
        self._told = now
        text = line(self._stats(), self._total)
        sys.stderr.write("\r" + text.ljust(self._width) + ("\n" if is_last else ""))
        sys.stderr.flush()
        self._width = len(text)
