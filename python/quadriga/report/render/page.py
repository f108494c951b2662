# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/report/render/page.py: fills the HTML template with a run's figures and pictures.
"""The report: one HTML file without external resources."""

from __future__ import annotations

import os
from pathlib import Path

import jinja2

from ...beside import write_beside
from .. import formats
from ..analysis.analysis import Analysis
from ..analysis.summary import is_late, largest_loss, stream_text, summarize, verdict
from ..trace.reading import load
from ..trace.trace import Trace
from . import drawing, glance, panels
from .timeline import MEANINGS, Timeline, why_css

_MOST_FOUND = 20
_ALONE = 0.95  # of all kernels' time: if less, the page says that kernels shared devices


def to_html(trace: Trace, *, small: bool = False) -> str:
    """The report on a run, as one HTML page without external resources.

    Parameters
    ----------
    trace : Trace
    small : bool, optional
        Draw fewer shapes: about 100 KB for a run of thousands of events.

    Returns
    -------
    str
        The page's text, under 5 MB for a million events; the same for the same trace.
    """
    run = Analysis(trace)
    detail = drawing.SMALL if small else drawing.FULL
    facts, timeline, states = summarize(run), Timeline(run, detail), panels.states(run)
    template = environment().get_template("report.html")
    text = template.render(
        facts=facts,
        name=Path(trace.path).name,
        source=glance.source(facts),
        sentence=verdict(facts)[0],
        loss=largest_loss(facts),
        tiles=glance.tiles(facts),
        bounds=glance.bounds(facts),
        states=states,
        states_legend=panels.states_legend(states),
        timeline=timeline,
        devices=panels.sections(trace) + timeline.whole(),
        why_not_started=panels.why_not_started(run),
        host_only=trace.host_only,
        ticks=panels.ticks(trace),
        use=panels.use(run, detail),
        ways=panels.ways(run, detail),
        other_ways=max(0, len(run.ways) - panels.MOST_WAYS),
        matrix=panels.matrix(run),
        counters=panels.counters(facts, trace),
        kernels=panels.kernels(facts, timeline),
        copies=[
            row | {"css": why_css(row["why"]), "meaning": MEANINGS.get(row["why"], "")}
            for row in facts["copies"]
        ],
        gaps=run.gaps(),
        phases=panels.phases(run),
        streams=[stream | {"text": stream_text(stream)} for stream in facts["pipelines"]],
        late=facts["late"] if is_late(facts) else None,
        several_streams=panels.has_several_streams(run),
        table=any(row["of_table"] is not None for row in facts["kernels"]),
        shared=any(row["alone"] < _ALONE for row in facts["kernels"]),
        whole=trace.end,
        most_found=_MOST_FOUND,
    )
    return formats.printable(text)


def write_report(trace_path: str | os.PathLike[str], out_path: str | os.PathLike[str]) -> Trace:
    """Read a trace and write the report on it.

    Parameters
    ----------
    trace_path, out_path : path-like

    Returns
    -------
    Trace
        The trace that was read.

    Raises
    ------
    TraceError
        If the file isn't a trace; nothing is written.
    OSError
        If the report can't be written; what was there stays.
    """
    trace = load(trace_path)
    write_beside(out_path, to_html(trace))
    return trace


def environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for formatter in (formats.time, formats.size, formats.share, formats.count, formats.rate):
        environment.filters[formatter.__name__] = formatter
    environment.filters["plural"] = formats.plural
    return environment
