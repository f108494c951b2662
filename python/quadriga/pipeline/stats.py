# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/stats.py: statistics of a run.
"""Statistics of a pipeline's run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .stage_table import printable, table


@dataclass(frozen=True)
class StageStats:
    """Statistics of a stage. Seconds are by the engine's clock.

    Attributes
    ----------
    name, kind : str
        `kind` is ``"source"``, ``"copy in"``, ``"kernel"``, ``"copy out"``, or the mode of a body.
    chunks : int
        Chunks that have passed through it.
    busy_seconds : float
        Sum of the times in which it processed chunks.
    waiting_seconds : float
        Sum of the times that chunks waited for it.
    acquire_seconds, reserve_seconds : float
        Sums of the times without input, and without room for its output.
    occupancy : float
        `busy_seconds` over the elapsed time and the number of chunks it can process at once, 0
        to 1.
    queue : int
        Chunks currently waiting for it.
    mean_queue : float
        The mean over the run so far.
    chunks_per_second : float
    latency_median, latency_99 : float
        Seconds that a chunk waited for the stage and spent in it.
    """

    name: str
    kind: str
    chunks: int
    busy_seconds: float
    waiting_seconds: float
    acquire_seconds: float
    reserve_seconds: float
    occupancy: float
    queue: int
    mean_queue: float
    chunks_per_second: float
    latency_median: float
    latency_99: float


@dataclass(frozen=True)
class ChunkFailure:
    """A chunk that was skipped.

    Attributes
    ----------
    chunk : int
        Its number.
    stage : str
        The stage's name.
    error : BaseException
        The stage's exception.
    parts : tuple of int
        Position among the parts that a `flat_map` made, as in `Chunk.parts`.
    """

    chunk: int
    stage: str
    error: BaseException
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class PipelineStats:
    """Statistics of a run, and the least time that its chunks need on the machine.

    Attributes
    ----------
    stages : tuple of StageStats
    chunks, failed, dropped, missed : int
        Chunks that arrived as results; that were skipped after a failure; that a filter dropped;
        for which there was no room, with ``on_full="drop"``.
    ended : int
        Chunks of the source that have ended, with all that a `flat_map` made of them.
    repeated : int
        Runs of chunks that began again from their input, since their device was lost.
    seconds, bound_seconds : float
        Time since the start of the run; the least time for these chunks, 0 if unknown.
    limit : str
        What sets the bound, such as ``"copies to gpu0"`` or the name of a stage.
    latency_median, latency_99 : float
        Seconds from the source to the result: median, and 99th percentile.
    most_host_bytes : int
        Peak host memory of chunks in progress.
    by_device : tuple of int
        Chunks that each device processed.
    most_on_device : int
        Maximum number of chunks on one device at once.
    chunk_rows : int
        Rows of each chunk if the source is an array, as given or chosen; else 0.
    """

    stages: tuple[StageStats, ...]
    chunks: int
    ended: int
    failed: int
    dropped: int
    missed: int
    repeated: int
    seconds: float
    bound_seconds: float
    limit: str
    latency_median: float
    latency_99: float
    most_host_bytes: int
    by_device: tuple[int, ...]
    most_on_device: int
    chunk_rows: int = 0

    @property
    def overhead(self) -> float:
        """Time above the bound as a fraction of it; 0 if the bound is unknown."""
        return self.seconds / self.bound_seconds - 1 if self.bound_seconds > 0 else 0.0

    @property
    def chunks_per_second(self) -> float:
        """Results per second so far."""
        return self.chunks / self.seconds if self.seconds > 0 else 0.0

    def __str__(self) -> str:
        lines = [
            f"{self.chunks} chunks in {self.seconds:.3g} s, {self.chunks_per_second:.3g} a second; "
            f"latency {self.latency_median:.3g} s, of 99 % at most {self.latency_99:.3g} s"
        ]
        if self.chunk_rows:
            lines.append(
                f"chunks of {self.chunk_rows} rows, at most {self.most_on_device} on a device"
            )
        if self.failed or self.dropped:
            lines.append(f"{self.failed} skipped, {self.dropped} dropped by filters")
        if self.missed:
            lines.append(f"{self.missed} dropped at the source, for which there was no room")
        if self.repeated:
            lines.append(f"{self.repeated} ran again after the loss of a device")
        if self.bound_seconds > 0 and tells_bound(self):
            lines.append(
                f"{printable(self.limit)} limits: at least {self.bound_seconds:.3g} s; "
                f"{100 * self.overhead:.0f} % over that"
            )
        lines += table(self.stages)
        return "\n".join(lines)


def tells_bound(stats: PipelineStats) -> bool:
    """Whether the bound of a run that goes on says something: it knows nothing of what chunks in
    progress have cost so far, which is most of the work until more of them have ended.
    """
    entered = stats.stages[0].chunks if stats.stages else 0
    return stats.ended > 0 and stats.ended >= entered - stats.ended


@dataclass(frozen=True)
class PipelineEstimate:
    """The least time of a run before it starts.

    Attributes
    ----------
    seconds : float
        The bound.
    limit : str
        What sets it.
    without_limit, one_device_more : float
        The bound if the limit were twice as fast; the bound with one more device like the last, on
        links of its own but for those that all devices share.
    shares : tuple of float
        Fraction of the work, by device.
    """

    seconds: float
    limit: str
    without_limit: float
    one_device_more: float
    shares: tuple[float, ...]

    def __str__(self) -> str:
        gain = self.seconds / self.one_device_more if self.one_device_more > 0 else 1.0
        more = "gains nothing" if gain < 1.01 else f"makes it {gain:.2g} times as fast"
        return f"at least {self.seconds:.3g} s; {self.limit} limits: one device more {more}"


def from_core(told: dict[str, Any], chunk_rows: int = 0) -> PipelineStats:
    """As the extension tells them."""
    stages = tuple(StageStats(**each) for each in told.pop("stages"))
    by_device = tuple(told.pop("by_device"))
    return PipelineStats(stages=stages, by_device=by_device, chunk_rows=chunk_rows, **told)
