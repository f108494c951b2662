# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/machine_text.py: a machine as a tree, as a table, and its copies as a matrix.
"""Plain lines of text, so that they are the same on terminals and in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .. import _core
from ..machine import Device, Machine, Node, Route

_GIGA = 1e9


@dataclass
class Branch:
    """A line of a tree, and what hangs on it."""

    text: str
    branches: list[Branch] = field(default_factory=list)

    def lines(self) -> list[str]:
        shown = [self.text]
        for number, branch in enumerate(self.branches):
            last = number == len(self.branches) - 1
            first, *rest = branch.lines()
            shown.append(("└── " if last else "├── ") + first)
            shown += [("    " if last else "│   ") + line for line in rest]
        return shown


def cores_text(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _by_ends(routes: Iterable[Route]) -> dict[tuple[str, str], Route]:
    """Those of any node of the host."""
    return {(route.source, route.target): route for route in routes if route.node is None}


def tree(machine: Machine, nodes: Sequence[Node]) -> list[str]:
    """NUMA nodes with their cores and devices, then NVLinks."""
    root = Branch(f"machine {machine.name}")
    rates = _by_ends(machine.routes)
    placed = {node.index: _node(node) for node in nodes}
    root.branches += placed.values()
    for device in machine.devices:
        if device.memory_bytes or not nodes:
            placed.get(device.node, root).branches.append(Branch(_device(device, rates)))
    nvlinks = [Branch(text) for text in _nvlinks(machine.routes)]
    if nvlinks:
        root.branches.append(Branch("NVLink", nvlinks))
    return root.lines()


def _node(node: Node) -> Branch:
    memory = f", {_core.format_bytes(node.memory_bytes)}" if node.memory_bytes else ""
    processors = f" (processors {node.processors})" if node.processors else ""
    return Branch(f"NUMA node {node.index}: {cores_text(node.cores)}{processors}{memory}")


def _device(device: Device, rates: dict[tuple[str, str], Route]) -> str:
    parts = [device.model or device.kind]
    if device.memory_bytes:
        parts.append(_core.format_bytes(device.memory_bytes))
    if device.cores:
        parts.append(cores_text(device.cores))
    parts += [text for text in (_slot(device),) if text]
    for ends, way in (("host", device.name), "in"), ((device.name, "host"), "out"):
        if ends in rates:
            parts.append(f"{_core.format_bytes_per_second(rates[ends].bytes_per_second)} {way}")
    return f"{device.name}: {', '.join(parts)}"


def _slot(device: Device) -> str:
    """PCIe generation, lanes and address, as far as they are known."""
    known = []
    if device.pcie_generation and device.pcie_lanes:
        known.append(f"PCIe {device.pcie_generation} x{device.pcie_lanes}")
    if device.pci_address:
        known.append(f"at {device.pci_address}")
    return " ".join(known)


def _nvlinks(routes: Iterable[Route]) -> list[str]:
    """Pairs of devices once each; those of one device that are alike share a line."""
    groups: dict[tuple[str, int, float], list[str]] = {}
    for route in routes:
        if route.nvlinks and route.source < route.target:
            key = (route.source, route.nvlinks, route.bytes_per_second)
            groups.setdefault(key, []).append(route.target)
    return [
        f"{source} – {', '.join(targets)}: {count} links, {_core.format_bytes_per_second(rate)}"
        for (source, count, rate), targets in groups.items()
    ]


def table(machine: Machine) -> list[str]:
    """Devices, one a line; empty columns are left out."""
    heads = ("device", "kind", "model", "memory", "cores", "node", "PCIe")
    rows = [
        (
            device.name,
            device.kind,
            device.model,
            _core.format_bytes(device.memory_bytes) if device.memory_bytes else "the host's",
            str(device.cores or ""),
            str(device.node) if device.node >= 0 else "",
            _slot(device).removeprefix("PCIe "),
        )
        for device in machine.devices
    ]
    return aligned([heads, *rows])


def copies(machine: Machine) -> list[str]:
    """Rates of single copies between memories in GB/s, and how many NVLinks they cross."""
    names = ["host"] + [device.name for device in machine.devices if device.memory_bytes]
    if len(names) < 2:
        return []
    routes = _by_ends(machine.routes)
    rows = [
        (f"from {source}", *(_rate(routes.get((source, target))) for target in names))
        for source in names
    ]
    return aligned([("GB/s", *(f"to {name}" for name in names)), *rows])


def _rate(route: Route | None) -> str:
    if route is None:
        return "–"
    nvlinks = f" (NV{route.nvlinks})" if route.nvlinks else ""
    return f"{route.bytes_per_second / _GIGA:.4g}{nvlinks}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of words in columns; those that are empty below their head are left out."""
    kept = [
        column
        for column in zip(*rows, strict=True)
        if any(cell for cell in column[1:]) or len(rows) == 1
    ]
    widths = [max(map(len, column)) for column in kept]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in zip(*kept, strict=True)
    ]
