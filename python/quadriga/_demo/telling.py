# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/_demo/telling.py: what the demo prints, in the order in which it happens.
"""Lines, a table and bars for a terminal; nothing if only JSON is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..counters import Counters
from ..machine import Machine
from ..report import formats
from .check import Check
from .model import Model
from .solver import Run
from .terrain import Split, Terrain

_COLUMNS = "{:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>10}  {:>10}  {:>9}"
_HEADS = ("points", "factor", "solve", "check", "predict", "moved", "spilled", "RMSE")


def _spilled(counters: Counters) -> int:
    """In host buffers and in the spill file, each at its peak."""
    in_file = sum(each.most_bytes for each in counters.devices if each.name == "spill")
    return counters.spill_bytes + in_file


class Teller:
    """Tells people what happens; bars only on a terminal."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = Console(quiet=quiet, highlight=False, soft_wrap=True)
        self._bars = not quiet and self._console.is_terminal

    def begin(self, land: Terrain, split: Split) -> None:
        rows, columns = land.heights.shape
        self._console.print(
            f"[bold]Heights around the Jacksboro fault, learned from {len(split.learned):,} of"
            f" {land.heights.size:,} points"
        )
        self._line(
            "data",
            f"{rows} x {columns} heights {land.metres_per_column:.1f} m x"
            f" {land.metres_per_row:.1f} m apart (SRTM), standard deviation"
            f" {land.heights.std():.0f} m; {len(split.held_out):,} held out",
        )

    def setting(self, model: Model, machine: Machine, points: int, spill: Path | None) -> None:
        self._line(
            "model",
            f"Matérn 3/2, length scale {model.length_scale:,.0f} m, deviation"
            f" {model.variance**0.5:.0f} m, nugget {model.nugget:.1f} m² ({model.origin})",
        )
        devices = [
            f"{each.name} ({formats.size(each.memory_bytes)})" if each.memory_bytes else each.name
            for each in machine.devices
        ]
        self._line("devices", ", ".join(devices))
        triangle = formats.size(4 * points * (points + 1))
        where = f"the file {spill}" if spill else "host buffers"
        self._line(
            "matrix",
            f"{points:,} x {points:,} numbers, {formats.size(8 * points**2)}; its lower triangle"
            f" is {triangle}; computed tile by tile, what fits no device goes to {where}",
        )

    @contextmanager
    def table(self) -> Iterator[None]:
        self._console.print()
        self._console.print(f"[dim]{_COLUMNS.format(*_HEADS)}")
        yield
        self._console.print()

    def row(self, run: Run, rmse: float) -> None:
        phases = [formats.time(run.seconds[name]) for name in _HEADS[1:5]]
        moved, spilled = run.counters.bytes, _spilled(run.counters)
        cells = [f"{run.points:,}", *phases, formats.size(moved), formats.size(spilled)]
        self._console.print(_COLUMNS.format(*cells, f"{rmse:.1f} m"))

    def last(self, run: Run, facts: dict[str, Any]) -> None:
        """The largest run: its rate, traffic by link, overlap, distance to the bound."""
        self._line("rate", f"{formats.flops(run.flops_per_second)} in factor and solve")
        for link in run.counters.links:
            if link.bytes:
                way = f"{link.source_name} to {link.target_name}"
                text = f"{formats.size(link.bytes)} in {formats.plural(link.copies, 'copy')}"
                self._line("moved", f"{way}: {text}")
        self._line("spilled", f"at most {formats.size(_spilled(run.counters))} at once")
        overlap = facts["overlap"]
        if overlap["fraction"] is not None:
            self._line(
                "overlap",
                f"{formats.share(overlap['fraction'])} of the possible: copies and kernels at once"
                f" for {formats.time(overlap['seconds'])} of"
                f" {formats.time(overlap['possible_seconds'])}",
            )
        bound = facts["bound"]
        if bound:
            self._line(
                "bound",
                f"{formats.time(facts['seconds'])}, {bound['ratio']:.2f} times the lower bound"
                f" of {formats.time(bound['seconds'])} ({bound['limit']})",
            )

    def checks(self, checks: Sequence[Check]) -> None:
        for check in checks:
            mark = "[green]ok[/]" if check.passed else "[bold red]FAILED[/]"
            self._line(
                "check", f"{check.name}: {check.value:.1e}, at most {check.limit:.0e}  {mark}"
            )

    def end(self, findings: dict[str, Any]) -> None:
        for name in ("report.html", "kriging.png"):
            self._line("wrote", findings["files"][name])
        failed = [check["name"] for check in findings["checks"] if not check["passed"]]
        if failed:
            self._console.print(f"[bold red]Not accepted[/]: {'; '.join(failed)}")
        else:
            self._console.print(f"[bold green]Accepted[/] after {findings['seconds']:.1f} s")

    def refused(self, points: int, reason: str) -> None:
        self._console.print(f"[bold red]{points:,} points are refused[/]:", escape(reason))

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[str, float], None]]:
        """A bar while something runs, gone afterwards."""
        if not self._bars:
            yield lambda _phase, _fraction: None
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(),
                   TimeElapsedColumn())  # fmt: skip
        with Progress(*columns, console=self._console, transient=True) as bars:
            task = bars.add_task(what, total=None)

            def show(phase: str, fraction: float) -> None:
                bars.update(task, description=f"{what}: {phase}", total=1.0, completed=fraction)

            yield show

    def _line(self, name: str, text: str) -> None:
        self._console.print(f"[dim]{name:>9}[/]  {text}")
