# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/table.py: results as a table for people.
"""A table with a row for each case; empty columns are left out."""

from __future__ import annotations

from typing import Any, Literal

from rich import box
from rich.console import Console
from rich.table import Table

_MARKS = {True: "[green]✓[/]", False: "[red]✗ missed[/]", None: ""}
_NUMBERS = {"value", "predicted", "reference", "bound", "ratio"}


def number(value: float | None) -> str:
    """Four digits, without an exponent for usual sizes."""
    if value is None:
        return ""
    if value and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.3e}"
    digits = max(0, 3 - len(str(int(abs(value)))) + 1) if value else 0
    return f"{value:,.{digits}f}"


def _cells(row: dict[str, Any]) -> dict[str, str]:
    """What a row shows, by column."""
    scale, unit = (1e9, "GB/s") if row["unit"] == "bytes/s" else (1, row["unit"])
    found = {"case": row["case"]}
    keys = {"value": "value", "predicted": "predicted", "reference": "reference_value"}
    for name, key in {**keys, "bound": "bound"}.items():
        found[name] = number(None if row.get(key) is None else row[key] / scale)
    found["unit"] = unit
    found["ratio"] = number(row["ratio"])
    found["target"] = f"{row.get('target', '')} {_MARKS[row.get('reached')]}".strip()
    return found


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """Prints the rows of one benchmark, what they ran on, and what they are compared with."""
    if not rows:
        return
    machine, commit = rows[0]["machine"], rows[0]["commit"]
    title = f"{rows[0]['benchmark']} on {machine['cpu']}, {machine['cores']} cores"
    references = list(dict.fromkeys(row["reference"] for row in rows if row["reference"]))
    notes = [f"reference: {'; '.join(references)}"] if references else []
    notes += [f"built from {commit}"] if commit else []
    table = Table(title=title, box=box.SIMPLE, pad_edge=False, caption="\n".join(notes))
    cells = [_cells(row) for row in rows]
    for name in cells[0]:
        if any(each[name] for each in cells):
            justify: Literal["right", "left"] = "right" if name in _NUMBERS else "left"
            table.add_column(name, justify=justify, no_wrap=True)
    shown = [str(column.header) for column in table.columns]
    for each in cells:
        table.add_row(*(each[name] for name in shown))
    console.print(table)
