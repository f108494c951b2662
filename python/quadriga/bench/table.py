# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/table.py: results as a table for people.
"""One row a case: value, reference, bound, and whether the target is reached."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

_MARKS = {True: "[green]reached[/]", False: "[red]missed[/]", None: ""}


def number(value: float | None) -> str:
    """Four digits, without exponents where people don't write them."""
    if value is None:
        return ""
    if value and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.3e}"
    digits = max(0, 3 - len(str(int(abs(value)))) + 1) if value else 0
    return f"{value:,.{digits}f}"


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """Prints the rows of one benchmark, what they ran on, and the commit."""
    if not rows:
        return
    machine, commit = rows[0]["machine"], rows[0]["commit"]
    title = f"{rows[0]['benchmark']} on {machine['cpu']}, {machine['cores']} cores"
    table = Table(title=title, caption=f"built from {commit}" if commit else None)
    table.add_column("case")
    for name in ("value", "reference", "ratio", "bound"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    table.add_column("compared with")
    table.add_column("target")
    for row in rows:
        table.add_row(
            row["case"],
            *(number(row[key]) for key in ("value", "reference_value", "ratio", "bound")),
            row["unit"],
            row["reference"] or "",
            f"{row.get('target', '')} {_MARKS[row.get('reached')]}".strip(),
        )
    console.print(table)
