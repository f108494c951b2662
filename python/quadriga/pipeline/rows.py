# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/rows.py: an array as a source: chunks of its rows, without a copy.
"""Arrays, or dicts of arrays of as many rows, cut along their first axis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import InvalidArgument, InvalidType


class Rows:
    """A source that gives as many rows as it was told, once it was.

    Attributes
    ----------
    given : array or dict of arrays
    total : int
        Rows of the arrays.
    chunk : int
        Rows of each chunk; 0: not chosen yet.
    """

    def __init__(self, given: Any, chunk: int) -> None:
        self.given = given
        arrays = list(given.values()) if isinstance(given, Mapping) else [given]
        self.total = len(arrays[0]) if arrays[0].ndim else -1
        if any(each.ndim == 0 or len(each) != self.total for each in arrays):
            shapes = ", ".join(str(each.shape) for each in arrays)
            raise InvalidArgument(
                f"a source's arrays need equal numbers of rows, got shapes {shapes}"
            )
        self.chunk = chunk

    def __len__(self) -> int:
        return -(-self.total // max(1, self.chunk))

    def __iter__(self) -> Iterator[Any]:
        for first in range(0, self.total, max(1, self.chunk)):
            yield self.part(first, self.chunk)

    def part(self, first: int, rows: int) -> Any:
        """A chunk as it is yielded."""
        if isinstance(self.given, Mapping):
            return {name: each[first : first + rows] for name, each in self.given.items()}
        return self.given[first : first + rows]


def rows_of(chunks: Any, rows: int | None) -> Rows | None:
    """A source that is an array or a dict of arrays; None of what is an iterable of chunks."""
    is_dict = isinstance(chunks, Mapping)
    if not isinstance(chunks, np.ndarray) and not is_dict:
        if rows is not None:
            raise InvalidArgument(
                f"rows= is for sources that are arrays, got {type(chunks).__name__}"
            )
        return None
    if is_dict and (not chunks or any(not isinstance(x, np.ndarray) for x in chunks.values())):
        raise InvalidType("a dict as a source needs arrays with equal numbers of rows")
    return Rows(chunks, rows or 0)
