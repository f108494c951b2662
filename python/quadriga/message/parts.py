# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/parts.py: parts of arrays by counts, for collectives of any sizes.
"""Arrays divided among ranks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

from ..arguments import whole
from ..errors import InvalidArgument, InvalidType
from .arrays import rows_of, shape_of
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


def of_ranks(
    array: Array | Sequence[Array | None],
    counts: Sequence[int] | None,
    displs: Sequence[int] | None,
    ranks: int,
    layouts: Sequence[Layout | None] | None = None,
) -> list[Part]:
    """What is divided among all ranks, with its ranks."""
    return given(divided(array, counts, displs, ranks), layouts)


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


def elements_of(array: Array, counts: Sequence[int] | None, ranks: int) -> list[int]:
    """How many elements of an array are each rank's, by its counts of rows; else equal parts."""
    if array is None:
        raise InvalidArgument("sendarray is None; expected an array")
    if counts is None:
        rows = [len(blocks(array, range(ranks))[0][1])] * ranks
    else:
        rows = numbers("counts", counts)
    width = prod(shape_of(array)[1:])
    return [whole("elements of a rank", size * width, -_MOST, _MOST) for size in rows]


def numbers(name: str, given: Sequence[int]) -> list[int]:
    """Whole numbers, of rows or ranks; what would be cut to some is a mistake."""
    try:
        listed = list(given)
    except TypeError:
        raise InvalidType(f"{name} is {given!r}; expected a list of whole numbers") from None
    return [whole(name, each, -_MOST, _MOST) for each in listed]


def neighbors(
    destinations: Sequence[int], sources: Sequence[int] | None
) -> tuple[list[int], list[int]]:
    """The ranks that get something, and those that give; by default the same."""
    to = numbers("destinations", destinations)
    return to, to if sources is None else numbers("sources", sources)


def is_rank(root: Any, rank: int) -> bool:
    """Whether a root is this rank. What is no number is refused where all ranks hear of it."""
    if not hasattr(root, "__index__") or shape_of(root):
        return False
    try:
        return operator.index(root) == rank
    except TypeError:  # an array of one number that isn't whole
        return False
