# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/gaps.py: when devices ran no kernel, and what was missing.
"""The time without kernels, divided without remainder.

- *waited for copies*: something is on its way to the device, or a tile is being evicted to make
  room, after the next kernel's predecessors were done (where the graph is known);
- *nothing ready*: the next kernel's predecessors weren't done, or without a graph: no such copy;
- *not started*: the next kernel was ready and its operands were there (only if the graph is known):
  the program had not submitted it, or the engine was placing and queueing it;
- *finished*: after the last kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import formats
from ..trace.trace import COPY, KERNEL, Spans, Trace
from .counters import busy
from .intervals import Integers, Intervals, busy_before, complement, merge

CAUSES = ("waited for copies", "nothing ready", "not started", "finished")
WAITED, NOT_READY, NOT_STARTED, FINISHED = CAUSES


@dataclass(frozen=True)
class Gap:
    """A time in which a unit ran no kernel."""

    device: str
    start: int  # nanoseconds
    length: int
    cause: str
    detail: str


@dataclass(frozen=True)
class Unit:
    """What is busy or idle as one: a device, or a core of a CPU."""

    pid: int
    name: str
    kernels: Spans  # by start
    busy: Intervals


@dataclass(frozen=True)
class _Causes:
    """A unit's gaps, when each one's next kernel was ready, and how long what was missing."""

    idle: Intervals
    ready: Integers
    waited: Integers
    not_ready: Integers


class Idleness:
    """Why the units of a run's devices ran no kernel.

    Parameters
    ----------
    trace : Trace
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def units(self, pid: int) -> list[Unit]:
        """A device; or each of its streams, if they are cores that work on the user's memory.

        The streams of a device with memory of its own share its speed, so that one of them is
        enough to use it; a core can use only itself.
        """
        spans, name = self.trace.spans, self.trace.devices[pid]
        kernels = spans.take((spans.pid == pid) & (spans.kind == KERNEL))
        kernels = kernels.take(np.argsort(kernels.start, kind="stable"))
        streams = np.unique(kernels.tid).tolist()
        if len(streams) < 2 or busy(self.trace, pid, COPY).length > 0:
            return [Unit(pid, name, kernels, merge(kernels.start, kernels.end))]
        found = []
        for tid in streams:
            own = kernels.take(kernels.tid == tid)
            label = f"{name} {self.trace.streams.get((pid, tid), tid)}"
            found.append(Unit(pid, label, own, merge(own.start, own.end)))
        return found

    def parts(self, unit: Unit) -> tuple[int, int, int, int]:
        """Nanoseconds by cause, in the order of ``CAUSES``."""
        causes = self._causes(unit)
        lengths = causes.idle.end - causes.idle.start
        tail = causes.idle.start >= int(unit.busy.end.max(initial=0))
        others = lengths - causes.waited - causes.not_ready
        inner = (causes.waited, causes.not_ready, others)
        waited, not_ready, not_started = (int(part[~tail].sum()) for part in inner)
        return waited, not_ready, not_started, int(lengths[tail].sum())

    def gaps(self, unit: Unit, most: int) -> list[Gap]:
        """The longest gaps of a unit, longest first."""
        causes = self._causes(unit)
        lengths = causes.idle.end - causes.idle.start
        rows = np.argsort(-lengths, kind="stable")[:most]
        return [self._gap(unit, causes, int(row)) for row in rows]

    def _gap(self, unit: Unit, causes: _Causes, row: int) -> Gap:
        start, end = int(causes.idle.start[row]), int(causes.idle.end[row])
        waited, not_ready = int(causes.waited[row]), int(causes.not_ready[row])
        others = end - start - waited - not_ready
        if start >= int(unit.busy.end.max(initial=0)):
            cause, detail = FINISHED, self._tail_detail(unit, start)
        elif waited >= max(not_ready, others):
            cause, detail = WAITED, self._copies_detail(unit, int(causes.ready[row]), end)
        elif not_ready >= others:
            cause, detail = NOT_READY, self._task_detail(unit, end, predecessor=True)
        else:
            at = max(int(causes.ready[row]), start)
            cause, detail = NOT_STARTED, self._late_detail(unit, at, end)
        return Gap(unit.name, start, end - start, cause, detail)

    def unsubmitted(self, unit: Unit) -> int:
        """Nanoseconds of *not started* in which the program had not submitted the next task."""
        causes = self._causes(unit)
        following = np.searchsorted(unit.kernels.start, causes.idle.end)
        inner = following < len(unit.kernels)
        next_tasks = unit.kernels.task[following[inner]].tolist()
        submitted = np.array([self._submitted.get(task, 0) for task in next_tasks], np.int64)
        others = causes.idle.end - causes.idle.start - causes.waited - causes.not_ready
        since = np.maximum(causes.ready, causes.idle.start)[inner]
        late = np.clip(submitted - since, 0, np.maximum(others[inner], 0))
        return int(late.sum())

    @cached_property
    def _submitted(self) -> dict[int, int]:
        """By task: when the program submitted it, if the trace tells."""
        return {
            task["id"]: round(task["submitted"] * 1e9)
            for task in self.trace.tasks
            if "submitted" in task
        }

    def _submitted_of_next(self, unit: Unit, end: int) -> int:
        """When the kernel after a gap was submitted; 0 if there is none, or that isn't known."""
        row = int(np.searchsorted(unit.kernels.start, end))
        if row >= len(unit.kernels):
            return 0
        return self._submitted.get(int(unit.kernels.task[row]), 0)

    def _late_detail(self, unit: Unit, ready: int, end: int) -> str:
        """Why the next kernel hadn't started although nothing kept it."""
        text = self._task_detail(unit, end, predecessor=False)
        if not self._submitted:
            return text
        late = min(self._submitted_of_next(unit, end), end) - ready
        if 2 * late > end - ready:
            return f"{text}; the program submitted it {formats.time(late / 1e9)} later"
        queueing = formats.time((end - ready - max(late, 0)) / 1e9)
        return f"{text}; the engine took {queueing} to place and queue it"

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

    def _causes(self, unit: Unit) -> _Causes:
        idle = complement(unit.busy, self.trace.end)
        ready = idle.start.copy()
        if self._ready:
            following = np.searchsorted(unit.kernels.start, idle.end)
            for row in np.flatnonzero(following < len(unit.kernels)):
                task = int(unit.kernels.task[following[row]])
                at = self._ready.get(task, (0, -1))[0]
                ready[row] = min(max(int(idle.start[row]), at), int(idle.end[row]))
        arriving = self._arriving(unit.pid)
        before = busy_before(arriving.start, arriving.end, idle.end)
        waited = before - busy_before(arriving.start, arriving.end, ready)
        until = ready if self._ready else idle.end - waited
        return _Causes(idle, ready, waited, until - idle.start)

    def _arriving(self, pid: int) -> Intervals:
        """When something was on its way to a device, or left it to make room."""
        spans, trace = self.trace.spans, self.trace
        rows = (spans.pid == pid) & (spans.why == trace.label("evict"))
        rows = (rows | (spans.target == trace.label(trace.devices[pid]))) & (spans.kind == COPY)
        return merge(spans.start[rows], spans.end[rows])

    def _copies_detail(self, unit: Unit, start: int, end: int) -> str:
        """What arrived last before the gap ended."""
        spans, labels = self.trace.spans, self.trace.labels
        own = self.trace.label(self.trace.devices[unit.pid])
        here = (spans.pid == unit.pid) | (spans.target == own)
        rows = here & (spans.kind == COPY) & (spans.end > start) & (spans.start < end)
        coming = spans.take(rows & (spans.end <= end))
        if len(coming) == 0:
            return f"{int(rows.sum())} copies under way"
        last = int(np.argmax(coming.end))
        tile = f"tile {int(coming.tile[last])} " if coming.tile[last] >= 0 else ""
        source, target = labels[int(coming.source[last])], labels[int(coming.target[last])]
        text = f"{tile}from {source} to {target} came last"
        return f"{text}, of {len(coming)} copies" if len(coming) > 1 else text

    def _task_detail(self, unit: Unit, end: int, *, predecessor: bool) -> str:
        row = int(np.searchsorted(unit.kernels.start, end))
        if row >= len(unit.kernels):
            return ""
        task = int(unit.kernels.task[row])
        name = self.trace.labels[int(unit.kernels.name[row])]
        text = f"next: {name}" + (f", task {task}" if task >= 0 else "")
        last = self._ready.get(task, (0, -1))[1]
        return text + (f", after task {last}" if predecessor and last >= 0 else "")

    def _tail_detail(self, unit: Unit, start: int) -> str:
        spans, devices = self.trace.spans, self.trace.devices
        later = spans.end > start
        pids = np.unique(spans.pid[later & (spans.kind == KERNEL)]).tolist()
        names = [devices[pid] for pid in pids if pid in devices]
        if names:
            return "still computing: " + ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        home = bool((later & (spans.kind == COPY)).any())
        return "results on their way home" if home else "the run's end"
