# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/cli/report.py: a trace as a page, a picture, a graph or numbers.
"""Reports on traces, or on parts of them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Literal

import click

from ..beside import write_beside
from .files import need_apart, need_names

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def _time(text: str) -> float:
    """Seconds of a time as people write it: 250us, 12ms, 1.5s; seconds without a unit."""
    number = text.rstrip("nuµms")
    try:
        seconds = float(number) * _UNITS[text[len(number) :] or "s"]
    except (ValueError, KeyError):
        seconds = -1.0
    if not math.isfinite(seconds) or seconds < 0:
        raise click.BadParameter(
            f"{text!r} is not a time; expected 0 or more, such as 250us, 12ms or 1.5s"
        )
    return seconds


def _run(text: str) -> int | Literal["last"]:
    if text == "last":
        return "last"
    if not text.isdecimal():
        raise click.BadParameter(f"{text!r} is not a run; expected a number from 1, or last")
    return int(text)


def _file(**options: Any) -> click.Path:
    return click.Path(dir_okay=False, path_type=Path, **options)


@click.command()
@click.argument("traces", metavar="TRACE...", nargs=-1, required=True, type=_file())
@click.option("-o", "--output", type=_file(), help="The HTML file; TRACE with .html by default.")
@click.option("--run", type=_run, metavar="N|last", help="Report on one run of the trace.")
@click.option("--from", "start", type=_time, metavar="TIME", help="Omit events before this time.")
@click.option("--to", "end", type=_time, metavar="TIME", help="Omit events after this time.")
@click.option("--small", is_flag=True, help="Draw less: about 100 KB instead of up to 5 MB.")
@click.option("--svg", type=_file(), help="Write the timeline as an SVG picture.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")
@click.option("--dot", type=_file(), help="Write the task graph for Graphviz.")
@click.option("--perfetto", type=_file(), help="Write a trace for Perfetto, with rates and arrows.")
def report(
    traces: tuple[Path, ...],
    output: Path | None,
    run: int | Literal["last"] | None,
    start: float | None,
    end: float | None,
    small: bool,
    svg: Path | None,
    as_json: bool,
    dot: Path | None,
    perfetto: Path | None,
) -> None:
    """Write an HTML report of a trace, which may be compressed with gzip.

    A run is a period of work between two idle moments, such as one of several calls. The times of
    --from and --to start with the run, or with the trace if there is no --run.

    Traces of several ranks make one page that draws the messages of their tasks as arrows.
    """
    from .. import report as reports

    trace = traces[0]
    need_names({"--output": output, "--svg": svg, "--dot": dot, "--perfetto": perfetto})
    if len(traces) > 1:
        if any((run, start, end, small, svg, as_json, dot, perfetto)):
            raise click.UsageError("traces of several ranks take no option but --output")
        _of_world(traces, output or _page_of(trace))
        return
    target = output or _page_of(trace)
    need_apart(
        {"TRACE": trace}, {"--output": target, "--svg": svg, "--dot": dot, "--perfetto": perfetto}
    )
    found = reports.part(reports.load(trace), run=run, start=start, end=end)
    write_beside(target, reports.to_html(found, small=small))
    if svg is not None:
        write_beside(svg, reports.to_svg(found))
    if dot is not None:
        write_beside(dot, reports.to_dot(found))
    if perfetto is not None:
        write_beside(perfetto, reports.to_perfetto(found))
    if as_json:
        click.echo(json.dumps({"output": str(target)} | reports.summary(found), default=str))
    else:
        click.echo(reports.summary_text(found))
        click.echo(f"{target}: written")


def _of_world(traces: tuple[Path, ...], target: Path) -> None:
    """One page of all ranks' traces."""
    from .. import report as reports

    for trace in traces:
        need_apart({"TRACE": trace}, {"--output": target})
    write_beside(target, reports.to_world_html([reports.load(trace) for trace in traces]))
    click.echo(f"{target}: written")


def _page_of(trace: Path) -> Path:
    """The page beside a trace."""
    plain = trace.with_suffix("") if trace.suffix == ".gz" else trace
    return plain.with_suffix(".html")
