# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/commands.py: `quadriga bench` on the command line.
"""The commands of `quadriga bench`, one for each benchmark."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from ..errors import Error, Unavailable
from . import formats, matrix, measure, table
from .papers.command import papers
from .rows import KEYS


def run(
    benchmark: str,
    as_json: bool,
    details: bool,
    check: bool,
    show: Callable[[list[measure.Row], Console], None] = table.show,
    **settings: Any,
) -> None:
    """Measures, and prints each row as it is measured, or all of them as a table."""
    progress = Console(stderr=True)
    function: Callable[..., Iterator[measure.Row]] = getattr(measure, benchmark)
    rows = []
    try:
        with progress.status(f"{benchmark}...") as status:
            for row in function(note=status.update, **settings):
                rows.append(row)
                if as_json:
                    shown = row if details else {key: row[key] for key in KEYS}
                    print(json.dumps(shown), flush=True)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    except Unavailable as error:
        _end(str(error), 3)
    except Error as error:
        _end(str(error), 1)
    if not as_json:
        show(rows, Console())
    missed = [row["case"] for row in rows if row.get("reached") is False]
    if check and missed:
        _end(f"targets missed: {', '.join(missed)}", 1)


def _end(message: str, status: int) -> None:
    print(f"quadriga bench: {message}", file=sys.stderr)
    sys.exit(status)


def _common(
    benchmark: str, repeat: int = 7
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options of every benchmark, and one --case for each of its cases."""
    options = [
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line."),
        click.option(
            "--details", is_flag=True, help="With --json, print all keys, including the target's."
        ),
        click.option("--check", is_flag=True, help="Exit with status 1 if a target is missed."),
        click.option(
            "--case",
            "cases",
            multiple=True,
            type=click.Choice(measure.CASES[benchmark]),
            help="Run only this case; may be given several times.",
        ),
        click.option("--repeat", default=repeat, show_default=True, type=click.IntRange(1)),
    ]

    def add(function: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@click.group()
def bench() -> None:
    """Measure Quadriga on this machine, each figure with a reference and a bound."""


@bench.command()
@_common("overhead")
@click.option("--cores", default=2, show_default=True, type=click.IntRange(1))
@click.option(
    "--tiles",
    default=64,
    show_default=True,
    type=click.IntRange(2),
    help="Tiles in each direction of the smaller matrix, for the cases decide.",
)
def overhead(**settings: Any) -> None:
    """Measure the cost of a task beyond its work, with StarPU as reference if it is installed."""
    run("overhead", **settings)


def _matrix_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options of the case `host`; the other cases are fixed by their names."""
    for option in (
        click.option("--devices", default="cpu", show_default=True, help="Devices for case host."),
        click.option("--tile", default=0, type=click.IntRange(0), help="Tile size for case host."),
        click.option("--n", default=4096, show_default=True, type=click.IntRange(1),
                     help="Order of the matrices of the case host."),
    ):  # fmt: skip
        function = option(function)
    return function


@bench.command()
@_common("gemm")
@_matrix_options
def gemm(**settings: Any) -> None:
    """Measure products: on this host against OpenBLAS, and out of core by the virtual clock."""
    run("gemm", **settings)


@bench.command()
@_common("potrf")
@_matrix_options
def potrf(**settings: Any) -> None:
    """Measure Cholesky: on this host against OpenBLAS, on several devices by the virtual clock."""
    run("potrf", **settings)


@bench.command()
@_common("streams", repeat=20)
def streams(**settings: Any) -> None:
    """Measure pipelines by the virtual clock against their bound, and the cost of a stage."""
    run("streams", **settings)


@bench.command()
@_common("spmv")
@click.option("--devices", default="cpu", show_default=True)
@click.option("--n", default=64, show_default=True, type=click.IntRange(1, 1024),
              help="Points of the grid, or nodes, in each of three dimensions.")  # fmt: skip
@click.option("--matrix", type=click.Path(dir_okay=False, path_type=Path),
              help="A Matrix Market or .npz file, for the cases *-file.")  # fmt: skip
def spmv(**settings: Any) -> None:
    """Measure sparse products by format, and conjugate gradients, beside SciPy or cuSPARSE."""
    run("spmv", show=formats.show, **settings)


@bench.command()
@click.argument("kinds", nargs=-1, metavar="[KIND]...")
@_common("messages", repeat=5)
@click.option("--size", "sizes", multiple=True, type=click.IntRange(1, 1 << 30),
              help="Bytes of a message; may be given several times.")  # fmt: skip
@click.option("--pin", default="", metavar="CORE,CORE", help="Bind the two processes to cores.")
@click.option("--devices", default="", help="Of the case devices: cuda, or emulated ones.")
def messages(kinds: tuple[str, ...], cases: tuple[str, ...], **settings: Any) -> None:
    """Measure messages between processes of this host, beside MPI if it was found.

    KIND is a case; `devices` are messages between memory of devices, `simulated` collectives
    between nodes, by the virtual clock.
    """
    run("messages", cases=[*kinds, *cases], **settings)


@bench.command()
@_common("copies", repeat=3)
@click.option("--devices", default="", help="A device list; by default the configured one.")
@click.option(
    "--sizes", default="", help="Sizes such as 4KiB,1MiB,1GiB; by default 4 KiB to 1 GiB."
)
@click.option("--quick", is_flag=True, help="Measure three sizes up to 64 MiB, once each.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="Write a description with these links, for QUADRIGA_MACHINE.")  # fmt: skip
def copies(**settings: Any) -> None:
    """Measure copies between the host and devices, among devices, and among processes."""
    run("copies", show=matrix.show, **settings)
    if settings["output"]:
        print(f"{settings['output']}: written", file=sys.stderr)


bench.add_command(papers)
