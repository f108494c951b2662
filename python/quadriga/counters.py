# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/counters.py: what an engine counts, as dataclasses that notebooks can show.
"""Counters of a run: bytes by link, hits and misses, busy times, parts of the lower bound."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass, field
from typing import Any

from . import _core
from .machine import Device


@dataclass(frozen=True)
class LinkCounters:
    """Traffic from one memory space to another.

    Attributes
    ----------
    source, target : int
        Memory spaces: 0 is the host's, the others are those of devices with a memory, in order.
    bytes, copies : int
    source_name, target_name : str
        ``"host"``, or the device's name.
    """

    source: int
    target: int
    bytes: int
    copies: int
    source_name: str = ""
    target_name: str = ""


@dataclass(frozen=True)
class DeviceCounters:
    """What happened on one device.

    Attributes
    ----------
    name : str
    tasks : int
        Tasks that ran here.
    hits, misses : int
        Operands present or in flight when their task was issued; operands that had to be copied.
    prefetches, evictions, write_backs : int
        Copies started before their task was issued; replicas evicted to make room; copies home.
    steals : int
        Tasks taken from another device's or worker's queue.
    most_bytes : int
        Peak use of its memory since the engine was created.
    copying_seconds, computing_seconds, overlap_seconds : float
        Time with at least one copy to or from it; with at least one kernel (without devices but
        the host's cores: the sum of their times); with both.
    busy_seconds : dict of str to float
        Sums over its streams, by kind: copy_in, copy_out, peer_in, compute and panel.
    arena_bytes, library_bytes : int
        Memory allocated for tiles; memory that libraries took before, on a device short of memory.
    """

    name: str
    tasks: int
    hits: int
    misses: int
    prefetches: int
    evictions: int
    write_backs: int
    steals: int
    most_bytes: int
    copying_seconds: float
    computing_seconds: float
    overlap_seconds: float
    busy_seconds: dict[str, float] = field(default_factory=dict)
    arena_bytes: int = 0
    library_bytes: int = 0

    @property
    def overlap(self) -> float:
        """The fraction of the possible overlap of copies and kernels that was reached, 0 to 1."""
        possible = min(self.copying_seconds, self.computing_seconds)
        return self.overlap_seconds / possible if possible > 0 else 1.0


@dataclass(frozen=True)
class MessageCounters:
    """Messages that were tasks, and ended well.

    Attributes
    ----------
    sent, received : int
    bytes_sent, bytes_received : int
    bytes_direct : int
        Of both together: from or to memory of a device, not by way of the host.
    collectives : int
    """

    sent: int = 0
    received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    bytes_direct: int = 0
    collectives: int = 0


@dataclass(frozen=True)
class RenamingCounters:
    """What `renaming` did.

    Attributes
    ----------
    renamed, refused : int
        Writes that got other memory than what they overwrite; writes that wait for readers, as
        that memory is used up.
    copied : int
        Copies of renamed content into its array.
    most_bytes : int
        Peak of the memory.
    """

    renamed: int = 0
    refused: int = 0
    copied: int = 0
    most_bytes: int = 0


@dataclass(frozen=True)
class Counters:
    """Totals since the engine was created or its counters were reset.

    Attributes
    ----------
    links : tuple of LinkCounters
    devices : tuple of DeviceCounters
    submitted, ended, failed : int
        Tasks.
    elapsed_seconds : float
        From the first submission to the last end.
    spill_bytes : int
        Peak size of the host buffers for tiles without an array; of the file where cores alone
        compute. Elsewhere the file is the device ``"spill"``.
    work_seconds, critical_path_seconds : float
        Sum of kernel times; the longest chain of dependent kernels, by their times (on the host's
        cores alone only with a trace).
    messages : MessageCounters
    renaming : RenamingCounters
    """

    links: tuple[LinkCounters, ...]
    devices: tuple[DeviceCounters, ...]
    submitted: int
    ended: int
    failed: int
    elapsed_seconds: float
    spill_bytes: int
    work_seconds: float
    critical_path_seconds: float
    messages: MessageCounters = MessageCounters()
    renaming: RenamingCounters = RenamingCounters()

    @property
    def bytes(self) -> int:
        """Bytes over all links."""
        return sum(link.bytes for link in self.links)

    @property
    def host_bytes(self) -> int:
        """Bytes between the host and devices, both ways."""
        return sum(link.bytes for link in self.links if 0 in (link.source, link.target))

    @property
    def overlap(self) -> float:
        """The fraction of the possible overlap of copies and kernels that was reached, 0 to 1."""
        possible = sum(min(d.copying_seconds, d.computing_seconds) for d in self.devices)
        return sum(d.overlap_seconds for d in self.devices) / possible if possible > 0 else 1.0

    def as_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists and numbers, for JSON."""
        return asdict(self) | {"bytes": self.bytes, "host_bytes": self.host_bytes}

    def _shown(self) -> list[DeviceCounters]:
        # Every engine has a place for what needs the host; it tells nothing unless it was used.
        return [each for each in self.devices if each.name != "host cpu" or each.tasks]

    def __str__(self) -> str:
        lines = [
            f"{self.ended} of {self.submitted} tasks in "
            f"{_core.format_seconds(self.elapsed_seconds)}, {self.failed} failed; "
            f"{_core.format_bytes(self.bytes)} moved"
        ]
        lines += [
            f"  {d.name}: {d.tasks} tasks, {d.hits} hits, {d.misses} misses, "
            f"{d.evictions} evictions, {d.steals} steals, "
            f"computing {_core.format_seconds(d.computing_seconds)}, overlap {_overlap(d)}"
            for d in self._shown()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(
            f"<th>{title}</th>"
            for title in ("device", "tasks", "hits", "misses", "evictions", "steals", "computing",
                          "copying", "overlap")
        )  # fmt: skip
        rows = "".join(_device_row(device) for device in self._shown())
        first, *_ = str(self).splitlines()
        return (
            f"<p>{html.escape(first)}</p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )


def _overlap(device: DeviceCounters) -> str:
    """In per cent, if there was anything to overlap."""
    return f"{device.overlap:.0%}" if device.copying_seconds and device.computing_seconds else "-"


def _device_row(device: DeviceCounters) -> str:
    cells = [
        html.escape(device.name),
        *(str(n) for n in (device.tasks, device.hits, device.misses, device.evictions)),
        str(device.steals),
        _core.format_seconds(device.computing_seconds),
        _core.format_seconds(device.copying_seconds),
        _overlap(device),
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def from_core(counted: dict[str, Any], found: tuple[Device, ...]) -> Counters:
    """The dataclasses from what the extension module counted on a machine's devices."""
    # Memory spaces are the host's and, in their order, those of the devices that have one.
    spaces = ["host", *(device.name for device in found if device.kind != "cpu")]
    links = tuple(
        LinkCounters(**link, source_name=spaces[link["source"]], target_name=spaces[link["target"]])
        for link in counted.pop("links")
    )
    devices = tuple(
        DeviceCounters(name=device.name, **counts)
        for device, counts in zip(found, counted.pop("devices"), strict=True)
    )
    messages = MessageCounters(**counted.pop("messages"))
    renaming = RenamingCounters(**counted.pop("renaming"))
    return Counters(links=links, devices=devices, messages=messages, renaming=renaming, **counted)
