# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/trace/trace.py: a run's events as NumPy columns.
"""A trace: the events that the engine recorded, as NumPy columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

KERNEL, COPY = 0, 1
HOST = "host"
WHYS = ("stage", "prefetch", "write_back", "evict", "final")
INSTANTS = ("hit", "miss", "prefetch", "evict", "write_back", "steal")


@dataclass(frozen=True, repr=False)
class Spans:
    """Kernels and copies, one row each; text is stored as an index into ``Trace.labels``."""

    start: Integers  # nanoseconds
    duration: Integers  # nanoseconds
    pid: Integers
    tid: Integers
    kind: Integers  # KERNEL or COPY
    name: Integers
    task: Integers  # -1: none
    source: Integers  # copies only
    target: Integers
    why: Integers
    bytes: Integers
    tile: Integers  # -1: none
    expected: Integers  # kernels only: nanoseconds by the machine's table; 0: unknown

    @property
    def end(self) -> Integers:
        return self.start + self.duration

    def take(self, rows: NDArray[Any]) -> Spans:
        """The rows that a mask or a list of indices selects."""
        return Spans(*(getattr(self, column)[rows] for column in self.__dataclass_fields__))

    @classmethod
    def join(cls, parts: Sequence[Spans]) -> Spans:
        """All rows of several, in that order."""
        none = np.zeros(0, np.int64)
        columns = cls.__dataclass_fields__
        return cls(*(np.concatenate([none, *(getattr(p, c) for p in parts)]) for c in columns))

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self) -> str:
        return f"<Spans: {len(self)} operations>"


@dataclass(frozen=True, repr=False)
class Instants:
    """Hits, misses, prefetches, evictions, write-backs and steals, one row each."""

    at: Integers  # nanoseconds
    pid: Integers
    tid: Integers
    what: Integers  # index into INSTANTS
    tile: Integers

    def __repr__(self) -> str:
        return f"<Instants: {len(self.at)}>"


@dataclass(frozen=True)
class Message:
    """A message or collective that was a task. Ranks are the world's; -1: none."""

    name: str
    start: int  # nanoseconds
    end: int
    task: int
    source: int
    target: int
    tag: int
    context: str
    bytes: int
    failed: bool


@dataclass(frozen=True, repr=False)
class Trace:
    """A trace, or a part of one; made by `load` and `part`.

    Attributes
    ----------
    path : str
        The file that it was read from.
    labels : list of str
        All names; columns hold indices into it.
    processes, streams, kinds : dict
        Names of devices by pid (0 is the host, else the device's index + 1) and of streams by
        (pid, tid); the streams' kinds, where the file has them.
    spans, instants : Spans, Instants
        Copies and kernels; events without a duration. Times are in nanoseconds.
    header : dict
        The file's ``quadriga`` object: counters, bound, machine and, if recorded, tasks.
    whole : Trace or None
        The trace of which this is a part.
    part : str
        Which part, in words.
    messages : tuple of Message
        Messages of tasks, of the whole run.
    """

    path: str
    labels: list[str]
    processes: dict[int, str]
    streams: dict[tuple[int, int], str]
    kinds: dict[tuple[int, int], str]
    spans: Spans
    instants: Instants
    header: dict[str, Any]
    whole: Trace | None = None
    part: str = ""
    messages: tuple[Message, ...] = ()

    def __repr__(self) -> str:
        of = f", {self.part} of {self.whole.path!r}" if self.whole else f" {self.path!r}"
        return f"<Trace{of}: {len(self.spans)} operations, {self.seconds:.6g} s>"

    @property
    def seconds(self) -> float:
        """Its duration."""
        return float(self.header["seconds"])

    @property
    def counters(self) -> dict[str, Any]:
        """The engine's counters, in the form of docs/report.md."""
        return self.header["counters"]  # type: ignore[no-any-return]

    @property
    def bound(self) -> dict[str, Any]:
        """The lower bound, in seconds, with its parts; empty if the file has none."""
        return self.header.get("bound") or {}

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The task graph; empty if it wasn't recorded."""
        return self.header.get("tasks") or []

    @property
    def pipelines(self) -> list[dict[str, Any]]:
        """What pipelines did that ended, as `PipelineStats`."""
        return [each["stream"] for each in self.sections if "stream" in each]

    @property
    def sections(self) -> list[dict[str, Any]]:
        """Calls and other parts of the program: name, start and end in seconds."""
        return self.header.get("sections") or []

    @property
    def host_only(self) -> list[str]:
        """Names of kernels that needed the host, on a machine without a CPU to compute."""
        described = (self.header.get("machine") or {}).get("devices")
        counted = self.counters["devices"]
        if not isinstance(described, list) or len(described) != len(counted) or not counted:
            return []
        last = described[-1]
        if not isinstance(last, dict) or last.get("kind") != "cpu" or last.get("cores"):
            return []
        own = (self.spans.pid == len(counted)) & (self.spans.kind == KERNEL)
        return [self.labels[name] for name in np.unique(self.spans.name[own]).tolist()]

    def label(self, text: str) -> int:
        """The index of a name in ``labels``; -1, which no column holds, if no event has it."""
        return self.labels.index(text) if text in self.labels else -1

    @cached_property
    def end(self) -> int:
        """Nanoseconds that a time line of the run must show."""
        last = int(self.spans.end.max(initial=0))
        return max(last, round(self.seconds * 1e9), 1)

    @cached_property
    def devices(self) -> dict[int, str]:
        """Names of all devices by pid, also of those that did nothing."""
        counted = {i + 1: d["name"] for i, d in enumerate(self.counters["devices"])}
        seen = {int(pid): f"device{pid - 1}" for pid in np.unique(self.spans.pid) if pid > 0}
        named = {pid: name for pid, name in self.processes.items() if pid > 0}
        return dict(sorted((seen | counted | named).items()))
