# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/parts.py: parts of arrays by counts, for collectives of any sizes.
"""Arrays divided among ranks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from ..arguments import whole
from ..errors import InvalidArgument
from .arrays import rows_of
from .layout import Layout

Array = Any
Part = tuple[int, Array, Layout | None]

_MOST = 2**62


def divided(
    array: Array | Sequence[Array],
    counts: Sequence[int] | None,
    displs: Sequence[int] | None,
    ranks: int,
) -> list[Array]:
    """A part of an array for each rank, along its first axis; or the arrays of a list."""
    if counts is None:
        if not isinstance(array, list | tuple):
            raise InvalidArgument("expected counts, or a list of an array for each rank")
        if len(array) != ranks:
            raise InvalidArgument(f"{len(array)} arrays; expected {ranks}")
        return list(array)
    sizes = numbers("counts", counts)
    begins = [0, *accumulate(sizes)][:-1] if displs is None else numbers("displs", displs)
    if len(sizes) != ranks or len(begins) != ranks:
        raise InvalidArgument(f"{len(sizes)} counts, {len(begins)} displs; expected {ranks}")
    rows = rows_of(array)
    for rank, (begin, size) in enumerate(zip(begins, sizes, strict=True)):
        if size < 0 or begin < 0 or begin + size > len(rows):
            raise InvalidArgument(
                f"rank {rank}: {size} rows from row {begin} on; the array has {len(rows)}"
            )
    return [rows[begin : begin + size] for begin, size in zip(begins, sizes, strict=True)]


def given(arrays: Sequence[Array | None], layouts: Sequence[Layout | None] | None) -> list[Part]:
    """Each array with its rank and layout; None: nothing for that rank."""
    if layouts is not None and len(layouts) != len(arrays):
        raise InvalidArgument(f"{len(layouts)} layouts; expected {len(arrays)}")
    return [
        (rank, array, layouts[rank] if layouts else None)
        for rank, array in enumerate(arrays)
        if array is not None
    ]


def blocks(array: Array, ranks: Sequence[int]) -> list[Part]:
    """Equal blocks of an array for some ranks, in order."""
    count = len(ranks)
    if count == 0:
        return []
    rows = rows_of(array)
    if len(rows) % count:
        raise InvalidArgument(
            f"an array of shape {rows.shape} can't be divided into {count} blocks"
        )
    size = len(rows) // count
    return [(r, rows[i * size : (i + 1) * size], None) for i, r in enumerate(ranks)]


def numbers(name: str, given: Sequence[int]) -> list[int]:
    """Whole numbers of rows; what would be cut to some is a mistake."""
    return [whole(name, each, -_MOST, _MOST) for each in given]
