# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/machine.py: machines: devices, memory spaces and links, found or described.
"""Machines: devices, memories and links."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass, fields
from typing import Any

from . import _core
from .completion import hides
from .errors import InvalidType


@hides("is_bare_host", "only_stores")
@dataclass(frozen=True)
class Device:
    """A device of a machine.

    Attributes
    ----------
    name, kind : str
        `kind` is ``"cpu"``, ``"emulated"``, ``"cuda"``, ``"file"``, or one that a backend added.
    memory_bytes : int
        0 if the device works on the host's memory.
    cores, compute_streams : int
        CPU cores; kernels that may run at once.
    model, pci_address, pcie_generation, pcie_lanes
        Empty or 0 if unknown.
    node : int
        The host's nearest NUMA node; -1 if unknown.
    """

    name: str
    kind: str
    memory_bytes: int = 0
    cores: int = 0
    compute_streams: int = 1
    model: str = ""
    pci_address: str = ""
    pcie_generation: int = 0
    pcie_lanes: int = 0
    node: int = -1

    @property
    def only_stores(self) -> bool:
        """Whether no task runs there: a file, to which tiles go that the host has no room for."""
        return self.kind == "file"

    @property
    def is_bare_host(self) -> bool:
        """Whether the device only runs tasks that need the host: a CPU without compute cores."""
        return self.kind == "cpu" and self.cores == 0


@dataclass(frozen=True)
class Link:
    """A link; concurrent copies share its rate.

    Attributes
    ----------
    name : str
    bytes_per_second, latency_seconds : float
    runs : tuple of (float, float)
        The fraction of the rate that copies of separate runs reach: pairs of bytes per run and
        fraction, shortest first; empty if unknown.
    """

    name: str
    bytes_per_second: float
    latency_seconds: float = 0.0
    runs: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Route:
    """A route of copies: names of both ends, the links crossed, and the rate of one copy."""

    source: str
    target: str
    links: tuple[str, ...]
    bytes_per_second: float
    nvlinks: int = 0
    node: int | None = None
    """Of copies whose end on the host lies on this NUMA node alone; None: on any."""


@dataclass(frozen=True)
class Node:
    """A NUMA node of the host: its memory, and the cores near it (`processors`: "0-3,8")."""

    index: int
    memory_bytes: int
    cores: int
    processors: str = ""


def host_nodes() -> tuple[Node, ...]:
    """The NUMA nodes of this computer."""
    return tuple(Node(*row) for row in _core.host_nodes())


@hides("core")
class Machine:
    """Devices, memories and links, discovered or described.

    Made by `host`, `parse`, `from_file` and `from_json`; `Engine` takes it.

    Examples
    --------
    >>> machine = Machine.parse("emulated:2,memory=64MiB")
    >>> [device.name for device in machine.devices]
    ['emulated0', 'emulated1']
    >>> machine.devices[0].memory_bytes
    67108864
    """

    def __init__(self, core: _core.Machine) -> None:
        self._core = core
        self._description: dict[str, Any] = json.loads(core.to_json())

    @classmethod
    def host(cls) -> Machine:
        """This computer's cores, as many as affinity and cgroups allow."""
        return cls(_core.Machine.host())

    @classmethod
    def parse(cls, devices: str) -> Machine:
        """A machine from a device list such as ``"emulated:4,memory=64MiB"`` or ``"cpu:2"``.

        Parameters
        ----------
        devices : str
            Items joined by ``;``, each a kind, a number and options.

        Raises
        ------
        InvalidArgument
            If the list is malformed; the message names the part and what is accepted.
        Unavailable
            If there are no such devices.
        """
        return cls(_core.Machine.parse(devices))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Machine:
        """A machine described by a JSON file; raises `IoError`, and what `from_json` raises."""
        return cls(_core.Machine.from_file(os.fspath(path)))

    @classmethod
    def from_json(cls, text: str) -> Machine:
        """A machine described by JSON; raises `InvalidArgument`, which names the error in it."""
        return cls(_core.Machine.from_json(text))

    def with_spill(self, file: str | os.PathLike[str], *, measures: bool = True) -> Machine:
        """The same machine with a file as a further memory space, the device ``"spill"``.

        `Engine(..., spill=file)` runs on it: tiles without an array go there when the host's
        buffers are full; on cores alone all such tiles lie in the file instead. Nothing changes if
        the machine has such a file already, and the file isn't made here.

        Parameters
        ----------
        file : path-like
            Its disk says how much it may hold.
        measures : bool
            Whether the disk's rates are measured, in about a quarter of a second, once for each
            disk, unless the setting `spill_rate` states them. Otherwise they are 1 GB/s.
        """
        return Machine(self._core.with_spill(os.fspath(file), measures))

    def to_json(self) -> str:
        """The description as JSON; `from_json` reads it back."""
        return self._core.to_json()

    def __reduce__(self) -> tuple[Any, ...]:
        return Machine.from_json, (self.to_json(),)

    @property
    def core(self) -> _core.Machine:
        """The extension module's machine."""
        return self._core

    @property
    def name(self) -> str:
        """The machine's name."""
        return str(self._description.get("name", ""))

    @property
    def devices(self) -> tuple[Device, ...]:
        """Its devices, in the order of their indices."""
        known = {field.name for field in fields(Device)}
        return tuple(
            Device(
                memory_bytes=each.get("memory", 0),
                **{key: value for key, value in each.items() if key in known},
            )
            for each in self._description["devices"]
        )

    @property
    def links(self) -> tuple[Link, ...]:
        """The links that routes cross."""
        return tuple(
            Link(
                name,
                link["bandwidth"],
                link.get("latency", 0.0),
                tuple((float(run), share) for run, share in link.get("runs", {}).items()),
            )
            for name, link in self._description["links"].items()
        )

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes of copies between the host and devices, and between devices."""
        rates = {link.name: link.bytes_per_second for link in self.links}
        return tuple(
            Route(
                route["from"],
                route["to"],
                tuple(route["links"]),
                min(rates[link] / route["links"].count(link) for link in route["links"]),
                route.get("nvlinks", 0),
                route.get("node"),
            )
            for route in self._description["routes"]
        )

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The host's NUMA nodes; empty if the description has none."""
        return tuple(
            Node(node["index"], node["memory"], node["cores"], node.get("processors", ""))
            for node in self._description.get("nodes", [])
        )

    def __repr__(self) -> str:
        return f"<Machine {self.name!r}: {', '.join(device.name for device in self.devices)}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(d.name)}</td><td>{html.escape(d.model or d.kind)}</td>"
            f"<td>{_core.format_bytes(d.memory_bytes) if d.memory_bytes else 'the host’s'}</td>"
            f"<td>{'for what needs the host' if d.is_bare_host else d.cores or ''}</td></tr>"
            for d in self.devices
        )
        links = "".join(
            f"<li>{html.escape(link.name)}: "
            f"{_core.format_bytes_per_second(link.bytes_per_second)}</li>"
            for link in self.links
        )
        return (
            f"<p><b>{html.escape(self.name)}</b></p><table><thead><tr><th>device</th><th>kind</th>"
            f"<th>memory</th><th>cores</th></tr></thead><tbody>{rows}</tbody></table>"
            f"<ul>{links}</ul>"
        )


def core_of(name: str, given: str | Machine | None) -> _core.Machine | None:
    """What an argument `name` says, a device list or a machine, as the extension module takes it.

    Raises
    ------
    InvalidType
        If it is neither.
    """
    if isinstance(given, str):
        given = Machine.parse(given)
    if given is not None and not isinstance(given, Machine):
        raise InvalidType(f"{name} is {given!r}; expected a device list or a Machine")
    return given.core if given is not None else None
