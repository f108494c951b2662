# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis.py: what a run did with its time, from the events.
"""Where each device's time went, the longest gaps and their causes, kernels, copies and bytes.

A device's time is divided without remainder:

- *computing*, with copies hidden behind it or without;
- *waited for copies*: no kernel runs and something is on its way to the device, or a tile is being
  evicted to make room, after the next kernel's predecessors were done (where the graph is known);
- *nothing ready*: no kernel runs because none could;
- *not started*: the next kernel was ready and its operands were there (only if the graph is known);
- *finished*: after the device's last kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .counters import busy
from .header import BOUNDS
from .intervals import Integers, Intervals, busy_before, common_length, complement, merge
from .trace import COPY, HOST, KERNEL, Spans, Trace

CAUSES = ("waited for copies", "nothing ready", "not started", "finished")
WAITED, NOT_READY, NOT_STARTED, FINISHED = CAUSES


@dataclass(frozen=True)
class Gap:
    """A time in which a device ran no kernel."""

    device: str
    start: int  # nanoseconds
    length: int
    cause: str
    detail: str


@dataclass(frozen=True)
class DeviceUse:
    """How one device spent the run, in nanoseconds; the parts add up to the run."""

    pid: int
    name: str
    hidden: int  # computing while copies ran
    alone: int  # computing, no copies
    waited: int
    not_ready: int
    not_started: int
    finished: int
    overlap_possible: int

    @property
    def computing(self) -> int:
        return self.hidden + self.alone


class Analysis:
    """All derived figures of a trace, computed once.

    Parameters
    ----------
    trace : Trace
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def devices(self) -> list[DeviceUse]:
        return [self._use(pid, name) for pid, name in self.trace.devices.items()]

    @cached_property
    def bound(self) -> tuple[float, str] | None:
        """Seconds of the run's lower bound and the key of the one that binds, if known."""
        parts = {key: float(self.trace.bound.get(key) or 0) for key in BOUNDS}
        binding = max(parts, key=lambda key: parts[key])
        seconds = float(self.trace.bound.get("seconds") or parts[binding])
        return (seconds, binding) if seconds > 0 else None

    def spans_of(self, pid: int) -> Spans:
        return self.trace.spans.take(self.trace.spans.pid == pid)

    def busy(self, pid: int, kind: int) -> Intervals:
        """When at least one kernel ran on a device, or one copy to or from it."""
        return busy(self.trace, pid, kind)

    def kernels(self) -> list[dict[str, Any]]:
        """Kernels by the time that they took in all, longest first."""
        spans = self.trace.spans.take(self.trace.spans.kind == KERNEL)
        total = max(int(spans.duration.sum()), 1)
        rows = []
        for name in np.unique(spans.name):
            taken = np.sort(spans.duration[spans.name == name])
            rows.append(
                {
                    "name": self.trace.labels[int(name)],
                    "count": len(taken),
                    "seconds": int(taken.sum()) / 1e9,
                    "share": int(taken.sum()) / total,
                    "shortest_seconds": int(taken[0]) / 1e9,
                    "median_seconds": int(taken[len(taken) // 2]) / 1e9,
                    "longest_seconds": int(taken[-1]) / 1e9,
                }
            )
        return sorted(rows, key=lambda row: (-row["seconds"], row["name"]))

    def copies(self) -> list[dict[str, Any]]:
        """Copies by the reason that the engine gave, most bytes first."""
        spans = self.trace.spans.take(self.trace.spans.kind == COPY)
        rows = []
        for why in np.unique(spans.why):
            part = spans.take(spans.why == why)
            rows.append(
                {
                    "why": self.trace.labels[int(why)],
                    "count": len(part),
                    "bytes": int(part.bytes.sum()),
                    "seconds": int(part.duration.sum()) / 1e9,
                }
            )
        return sorted(rows, key=lambda row: (-row["bytes"], row["why"]))

    @cached_property
    def ways(self) -> dict[tuple[str, str], Spans]:
        """Copies by where they come from and go to, most bytes first."""
        spans = self.trace.spans.take(self.trace.spans.kind == COPY)
        labels, found = self.trace.labels, {}
        for pair in np.unique(spans.source * len(labels) + spans.target):
            source, target = divmod(int(pair), len(labels))
            rows = (spans.source == source) & (spans.target == target)
            found[labels[source], labels[target]] = spans.take(rows)
        return dict(sorted(found.items(), key=lambda item: (-int(item[1].bytes.sum()), item[0])))

    def bytes_moved(self) -> dict[str, int]:
        """Bytes into devices, out of them and between them."""
        moved = {"in": 0, "out": 0, "peer": 0}
        for (source, target), spans in self.ways.items():
            kind = "in" if source == HOST else "out" if target == HOST else "peer"
            moved[kind] += int(spans.bytes.sum())
        return moved

    def way_capacity(self, source: str, target: str) -> float | None:
        """Bytes a second of the slowest link on a way, if the file describes the machine."""
        machine = self.trace.header.get("machine") or {}
        links = machine.get("links", {})
        for route in machine.get("routes", []):
            if (route.get("from"), route.get("to")) == (source, target):
                names = route.get("links", [])
                rates = [links[n]["bandwidth"] / names.count(n) for n in names if n in links]
                return min(rates, default=None)
        return None

    def gaps(self, most: int = 10) -> list[Gap]:
        """The longest times without a kernel on some device, longest first."""
        found = [gap for use in self.devices for gap in self._gaps_of(use.pid, use.name, most)]
        return sorted(found, key=lambda gap: (-gap.length, gap.start, gap.device))[:most]

    @cached_property
    def _ready(self) -> dict[int, tuple[int, int]]:
        """By task: when its last predecessor ended, and which that was; only with a graph."""
        spans = self.trace.spans.take(self.trace.spans.task >= 0)
        ended: dict[int, int] = {}
        for task, end in zip(spans.task.tolist(), spans.end.tolist(), strict=True):
            ended[task] = max(ended.get(task, 0), end)
        ready = {}
        for task in self.trace.tasks:
            ends = [(ended.get(other, 0), other) for other in task.get("after", [])]
            ready[task["id"]] = max(ends, default=(0, -1))
        return ready

    def _idle(self, pid: int) -> tuple[Intervals, Integers, Spans]:
        """A device's gaps, when each one's next kernel was ready, and its kernels by start."""
        spans = self.spans_of(pid)
        kernels = spans.take(spans.kind == KERNEL)
        kernels = kernels.take(np.argsort(kernels.start, kind="stable"))
        idle = complement(self.busy(pid, KERNEL), self.trace.end)
        ready = idle.start.copy()
        if self._ready:
            following = np.searchsorted(kernels.start, idle.end)
            for row in np.flatnonzero(following < len(kernels)):
                task = int(kernels.task[following[row]])
                at = self._ready.get(task, (0, -1))[0]
                ready[row] = min(max(int(idle.start[row]), at), int(idle.end[row]))
        return idle, ready, kernels

    def _arriving(self, pid: int) -> Intervals:
        """When something was on its way to a device, or left it to make room."""
        spans, trace = self.trace.spans, self.trace
        own = trace.label(trace.devices[pid])
        rows = (spans.pid == pid) & (spans.why == trace.label("evict"))
        rows = (rows | (spans.target == own)) & (spans.kind == COPY)
        return merge(spans.start[rows], spans.end[rows])

    def _causes(self, pid: int) -> tuple[Intervals, Integers, Integers, Integers, Spans]:
        """Gaps with how much of each waited for copies and how much had nothing ready."""
        idle, ready, kernels = self._idle(pid)
        arriving = self._arriving(pid)
        before = busy_before(arriving.start, arriving.end, idle.end)
        waited = before - busy_before(arriving.start, arriving.end, ready)
        until = ready if self._ready else idle.end - waited
        return idle, ready, waited, until - idle.start, kernels

    def _use(self, pid: int, name: str) -> DeviceUse:
        kernels, copies = self.busy(pid, KERNEL), self.busy(pid, COPY)
        hidden = common_length(kernels, copies)
        idle, _, waited, not_ready, _ = self._causes(pid)
        lengths = idle.end - idle.start
        last = int(kernels.end.max(initial=0))
        tail = idle.start >= last
        others = lengths - waited - not_ready
        return DeviceUse(
            pid=pid,
            name=name,
            hidden=hidden,
            alone=kernels.length - hidden,
            waited=int(waited[~tail].sum()),
            not_ready=int(not_ready[~tail].sum()),
            not_started=int(others[~tail].sum()),
            finished=int(lengths[tail].sum()),
            overlap_possible=min(kernels.length, copies.length),
        )

    def _gaps_of(self, pid: int, name: str, most: int) -> list[Gap]:
        idle, ready, waited, not_ready, kernels = self._causes(pid)
        lengths = idle.end - idle.start
        last = int(kernels.end.max(initial=0))
        found = []
        for row in np.argsort(-lengths, kind="stable")[:most]:
            start, length = int(idle.start[row]), int(lengths[row])
            others = length - int(waited[row]) - int(not_ready[row])
            if start >= last:
                cause, detail = FINISHED, self._tail_detail(pid, start)
            elif waited[row] >= max(int(not_ready[row]), others):
                cause, detail = WAITED, self._copies_detail(pid, int(ready[row]), start + length)
            elif not_ready[row] >= others:
                cause, detail = NOT_READY, self._task_detail(kernels, start + length)
            else:
                cause, detail = NOT_STARTED, self._task_detail(kernels, start + length, False)
            found.append(Gap(name, start, length, cause, detail))
        return found

    def _copies_detail(self, pid: int, start: int, end: int) -> str:
        """What arrived last before the gap ended."""
        spans, labels = self.trace.spans, self.trace.labels
        here = (spans.pid == pid) | (spans.target == self.trace.label(self.trace.devices[pid]))
        rows = here & (spans.kind == COPY) & (spans.end > start) & (spans.start < end)
        coming = spans.take(rows & (spans.end <= end))
        if len(coming) == 0:
            return f"{int(rows.sum())} copies under way"
        last = coming.take(np.array([int(np.argmax(coming.end))]))
        tile = f"tile {int(last.tile[0])} " if last.tile[0] >= 0 else ""
        text = (
            f"{tile}from {labels[int(last.source[0])]} to {labels[int(last.target[0])]} came last"
        )
        return f"{text}, of {len(coming)} copies" if len(coming) > 1 else text

    def _task_detail(self, kernels: Spans, end: int, predecessor: bool = True) -> str:
        row = int(np.searchsorted(kernels.start, end))
        if row >= len(kernels):
            return ""
        task, name = int(kernels.task[row]), self.trace.labels[int(kernels.name[row])]
        text = f"next: {name}" + (f", task {task}" if task >= 0 else "")
        last = self._ready.get(task, (0, -1))[1]
        return text + (f", after task {last}" if predecessor and last >= 0 else "")

    def _tail_detail(self, pid: int, start: int) -> str:
        others = self.trace.spans.pid != pid
        running = others & (self.trace.spans.kind == KERNEL) & (self.trace.spans.end > start)
        pids = np.unique(self.trace.spans.pid[running])
        names = [self.trace.devices[int(p)] for p in pids if int(p) in self.trace.devices]
        if names:
            return "still computing: " + ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        return "results on their way home" if self._copies_after(start) else "the run's end"

    def _copies_after(self, start: int) -> bool:
        spans = self.trace.spans
        return bool(((spans.kind == COPY) & (spans.end > start)).any())
