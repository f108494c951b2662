# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/matrix.py: rates of copies as matrices of kinds and sizes.
"""Tables of copies in GB/s: a row for each kind and pair of memories, a column for each size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console

from .. import _core
from .table import number

Row = dict[str, Any]

_GIGA = 1e9
_WORDS = {
    "h2d": "pinned, host to device",
    "d2h": "pinned, device to host",
    "both": "pinned, both ways",
    "pageable-h2d": "pageable, host to device",
    "pageable-d2h": "pageable, device to host",
    "runs-h2d": "by runs, host to device",
    "runs-d2h": "by runs, device to host",
    "same": "within a device",
    "peer": "peer",
    "peer-both": "peer, both ways",
    "peer-off": "peer, access off",
    "all-h2d": "all devices at once, from the host",
    "all-d2h": "all devices at once, to the host",
    "all-both": "all devices at once, both ways",
    "all-peer": "all devices at once, in a ring",
    "ipc": "memory of another process",
}


def show(rows: list[Row], console: Console) -> None:
    """Prints rates, then times, then what was left out and why."""
    if not rows:
        return
    rates = [row for row in rows if row["unit"] == "bytes/s" and row["value"]]
    lines = _matrix([row for row in rates if "run" not in row])
    lines += _by_runs([row for row in rates if "run" in row])
    lines += [
        f"{row['case']}: {_core.format_seconds(row['value'])}"
        for row in rows
        if row["unit"] == "s" and row["value"]
    ]
    lines += [
        f"left out: {_WORDS.get(row['kind'], row['kind'])}: {row['left_out']}"
        for row in rows
        if row.get("left_out")
    ]
    # As wide as it is: a matrix with wrapped rows can't be read.
    console.print("\n".join(lines), soft_wrap=True, markup=False, highlight=False)


def _matrix(rates: list[Row]) -> list[str]:
    if not rates:
        return []
    references = dict.fromkeys(row["reference"] for row in rates if row["reference"])
    sizes = sorted({row["bytes"] for row in rates})
    table = [["", *(_core.format_bytes(size) for size in sizes), "bound", "ratio"]]
    for heading, rows in _grouped(rates, "bytes"):
        table.append([heading])
        for ends, of_size in rows:
            last = of_size[max(of_size)]
            values = [of_size[size]["value"] if size in of_size else None for size in sizes]
            cells = [_giga(value) for value in [*values, last["bound"]]]
            table.append([f"  {ends}", *cells, number(last["ratio"])])
    title = f"copies on {_where(rates[0])}: GB/s by size of a copy"
    note = f"ratio: the largest copies to {' and '.join(references)}"
    return [title, *_aligned(table), *([note] if references else []), ""]


def _by_runs(rates: list[Row]) -> list[str]:
    if not rates:
        return []
    runs = sorted({row["run"] for row in rates})
    table = [["", *(_core.format_bytes(run) for run in runs), "one run", "bound"]]
    for heading, rows in _grouped(rates, "run"):
        table.append([heading])
        for ends, of_run in rows:
            last = of_run[max(of_run)]
            values = [of_run[run]["value"] if run in of_run else None for run in runs]
            cells = [_giga(value) for value in [*values, last["reference_value"], last["bound"]]]
            table.append([f"  {ends}", *cells])
    bytes_moved = _core.format_bytes(rates[0]["bytes"])
    beside = "while products run, " if rates[0].get("products") else ""
    where = _where(rates[0])
    title = f"copies by runs on {where}, {beside}of {bytes_moved}: GB/s by size of a run"
    return [title, *_aligned(table), ""]


def _where(row: Row) -> str:
    machine, commit = row["machine"], row["commit"]
    built = f", built from {commit}" if commit else ""
    return f"{machine['cpu']}, {machine['cores']} cores{built}"


def _giga(value: float | None) -> str:
    return number(None if value is None else value / _GIGA)


def _aligned(table: list[list[str]]) -> list[str]:
    """The first column to the left, numbers to the right; headings may stand over numbers."""
    full = [row for row in table if len(row) > 1]
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    lines = []
    for first, *cells in table:
        numbers = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=False))
        lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
    return lines


def _grouped(
    rates: Iterable[Row], column: str
) -> list[tuple[str, list[tuple[str, dict[float, Row]]]]]:
    """Rows by kind and pair of memories, in order of appearance, and by column."""
    kinds: dict[str, dict[str, dict[float, Row]]] = {}
    for row in rates:
        source, target = row["from"], row["to"]
        arrow = "↔" if row["kind"].endswith("both") else "→"
        ends = source if source == target else f"{source} {arrow} {target}"
        kinds.setdefault(row["kind"], {}).setdefault(ends, {})[row[column]] = row
    return [(_WORDS.get(kind, kind), list(pairs.items())) for kind, pairs in kinds.items()]
