# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/stage_table.py: statistics of stages as lines of text.
"""A table of stages, of `StageStats`, which know this table: so no type of theirs is named here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Column = tuple[str, Callable[[Any], str]]  # title, and text

# Terminals that are narrower than all of them lose the last ones.
CHUNKS: Column = ("chunks", lambda stage: str(stage.chunks))
_SO_FAR: tuple[Column, ...] = (
    ("a second", lambda stage: f"{stage.chunks_per_second:.3g}"),
    ("occupancy", lambda stage: f"{100 * stage.occupancy:.0f} %"),
    ("mean queue", lambda stage: f"{stage.mean_queue:.3g}"),
)
QUEUE: Column = ("queue", lambda stage: str(stage.queue))
_TIMES: tuple[Column, ...] = (
    ("latency", lambda stage: f"{stage.latency_median:.3g}"),
    ("99 %", lambda stage: f"{stage.latency_99:.3g}"),
    ("acquire", lambda stage: f"{stage.acquire_seconds:.3g}"),
    ("process", lambda stage: f"{stage.busy_seconds:.3g}"),
    ("reserve", lambda stage: f"{stage.reserve_seconds:.3g}"),
)


def printable(name: str) -> str:
    """A name as it may be shown on a terminal: control characters and the like are escaped.

    >>> print(printable("clear" + chr(27) + "[2J"))
    clear\\x1b[2J
    """
    if name.isprintable():
        return name
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in name
    )


def table(stages: Sequence[Any]) -> list[str]:
    """A line of titles and one of each stage. Times are in seconds, since the start of the run."""
    return aligned(stages, [[stage.name] for stage in stages], ["stage"], (CHUNKS, *_SO_FAR))


def aligned(
    stages: Sequence[Any],
    first: list[list[str]],
    titles: list[str],
    columns: tuple[Column, ...],
) -> list[str]:
    """Cells of each stage and what is told of it, to the right but for names."""
    columns += _TIMES
    first = [[printable(cell) for cell in cells] for cells in first]
    rows = [[*titles, *(title for title, _ in columns)]]
    for stage, cells in zip(stages, first, strict=True):
        rows.append([*cells, *(text(stage) for _, text in columns)])
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
