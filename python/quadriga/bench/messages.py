# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/messages.py: messages between two processes, in turn with MPI's.
"""Latency and bandwidth of messages between two processes of this host."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

from ..errors import Error, Unavailable
from ..machine import Machine
from . import program, simulated_collectives

Row = dict[str, Any]

_log = logging.getLogger("quadriga")

KINDS = ["pingpong", "bandwidth"]
COLLECTIVES = ["bcast", "reduce", "allreduce", "allgather", "alltoall"]
COLLECTIVE_SIZES = (16, 4 << 10, 256 << 10, 8 << 20)
SIZES = (8, 512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 8 << 20, 64 << 20)
# Emulated ones without GPUs, whose link is stated.
DEVICES = "emulated:2,memory=600MiB,peer=2GB/s"
DEVICE_SIZES = (8, 4 << 10, 64 << 20)
# What only large messages between devices are measured by, beside KINDS[0] and "posted".
_OF_LARGE = ["first", "second", "opened", "contiguous", "submatrix", "triangle", "transpose"]
# Batches of a run; the medians of runs that alternate count.
_BATCHES = 9


def case_of(kind: str, size: int) -> str:
    """The name of a row, such as ``pingpong-4KiB``."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % unit == 0:
            return f"{kind}-{size // unit}{name}"
    return f"{kind}-{size}B"


ROWS = [case_of(kind, size) for kind in KINDS for size in SIZES] + simulated_collectives.ROWS
ROWS += [f"devices-{case_of(kind, DEVICE_SIZES[-1])}" for kind in _OF_LARGE]


def run(kind: str, sizes: Sequence[int], repeat: int, pin: str) -> Iterator[Row]:
    """A row for each size: ours and MPI's, if there is one, in turn, each in new processes."""
    yield from _compared(kind, [kind], sizes, repeat, pin)


def run_collectives(sizes: Sequence[int], repeat: int, pin: str) -> Iterator[Row]:
    """A row for each collective and size, between two processes."""
    for row in _compared("collectives", COLLECTIVES, sizes, repeat, pin):
        yield {**row, "case": f"collectives-{row['case']}"}


def run_devices(sizes: Sequence[int], repeat: int, devices: str) -> Iterator[Row]:
    """Rows of messages between memory of devices of two processes, beside the link that is stated.

    The bound is a copy within one process by the same link.
    """
    stated = _stated_rate(devices)
    for size in sizes:
        words = ["--devices", devices, "--sizes", size, "--repeat", repeat]
        for row in program.run(program.OURS, "device-messages", *words):
            is_rate = row["unit"] == "bytes/s"
            yield {
                **row,
                "case": f"devices-{case_of(row['case'], size)}",
                "unit": row["unit"].split(" ")[0],
                "reference": "stated link" if is_rate and stated else None,
                "reference_value": stated if is_rate else None,
                "devices": devices,
                "predicted": row.get("predicted"),
                "runs": repeat,
            }


def _predicted(rows: Sequence[Row]) -> float | None:
    """What `Communicator.predict` said, in the unit of the value; collectives have none."""
    said = [row["predicted"] for row in rows if "predicted" in row]
    return median(said) if said else None


def _stated_rate(devices: str) -> float | None:
    """Bytes a second between the first two devices; None if they aren't emulated."""
    machine = Machine.parse(devices)
    found = machine.devices
    if len(found) < 2 or found[0].kind != "emulated":
        return None
    ends = (found[0].name, found[1].name)
    rates = [r.bytes_per_second for r in machine.routes if (r.source, r.target) == ends]
    return rates[0] if rates else None


def _compared(
    kind: str, cases: Sequence[str], sizes: Sequence[int], repeat: int, pin: str
) -> Iterator[Row]:
    """A row for each case and size: ours and MPI's alternate."""
    words = ",".join(map(str, sizes))
    pinned = ["--pin", pin] if pin else []
    ours: list[Row] = []
    theirs: list[Row] = []
    has_mpi = program.built(program.MPI)
    for _ in range(repeat):
        ours += program.run(
            program.OURS,
            *("messages", "--case", kind, "--sizes", words, "--repeat", _BATCHES),
            *pinned,
        )
        try:
            if has_mpi:
                theirs += program.run(program.MPI, kind, _BATCHES, words, *([pin] if pin else []))
        except Unavailable:
            has_mpi = False
        except Error as error:  # An installation that can't run here, mostly.
            _log.warning("messages: MPI failed: %s", error)
            has_mpi = False
    for size in sizes:
        for case in cases:
            of_size = [row for row in ours if row["bytes"] == size and row["case"] == case]
            reference = [row for row in theirs if row["bytes"] == size and row["case"] == case]
            best = max if kind == "bandwidth" else min
            yield {
                "case": case_of(case, size),
                "value": median(row["value"] for row in of_size),
                "unit": of_size[0]["unit"],
                "reference": reference[0]["reference"] if reference else None,
                "reference_value": (
                    median(row["value"] for row in reference) if reference else None
                ),
                "bound": best(row["bound"] for row in of_size),
                "predicted": _predicted(of_size),
                "bytes": size,
                "pin": pin or None,
                "runs": repeat,
            }
