# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/simulate.py: calls on machines that aren't here, and studies of their options.
"""`quadriga simulate`: one run with the usual report, or a table of policies, sizes, machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click

from .. import _core, policy
from ..beside import target_of
from ..errors import InvalidArgument, Unavailable
from ..linalg.estimates import Operation
from ..linalg.run import shown
from ..report import Trace, load
from .completing import files_and
from .files import need_apart, need_names
from .policy_name import eviction_option, policy_option
from .simulated import Outcome, Run, perform

_ALIASES = {"gemm": "matmul", "potrf": "cholesky", "posv": "cho_solve"}
_TYPES = ("float32", "float64", "complex64", "complex128")
_SWEPT = {"memory": str, "link": str, "tile": int, "devices": int, "n": int}
_OF_CALLS = ("tile", "n")
_MOST_RUNS = 1000


def _machine(
    context: click.Context, parameter: click.Parameter, text: str
) -> tuple[str, int | None]:
    """FILE, or FILE:N."""
    file, colon, count = text.rpartition(":")
    if colon and count.isdecimal():
        if int(count) < 1:
            raise click.BadParameter(f"{text!r}: expected at least one device")
        return file, int(count)
    return text, None


def _sweep(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, list[Any]] | None:
    """KEY=VALUE,VALUE,..."""
    if text is None:
        return None
    key, equals, values = text.partition("=")
    if key not in _SWEPT or not equals or not values:
        raise click.BadParameter(
            f"{text!r}: expected one of {', '.join(_SWEPT)} and its values, as memory=2GiB,4GiB"
        )
    try:
        listed = [_SWEPT[key](each.strip()) for each in values.split(",")]
        if key == "memory":
            for each in listed:
                _core.parse_bytes(each)
    except (ValueError, InvalidArgument) as error:
        raise click.BadParameter(f"{text!r}: {error}") from error
    if any(isinstance(each, int) and each < 1 for each in listed):
        raise click.BadParameter(f"{text!r}: expected values of at least 1")
    return key, listed


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns of equal width; the first two are flush left, the others are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).strip()


def _study(key: str, values: Sequence[str], outcomes: Sequence[Outcome]) -> Iterator[str]:
    rows = [(key, "policy", "time", "rate", "of bound", "moved", "tile", "tasks")]
    for value, each in zip(values, outcomes, strict=True):
        rate, part, found = each.flops_rate, each.of_bound, each.estimate
        tasks = found.tasks if found else each.again.tasks if each.again else 0
        rows.append((
            value,
            each.run.policy or "",
            _core.format_seconds(each.seconds),
            f"{rate / 1e9:,.0f} GFLOP/s" if rate is not None else "",
            f"{100 * part:.0f} %" if part is not None else "",
            _core.format_bytes(each.counters.host_bytes),
            str(found.tile) if found else "",
            str(tasks),
        ))  # fmt: skip
    return _table(rows)


def _plot(path: Path, key: str, values: Sequence[Any], lines: dict[str, list[Outcome]]) -> None:
    """A line of rates for each policy; the format follows from the file's name."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Unavailable(
            f"--plot needs matplotlib: pip install quadriga[demo] ({error})"
        ) from error
    from ..beside import beside

    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    numbers = [_core.parse_bytes(each) / 2**30 for each in values] if key == "memory" else None
    if numbers is None and all(isinstance(each, int) for each in values):
        numbers = list(values)
    places = numbers or list(range(len(values)))
    run = next(iter(lines.values()))[0].run
    for name, outcomes in lines.items():
        rates = [each.flops_rate for each in outcomes]
        drawn = [
            each.seconds if rate is None else rate / 1e9
            for each, rate in zip(outcomes, rates, strict=True)
        ]
        axes.plot(places, drawn, marker="o", label=name)
    if numbers is None:
        axes.set_xticks(places, [str(each) for each in values])
    sizes = f" of {' x '.join(map(str, run.sizes))}" if key != "n" else ""
    recorded = run.recorded.path if run.recorded is not None else ""
    axes.set_title(f"{run.operation}{sizes}, {run.dtype}" if run.operation else recorded)
    axes.set_xlabel({"memory": "memory of a device, GiB", "n": "order"}.get(key, key))
    axes.set_ylabel("GFLOP/s" if run.operation else "seconds")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(title="policy")
    kind = path.suffix.lstrip(".") or "png"
    if kind not in figure.canvas.get_supported_filetypes():
        raise InvalidArgument(
            f"{path}: no picture of that kind; expected .svg, .png or another of matplotlib's"
        )
    with beside(path) as (handle, _), open(handle, "wb", closefd=False) as file:
        figure.savefig(file, format=kind)


@click.command()
@click.argument("what", metavar="OPERATION|TRACE", shell_complete=files_and(*get_args(Operation)))
@click.option("--n", type=click.IntRange(1), help="Order; of a product also m and k.")
@click.option("--m", type=click.IntRange(1), help="Rows of a product, if not N.")
@click.option("--k", type=click.IntRange(1), help="Inner size of a product, if not N.")
@click.option("--right-sides", type=click.IntRange(1), default=1, help="Of cho_solve.  [1]")
@click.option("--dtype", type=click.Choice(_TYPES), default="float64", help="[float64]")
@click.option("--accumulate", is_flag=True, help="Add a product to what is there.")
@click.option(
    "--machine",
    callback=_machine,
    required=True,
    metavar="FILE[:N]",
    shell_complete=files_and(),
    help="A machine's description, and how many of its devices.",
)
@click.option(
    "--believed",
    type=click.Path(exists=True, dir_okay=False),
    metavar="STATED",
    help="Another description of these devices, by which plans and policies choose.",
)
@click.option("--memory", help="Memory of each device instead of the description's, as '2GiB'.")
@click.option("--link", help="Rate of each link to and from the host instead, as '12GB/s'.")
@policy_option()
@eviction_option()
@click.option("--tile", type=click.IntRange(1), help="Tile size, in rows and columns.")
@click.option("--seed", type=click.IntRange(0), default=1, help="Of a policy's choices.  [1]")
@click.option("--compare", is_flag=True, help="Simulate all policies, for a table.")
@click.option(
    "--sweep",
    callback=_sweep,
    metavar="KEY=VALUE,...",
    help="Simulate each value of memory, link, tile, devices or n, for a table.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A picture of the sweep, such as rates.svg; needs matplotlib.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a trace of the run, for `quadriga report`.",
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an HTML report of the run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object a run, a line each.")
def simulate(
    what: str,
    n: int | None,
    m: int | None,
    k: int | None,
    right_sides: int,
    dtype: str,
    accumulate: bool,
    machine: tuple[str, int | None],
    believed: str | None,
    memory: str | None,
    link: str | None,
    policy: str | None,
    eviction: str | None,
    tile: int | None,
    seed: int,
    compare: bool,
    sweep: tuple[str, list[Any]] | None,
    plot: Path | None,
    trace: Path | None,
    report: Path | None,
    as_json: bool,
) -> None:
    """Run OPERATION, or the tasks of a TRACE, without data on a described machine.

    OPERATION is matmul, cholesky or cho_solve; gemm, potrf and posv are their names in BLAS and
    LAPACK. TRACE is the trace of any program. Time is that of the virtual clock; all tasks are
    simulated, 100,000 in some seconds.
    """
    kind, sizes, recorded = _what(what, n, m, k, right_sides)
    if kind != "matmul" and (m or k or accumulate):
        raise click.UsageError("--m, --k and --accumulate are for products")
    if recorded is not None and (tile is not None or (sweep is not None and sweep[0] in _OF_CALLS)):
        raise click.UsageError("a trace has its own tiles and orders: leave --tile, --sweep n out")
    study = compare or sweep is not None
    if study and (trace or report):
        raise click.UsageError("--trace and --report are for one run, not for a table")
    if plot is not None and sweep is None:
        raise click.UsageError("--plot needs --sweep")
    if compare and policy is not None:
        raise click.UsageError("--compare simulates all policies: leave --policy out")
    inputs = {"--machine": Path(machine[0])} | ({"TRACE": Path(what)} if recorded else {})
    if believed is not None:
        inputs["--believed"] = Path(believed)
    outputs = {"--trace": trace, "--report": report, "--plot": plot}
    need_names(outputs)
    need_apart(inputs, outputs)
    for output in outputs.values():
        if output is not None:
            target_of(output)
    run = Run(
        kind, sizes, recorded, *machine, memory, link, policy, tile, dtype, accumulate, seed,
        eviction, believed,
    )  # fmt: skip
    if study:
        _print_study(run, compare, sweep, plot, as_json)
        return
    outcome = _one(run, trace, report, as_json)
    if as_json:
        click.echo(json.dumps(outcome.as_dict() | {"counters": outcome.counters.as_dict()}))
        return
    click.echo(str(outcome))
    for path, what in ((trace, "trace"), (report, "report")):
        if path is not None:
            click.echo(f"{path}: {what} written")


def _what(
    what: str, n: int | None, m: int | None, k: int | None, right_sides: int
) -> tuple[Operation | None, tuple[int, ...], Trace | None]:
    """An operation and its sizes, or a trace."""
    kind: Any = _ALIASES.get(what, what)
    if kind not in _ALIASES.values():
        if not Path(what).exists():
            names = ", ".join([*_ALIASES.values(), *_ALIASES])
            raise click.UsageError(f"{what!r} is no operation ({names}) and no file of a trace")
        if n is not None:
            raise click.UsageError("--n is for operations, not for a trace")
        return None, (), load(what)
    if n is None:
        raise click.UsageError("Missing option '--n'.")
    sizes = {"matmul": (m or n, n, k or n), "cholesky": (n,), "cho_solve": (n, right_sides)}
    return kind, sizes[kind], None


def _bar(name: str, as_json: bool) -> AbstractContextManager[Callable[[float], object] | None]:
    """Shows progress on a terminal."""
    return shown(name, sys.stderr is not None and sys.stderr.isatty() and not as_json)


def _one(run: Run, trace: Path | None, report: Path | None, as_json: bool) -> Outcome:
    with _bar("simulate", as_json) as progress:
        if report is None:
            return perform(run, trace, progress)
        import tempfile

        from .. import report as reports

        with tempfile.TemporaryDirectory() as folder:
            recorded = trace or Path(folder) / "trace.json"
            outcome = perform(run, recorded, progress)
            reports.write_report(recorded, report)
        return outcome


def _print_study(
    run: Run,
    compare: bool,
    sweep: tuple[str, list[Any]] | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    policies = list(policy.policies()) if compare else [run.policy or "default"]
    key, values = sweep or ("", [None])
    if len(values) * len(policies) > _MOST_RUNS:
        raise click.UsageError(f"{len(values) * len(policies)} runs; at most {_MOST_RUNS}")
    lines: dict[str, list[Outcome]] = {name: [] for name in policies}
    ordered: list[Outcome] = []
    swept: list[str] = []
    cases = [(value, name) for value in values for name in policies]
    with _bar("simulate", as_json) as progress:
        for value, name in cases:
            chosen = replace(run, policy=name if compare else run.policy)
            outcome = perform(chosen if sweep is None else chosen.changed(key, value))
            lines[name].append(outcome)
            ordered.append(outcome)
            swept.append("" if value is None else str(value))
            if progress is not None:
                progress(len(ordered) / len(cases))
            if as_json:
                found = {"sweep": {key: value}} if sweep else {}
                click.echo(json.dumps(found | outcome.as_dict()))
    if not as_json:
        for line in _study(key, swept, ordered):
            click.echo(line)
    if plot is not None:
        _plot(plot, key, values, lines)
        if not as_json:
            click.echo(f"{plot}: picture written")
