# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/calibrate.py: a description of this machine as it was measured.
"""`quadriga calibrate`: what plans and simulations need to know of a machine."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from .. import _core
from ..bench.calibration import calibrate as measured
from ..errors import InvalidArgument

_KERNEL = re.compile(r"(?P<device>.+)-(?P<kernel>[sdcz](gemm|syrk|trsm|potrf))-(?P<order>\d+)")
_FLOPS = {"gemm": 2.0, "syrk": 1.0, "trsm": 1.0, "potrf": 1 / 3}


@click.command()
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The description, for QUADRIGA_MACHINE and `quadriga simulate`.",
)
@click.option("--devices", help="A device list; by default the configured one.")
@click.option("--types", default="sd", help="Types of kernels, letters of sdcz.  [sd]")
@click.option(
    "--most", default=4096, type=click.IntRange(128), help="The largest order of a tile.  [4096]"
)
@click.option("--repeat", default=5, type=click.IntRange(1), help="Times of each.  [5]")
@click.option("--quick", is_flag=True, help="Fewer sizes, tiles up to 1024, each timed once.")
def calibrate(
    output: Path, devices: str | None, types: str, most: int, repeat: int, quick: bool
) -> None:
    """Measure this machine's links, kernels and the time of an operation.

    The file replaces what plans suppose (QUADRIGA_MACHINE=FILE), and lets `quadriga simulate`
    predict this machine's runs. Let nothing else run meanwhile.
    """
    from rich.console import Console

    try:
        with Console(stderr=True).status("calibrate...") as status:
            rows = measured(
                output, devices, types=types, most=most, repeat=repeat, quick=quick,
                note=status.update,
            )  # fmt: skip
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    for row in rows:
        if row.get("unit") in ("s", "times one") and row.get("value"):
            click.echo(_told(row))
    print(f"{output}: written", file=sys.stderr)


def _told(row: dict[str, object]) -> str:
    case, value = str(row["case"]), float(str(row["value"]))
    if row["unit"] != "s":
        return f"{case}: {value:.2f} times one alone"
    found = _KERNEL.fullmatch(case)
    if found is None:
        return f"{case}: {_core.format_seconds(value)}"
    order, kind = int(found["order"]), found["kernel"]
    complex_factor = 4 if kind[0] in "cz" else 1
    rate = _FLOPS[kind[1:]] * complex_factor * order**3 / value / 1e9
    return f"{case}: {_core.format_seconds(value)}, {rate:,.1f} GFLOP/s"
