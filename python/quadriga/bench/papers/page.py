# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/bench/papers/page.py: one HTML page of plots beside the papers' numbers.
"""The page that shows what was simulated beside what the papers state."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from ...errors import Unavailable
from .experiments import EXPERIMENTS, POLICIES, Experiment
from .published import published
from .reached import reached

Row = dict[str, Any]

_STYLE = """
body { font: 15px/1.45 sans-serif; max-width: 70em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; } td, th { padding: .15em .8em; text-align: right; }
td:first-child, th:first-child { text-align: left; } svg { max-width: 100%; height: auto; }
"""


def _plot(experiment: Experiment, rows: Sequence[Row]) -> Markup:
    """A panel for each policy, a curve for each line; what the paper states as crosses."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Unavailable(
            f"--page needs matplotlib: pip install quadriga[demo] ({error})"
        ) from error
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    panels = figure.subplots(1, len(POLICIES), sharey=True)
    for axes, policy in zip(panels, POLICIES, strict=True):
        of_policy = [row for row in rows if row["policy"] == policy]
        for line in dict.fromkeys(row["line"] for row in of_policy):
            drawn = [row for row in of_policy if row["line"] == line]
            axes.plot(
                [row["x"] for row in drawn],
                [row["value"] for row in drawn],
                marker=".",
                label=line,
            )
        stated = published(experiment.name)
        if experiment.name != "wu-3.10":
            axes.plot([each.x for each in stated], [each.value for each in stated], "kx")
        else:
            for each in stated:
                axes.axhline(each.value, color="grey", linewidth=0.7, linestyle=":")
        axes.set_title(policy)
        axes.set_xlabel(experiment.x)
        axes.grid(alpha=0.3)
    # Once all is drawn: panels share the axis, and a limit that is set ends its growth.
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel(experiment.unit)
    panels[-1].legend(fontsize="x-small")
    text = io.StringIO()
    # The same picture for the same numbers.
    with rc_context({"svg.hashsalt": experiment.name}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return Markup(text.getvalue()[text.getvalue().index("<svg") :])


def _stated(experiment: Experiment) -> Markup:
    """The paper's numbers as a table, with where each stands."""
    found = published(experiment.name)
    if not found:
        return Markup("<p>The paper states no number for this figure.</p>")
    head = f"<tr><th>system</th><th>{escape(experiment.x)}</th><th>{experiment.unit}</th>"
    lines = [
        f"<tr><td>{escape(each.system)}</td><td>{each.x:g}</td><td>{each.value:,.5g}</td>"
        f"<td>{escape(each.source)}</td></tr>"
        for each in found
    ]
    return Markup(f"<table>{head}<th>where</th></tr>{''.join(lines)}</table>")


def _ours(rows: Sequence[Row]) -> Markup:
    """The best of each line, by policy."""
    lines = dict.fromkeys(row["line"] for row in rows)
    body = []
    for line in lines:
        cells = []
        for policy in POLICIES:
            of_line = [row for row in rows if (row["line"], row["policy"]) == (line, policy)]
            best = max(of_line, key=lambda row: row["value"])
            cells.append(f"<td>{best['value']:,.4g} at {best['x']:g}</td>")
        body.append(f"<tr><td>{escape(line)}</td>{''.join(cells)}</tr>")
    head = "".join(f"<th>{policy}</th>" for policy in POLICIES)
    return Markup(f"<table><tr><th>simulated, largest</th>{head}</tr>{''.join(body)}</table>")


def _reached(rows: Sequence[Row]) -> Markup:
    """Ratios beside the least that is expected of them; bold where that isn't reached."""
    body = [
        Markup(
            "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.3f}</td><td>{:g}</td></tr>"
        ).format(
            Markup("") if each.value >= each.least else Markup(' style="font-weight: bold"'),
            each.figure, each.policy, each.what, each.where, each.value, each.least,
        )
        for each in reached(rows)
    ]  # fmt: skip
    head = "<tr><th>figure</th><th>policy</th><th>ratio</th><th>where</th><th>value</th>"
    return (
        Markup(f"<table>{head}<th>at least</th></tr>") + Markup("").join(body) + Markup("</table>")
    )


def _assumed(folder: Path) -> Markup:
    """What the descriptions say about themselves."""
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return Markup("").join(
        Markup("<li><b>{}</b>: {}</li>").format(each["name"], each["source"]) for each in found
    )


def page(rows: Sequence[Row], machines: Path) -> str:
    """The text of the page.

    Parameters
    ----------
    rows : sequence of dict
        As `running.run` yields them.
    machines : path
        The folder of the machines' descriptions.
    """
    parts = [
        Markup(
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Papers redone</title>'
            f"<style>{_STYLE}</style><h1>Experiments of papers, redone by the virtual clock</h1>"
            "<p>Curves are simulated on descriptions of the papers' machines; no time is measured. "
            "Crosses and dotted lines are numbers that the papers state in their text or tables. "
            "Cores that divide tasks work in crews of as many cores as a tile has rows of fine "
            "tiles; a crew takes the time of a list schedule of the fine tasks.</p><ul>"
        ),
        _assumed(machines),
        Markup("</ul>"),
        _reached(rows),
    ]
    for name, experiment in EXPERIMENTS.items():
        of_figure = [row for row in rows if row["figure"] == name]
        if not of_figure:
            continue
        parts += [
            Markup("<h2 id='{}'>{}</h2><p>{} The paper: {}</p>").format(
                name, experiment.title, f"{experiment.paper}.", experiment.says
            ),
            _plot(experiment, of_figure),
            _ours(of_figure),
            _stated(experiment),
        ]
    return str(Markup("\n").join(parts)) + "</html>\n"
