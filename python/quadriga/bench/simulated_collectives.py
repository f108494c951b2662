# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/simulated_collectives.py: collectives between nodes, by the virtual clock.
"""Broadcast, reduce and allreduce on nodes that aren't here, against what their ports allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import program

Row = dict[str, Any]

KINDS = ("broadcast", "reduce", "allreduce")
NODES = (2, 4, 8)
_MIB = 1 << 20
_SIZES = {"1GiB": 1 << 30, "32MiB": 32 * _MIB}
# Eight nodes of h200x8, one port each; four K40 a node, as in the dissertation.
_H200: dict[str, object] = {"nodes": 8, "ports": 1, "rate": 50_000_000_000, "latency": 2000}
_K40: dict[str, object] = {"ports": 1, "rate": 5_000_000_000, "latency": 2000, "bytes": 32_000_000}
# By core, by node and 50 at random.
ORDERS = 52

ROWS = [
    *(f"simulated-{kind}-{size}" for kind in KINDS for size in _SIZES),
    *(f"simulated-{kind}-orders" for kind in KINDS),
    "simulated-broadcast-ports",
    *(f"simulated-{kind}-k40x4-{nodes}" for kind in ("broadcast", "reduce") for nodes in NODES),
]


def _run(machine: str, **options: object) -> Row:
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    (row,) = program.run(
        program.OURS, "schedules", "--machine", program.machine_file(machine), *words
    )
    return row


def run(note: Callable[[str], None]) -> Iterator[Row]:
    """All rows; milliseconds beside what must cross the busiest node's ports."""
    plain: dict[str, Row] = {}
    for kind in KINDS:
        for size, nbytes in _SIZES.items():
            note(f"{kind} of {size} on 8 nodes")
            row = _run("h200x8", **_H200, kind=kind, bytes=nbytes)
            plain[f"{kind}-{size}"] = row
            yield {**row, "case": f"simulated-{kind}-{size}"}
    for kind in KINDS:
        note(f"{kind} of 1 GiB on 8 nodes with ranks in {ORDERS} orders")
        row = _run("h200x8", **_H200, kind=kind, bytes=1 << 30, orders=ORDERS)
        row |= {"value": row["spread"], "unit": "slowest / fastest order", "bound": 1.0}
        yield {**row, "case": f"simulated-{kind}-orders"}
    note("broadcast with a port a GPU")
    ports = {**_H200, "ports": 8, "at": "devices"}
    row = _run("h200x8", **ports, kind="broadcast", bytes=1 << 30)
    one = plain["broadcast-1GiB"]
    row |= {"value": one["value"] / row["value"], "unit": "times one port's rate", "bound": 8.0}
    yield {**row, "case": "simulated-broadcast-ports"}
    for kind in ("broadcast", "reduce"):
        for nodes in NODES:
            note(f"{kind} of 32 MB on {nodes} nodes of four K40")
            row = _run("k40x4", **_K40, kind=kind, nodes=nodes)
            yield {**row, "case": f"simulated-{kind}-k40x4-{nodes}"}
