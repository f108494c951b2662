# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/view.py: statistics of a run as text; functions of their arguments alone.
"""What a run looks like: a line, or a screen with its stages."""

from __future__ import annotations

from .stage_table import CHUNKS, QUEUE, aligned, printable
from .stats import PipelineStats, StageStats, tells_bound

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR = 8  # characters


def line(stats: PipelineStats, total: int | None) -> str:
    """How far a run is, in a line.

    Parameters
    ----------
    stats : PipelineStats
    total : int or None
        Chunks that the source has in all; None: nobody knows.
    """
    splits = any(stage.kind == "flat_map" for stage in stats.stages)
    of = f" of {total}" if total is not None and not splits else ""
    parts = [f"{stats.chunks}{of} chunks, {stats.chunks_per_second:.3g} a second"]
    if total is not None and 0 < stats.ended <= total and stats.seconds > 0:
        parts.append(f"{_time(stats.seconds * (total - stats.ended) / stats.ended)} left")
    if stats.limit and tells_bound(stats):
        parts.append(f"{printable(stats.limit)} limits")
    if stats.failed:
        parts.append(f"{stats.failed} skipped")
    if stats.missed:
        parts.append(f"{stats.missed} missed")
    return ", ".join(parts)


def screen(stats: PipelineStats, total: int | None, before: PipelineStats | None = None) -> str:
    """How far a run is, what bounds it, and its stages.

    Parameters
    ----------
    stats : PipelineStats
    total : int or None
        As in `line`.
    before : PipelineStats, optional
        Of the same run, some seconds ago: bars and ``now`` are of the time since then.
    """
    then = before.stages if before else stats.stages
    first = []
    for stage, earlier in zip(stats.stages, then, strict=True):
        rate, occupancy = stage.chunks_per_second, stage.occupancy
        if before and stats.seconds > before.seconds:
            rate, occupancy = _since(stage, stats.seconds, earlier, before.seconds)
        first.append([stage.name, bar(occupancy), f"{rate:.3g}"])
    titles = ["stage", "now", "a second"]
    rows = aligned(stats.stages, first, titles, (CHUNKS, QUEUE))
    return "\n".join([line(stats, total), _bound(stats), *rows])


def bar(share: float, width: int = _BAR) -> str:
    """A bar of so many characters, of which a share is filled."""
    eighths = round(8 * width * min(1.0, max(0.0, share)))
    full, rest = divmod(eighths, 8)
    return (_EIGHTHS[8] * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _since(
    stage: StageStats, seconds: float, earlier: StageStats, then: float
) -> tuple[float, float]:
    """Chunks a second, and occupancy, since then; times of chunks count when these end."""
    busy = stage.occupancy * seconds - earlier.occupancy * then
    return (stage.chunks - earlier.chunks) / (seconds - then), busy / (seconds - then)


def _bound(stats: PipelineStats) -> str:
    latency = f"latency {stats.latency_median:.3g} s, of 99 % at most {stats.latency_99:.3g} s"
    if stats.bound_seconds <= 0 or not tells_bound(stats):
        return f"{stats.seconds:.3g} s so far; {latency}"
    return (
        f"{stats.seconds:.3g} s so far, {100 * stats.overhead:.0f} % over the bound of "
        f"{stats.bound_seconds:.3g} s; {latency}"
    )


def _time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
