# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/indexed.py: sources that tell sizes before content.
"""Chunks by number, and the sizes of all of them."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from ..errors import InvalidArgument, InvalidType


class IndexedSource(Sequence[Any]):
    """A source that gives any chunk by its number, and knows the sizes of all of them.

    Parameters
    ----------
    read : sequence or callable
        ``read[i]`` or ``read(i)`` is chunk `i`, as a source yields it.
    sizes : iterable of float
        By number, in any unit: only which is larger counts.

    Raises
    ------
    InvalidType
        If `read` gives no chunk by its number.
    InvalidArgument
        If a size isn't a finite number of at least 0, or `read` has a length and sizes another one.

    Examples
    --------
    >>> import numpy as np
    >>> from quadriga.pipeline import IndexedSource
    >>> source = IndexedSource(lambda number: np.full(number, 1.0), sizes=range(3))
    >>> len(source), source[2].tolist()
    (3, [1.0, 1.0])
    """

    def __init__(self, read: Sequence[Any] | Callable[[int], Any], sizes: Iterable[float]) -> None:
        by_number = getattr(read, "__getitem__", None)
        if isinstance(read, (Mapping, np.ndarray)) or not (by_number or callable(read)):
            raise InvalidType(
                f"a source with sizes gives any chunk by its number, as read[i] or read(i); got "
                f"{type(read).__name__}"
            )
        self.read = read
        self._at: Callable[[int], Any] = by_number or read  # type: ignore[assignment]
        self.sizes = _checked(sizes)
        self.failed: int | None = None  # the chunk that a run couldn't read
        if hasattr(read, "__len__") and len(read) != len(self.sizes):
            raise InvalidArgument(f"{len(self.sizes)} sizes are given for {len(read)} chunks")

    @property
    def is_kept(self) -> bool:
        """Whether the program has its chunks anyway."""
        return isinstance(self.read, (list, tuple, collections.deque))

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, number: int) -> Any: ...
    @overload
    def __getitem__(self, number: slice) -> list[Any]: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"chunk {number} of {len(self)}")
        number %= len(self)
        try:
            return self._at(number)
        except (IndexError, StopIteration) as error:
            raise InvalidArgument(
                f"sizes tell of chunk {number}, and the source has none of that number"
            ) from error

    def __repr__(self) -> str:
        return f"<IndexedSource: {len(self)} chunks>"


def _checked(sizes: Iterable[float]) -> np.ndarray[Any, Any]:
    try:
        found = np.asarray(
            sizes if hasattr(sizes, "__len__") else list(sizes), np.float64, order="C"
        )
    except (TypeError, ValueError) as error:
        raise InvalidType(f"sizes are numbers, one for each chunk: {error}") from error
    if found.ndim != 1:
        raise InvalidType(f"sizes are numbers, one for each chunk; got shape {found.shape}")
    for number in np.flatnonzero(~(np.isfinite(found) & (found >= 0)))[:1]:
        raise InvalidArgument(
            f"the size of chunk {number} is {found[number]}; expected a number, at least 0"
        )
    return found


def indexed(chunks: Any, sizes: Iterable[float] | None) -> IndexedSource | None:
    """A source whose sizes are known; None of others."""
    if isinstance(chunks, IndexedSource):
        if sizes is not None:
            raise InvalidArgument("an IndexedSource has its sizes; expected no others")
        return chunks
    return None if sizes is None else IndexedSource(chunks, sizes)


def given_by(source: Iterator[Any] | IndexedSource, number: int) -> Any:
    """The chunk that a run asks for; StopIteration at the end."""
    if not isinstance(source, IndexedSource):
        return next(source)
    try:
        return source[number]
    except BaseException as error:
        error.add_note(f"reading chunk {number}")
        source.failed = number
        raise
