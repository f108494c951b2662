# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/command.py: `quadriga bench papers` on the command line.
"""The command that redoes the papers' figures."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from ...beside import target_of, write_beside
from ...errors import Error, Unavailable
from ...linalg.run import shown
from .. import program
from .experiments import EXPERIMENTS, POLICIES
from .page import page
from .reached import reached
from .running import Row, run


def _show(rows: list[Row]) -> None:
    table = Table(box=None)
    for name in ("figure", "line", "x", *POLICIES):
        table.add_column(name, justify="left" if name in ("figure", "line") else "right")
    found: dict[tuple[str, str, float], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["figure"], row["line"], row["x"]), {})[row["policy"]] = row
    for (figure, line, x), by_policy in found.items():
        values = [f"{by_policy[policy]['value']:,.4g}" for policy in POLICIES]
        table.add_row(figure, line, f"{x:g}", *values)
    Console().print(table)
    ratios = Table(box=None)
    for name in ("figure", "policy", "ratio", "where", "value", "at least"):
        ratios.add_column(name, justify="right" if name in ("value", "at least") else "left")
    for each in reached(rows):
        style = None if each.value >= each.least else "bold"
        ratios.add_row(each.figure, each.policy, each.what, each.where, f"{each.value:.3f}",
                       f"{each.least:g}", style=style)  # fmt: skip
    Console().print(ratios)


_BETWEEN_LINES = 10.0  # seconds


@contextmanager
def _progress() -> Iterator[Callable[[float], object]]:
    """What is to be called with the part that is done: a bar on a terminal, lines elsewhere."""
    begin = last = time.monotonic()

    def line(done: float) -> None:
        nonlocal last
        now = time.monotonic()
        if done <= 0 or now - last < _BETWEEN_LINES:
            return
        last = now
        left = (now - begin) * (1 - done) / done
        print(f"papers: {100 * done:.0f} %, at most {left:.0f} s left", file=sys.stderr, flush=True)

    with shown("papers", sys.stderr.isatty() or line) as progress:
        assert progress is not None
        yield progress


@click.command()
@click.option("--figure", "figures", multiple=True, type=click.Choice(list(EXPERIMENTS)),
              help="Only this figure or table; may be given several times.")  # fmt: skip
@click.option("--quick", is_flag=True, help="Fewer and smaller runs: some seconds in all.")
@click.option("--page", "to", type=click.Path(dir_okay=False, path_type=Path),
              help="Write an HTML page of plots beside the papers' numbers.")  # fmt: skip
@click.option("--resume", type=click.Path(dir_okay=False, path_type=Path),
              help="Keep runs in this file, and simulate none of it again, unless the program or "
                   "its machine has changed.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per run, a line each.")
def papers(
    figures: tuple[str, ...], quick: bool, to: Path | None, resume: Path | None, as_json: bool
) -> None:
    """Redo figures of other systems' papers by the virtual clock, by three policies.

    Machines are described in machines/papers, which names what is assumed.
    """
    rows: list[Row] = []
    try:
        if to is not None:
            target_of(to)
        with _progress() as progress:
            for row in run(figures, quick, progress, resume):
                rows.append(row)
                if as_json:
                    print(json.dumps(row), flush=True)
        if to is not None:
            write_beside(to, page(rows, program.package() / "machines" / "papers"))
    except Error as error:
        print(f"quadriga bench: {error}", file=sys.stderr)
        sys.exit(3 if isinstance(error, Unavailable) else 1)
    if not as_json:
        _show(rows)
    if to is not None:
        print(f"{to}: written", file=sys.stderr)
