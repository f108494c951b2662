# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/formats.py: sparse products as a table of matrices and formats.
"""A row for each matrix and format: bytes, rate, share of the read rate, beside the best peer."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from . import table
from .table import number

Row = dict[str, Any]

_WIDTH = 140

_COLUMNS = (
    "matrix", "format", "bytes/element", "ms", "GB/s", "of read rate", "GFLOP/s", "peer", "ratio",
)  # fmt: skip


def show(rows: list[Row], console: Console) -> None:
    """Prints products by format, then solves as other benchmarks."""
    products = [row for row in rows if not row["case"].startswith("cg-")]
    if products:
        _show_products(products, console)
    for row in products:
        if row.get("refused"):
            console.print(f"{row['case']}: {row['refused']}", soft_wrap=True, markup=False)
    table.show([row for row in rows if row["case"].startswith("cg-")], console)


def _show_products(rows: list[Row], console: Console) -> None:
    made = [row for row in rows if row["value"]]
    peers = list(dict.fromkeys(name for row in made for name in row["peers"]))
    rates = [row["read_bytes_per_second"] for row in made if row["read_bytes_per_second"]]
    notes = [f"{rows[0]['machine']['cpu']}, {rows[0]['machine']['cores']} cores"]
    notes += [f"peer: the faster of {'; '.join(peers)}"] if peers else []
    notes += [f"read rate beside: {number(max(rates) / 1e9)} GB/s"] if rates else []
    shown = Table(title="spmv", box=box.SIMPLE, pad_edge=False, caption="\n".join(notes))
    for name in _COLUMNS:
        shown.add_column(name, justify="left" if name in _COLUMNS[:2] else "right", no_wrap=True)
    for row in made:
        layout, _, name = row["case"].partition("-")
        size = row["dense_rows"]
        share = row.get("share_of_read_rate")
        shown.add_row(
            f"{name}: {row['n']:,} rows, {row['elements']:,} elements",
            f"{layout} {size} x {size}" if size > 1 else layout,
            number(row["bytes_per_element"]),
            number(1e3 * row["seconds"]),
            number(row["bytes_per_second"] / 1e9),
            "" if share is None else f"{share:.0%}",
            number(row["value"]),
            number(row["reference_value"]),
            number(row["ratio"]),
        )
    # As wide as it is: wrapped rows cannot be compared.
    Console(file=console.file, width=_WIDTH).print(shown)
