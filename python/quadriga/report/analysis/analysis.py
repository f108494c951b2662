# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/analysis/analysis.py: what a run did with its time, from the events.
"""Kernels, copies, bytes and each device's use; why devices waited is gaps.py's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..trace.header import BOUNDS
from ..trace.trace import COPY, HOST, KERNEL, Spans, Trace
from .counters import busy
from .gaps import Gap, Idleness, Unit
from .intervals import Integers, Intervals, busy_before, common_length, singly
from .phases import Phases, phases

_ALONE = 0.95  # of a kernel's time without another one, for it to count as alone


@dataclass(frozen=True)
class DeviceUse:
    """How one device spent the run, in nanoseconds; the parts add up to units times the run.

    A device is one unit, a CPU whose cores work by themselves one a core.
    """

    pid: int
    name: str
    units: list[Unit]
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

    def share(self, end: int) -> float:
        """Of the run's time that the device computed."""
        return self.computing / (end * len(self.units))


def alone_time(kernels: Spans) -> Integers:
    """How long each kernel of a unit ran without another one."""
    single = singly(kernels.start, kernels.end)
    before = busy_before(single.start, single.end, kernels.end)
    return before - busy_before(single.start, single.end, kernels.start)


def _of_table(kernels: Spans) -> float | None:
    """Their time as a multiple of what the machine's table says; None if it says nothing."""
    known = kernels.take(kernels.expected > 0)
    return int(known.duration.sum()) / int(known.expected.sum()) if len(known) else None


def _median_seconds(taken: Integers) -> float | None:
    """The middle one of sorted times; None if there is none."""
    return int(taken[len(taken) // 2]) / 1e9 if len(taken) else None


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
        """What each device did that runs tasks."""
        files = self.files
        found = self.trace.devices.items()
        return [self._use(pid, name) for pid, name in found if name not in files]

    @cached_property
    def files(self) -> set[str]:
        """Names of the devices that only store tiles."""
        described = (self.trace.header.get("machine") or {}).get("devices", [])
        return {each["name"] for each in described if each.get("kind") == "file"}

    def unsubmitted(self) -> int:
        """Of all units' nanoseconds not started: those before the next task was submitted."""
        units = [unit for use in self.devices for unit in use.units]
        return sum(self._idleness.unsubmitted(unit) for unit in units)

    @cached_property
    def _idleness(self) -> Idleness:
        return Idleness(self.trace)

    def _use(self, pid: int, name: str) -> DeviceUse:
        copies, units = self.busy(pid, COPY), self._idleness.units(pid)
        hidden = sum(common_length(unit.busy, copies) for unit in units)
        computing = sum(unit.busy.length for unit in units)
        parts = [self._idleness.parts(unit) for unit in units]
        waited, not_ready, not_started, finished = (sum(part) for part in zip(*parts, strict=True))
        possible = min(self.busy(pid, KERNEL).length, copies.length)
        return DeviceUse(
            pid=pid,
            name=name,
            units=units,
            hidden=hidden,
            alone=computing - hidden,
            waited=waited,
            not_ready=not_ready,
            not_started=not_started,
            finished=finished,
            overlap_possible=possible,
        )

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
        parts = [unit.kernels for use in self.devices for unit in use.units]
        alone = np.concatenate([np.zeros(0, np.int64), *map(alone_time, parts)])
        spans = Spans.join(parts)
        total = max(int(spans.duration.sum()), 1)
        rows = []
        for name in np.unique(spans.name):
            own = spans.name == name
            taken = np.sort(spans.duration[own])
            by_itself = np.sort(spans.duration[own & (alone >= _ALONE * spans.duration)])
            rows.append(
                {
                    "name": self.trace.labels[int(name)],
                    "alone": int(alone[own].sum()) / max(int(taken.sum()), 1),
                    "median_alone_seconds": _median_seconds(by_itself),
                    "of_table": _of_table(spans.take(own)),
                    "count": len(taken),
                    "seconds": int(taken.sum()) / 1e9,
                    "share": int(taken.sum()) / total,
                    "shortest_seconds": int(taken[0]) / 1e9,
                    "median_seconds": _median_seconds(taken),
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
        """Bytes into devices, out of them and between them; to the spill file and from it."""
        moved = {"in": 0, "out": 0, "peer": 0, "to_file": 0, "from_file": 0}
        for (source, target), spans in self.ways.items():
            if target in self.files:
                kind = "to_file"
            elif source in self.files:
                kind = "from_file"
            else:
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

    @cached_property
    def phases(self) -> dict[int, Phases]:
        """When each device with copies started and ended, by pid."""
        found = {use.pid: phases(self.trace, use.pid, use.units[0].busy) for use in self.devices}
        return {pid: seen for pid, seen in found.items() if seen is not None}

    def gaps(self, most: int = 10) -> list[Gap]:
        """The longest times without a kernel on some device, longest first."""
        found = [
            gap
            for use in self.devices
            for unit in use.units
            for gap in self._idleness.gaps(unit, most)
        ]
        return sorted(found, key=lambda gap: (-gap.length, gap.start, gap.device))[:most]
