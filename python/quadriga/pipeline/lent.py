# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/lent.py: arrays that a source has yielded, while their chunk lasts.
"""A source that fills one buffer again and again would change chunks that still wait.

Invariants
  1. An array that a source yields can't be written by it until the chunk has gone, or the source
     has ended; stages get a view that can. A write raises where the source makes it, and a note
     explains the error.
  2. Memory that can also be written past that array (a slice of a larger one that somebody holds, a
     bytearray) isn't guarded so. What chunks have of it while the source works may not be in what
     it yields next: it may have filled that memory again, so the run ends with an error.
  3. Other memory may come again, as a table that all chunks share. Views of it that were made
     before it was first yielded can still write it, and nothing tells of them: so a sample of its
     content is kept, and the run ends with an error if that has changed when it comes again
     while a chunk has it.
  4. With `reuses` a chunk gets copies instead, before the source is asked again.
  5. A flat_map is such a source of parts, but these are often views of the chunk that they are made
     of, and may overlap: all of their memory is as that of 3, and they stay writable to it.
"""

from __future__ import annotations

import bisect
import collections
import contextlib
import sys
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from ..errors import InvalidArgument
from ..host_arrays import empty_of
from ..results import span_of
from .changed import meet
from .chunk import Chunk
from .indexed import IndexedSource

# Of containers, whose arrays the program has anyway.
_CONTAINERS: tuple[Any, ...] = ([], (), {}.values(), {}.items(), collections.deque(), set())
_KEPT = tuple(type(iter(each)) for each in _CONTAINERS) + (type(reversed([])), reversed)

Array = np.ndarray[Any, Any]


def _references_by_one_view() -> int:
    """Of an array that only one view of it knows; which others count is up to Python's version."""
    view = np.zeros(1)[:]
    base = view.base
    return sys.getrefcount(base)


_HELD_BY_ONE_VIEW = _references_by_one_view()


def lending(
    source: Iterator[Any] | IndexedSource, reuses: bool | None, buffers: _core.HostBuffers | None
) -> Lent | Copies | None:
    """What a source's chunks pass first; None if nothing is to be done."""
    if reuses:
        return Copies(buffers)
    is_kept = source.is_kept if isinstance(source, IndexedSource) else isinstance(source, _KEPT)
    return None if is_kept else Lent(is_checked=reuses is None)


def lending_parts(reuses: bool | None, buffers: _core.HostBuffers | None) -> Lent | Copies | None:
    """The same of what a flat_map makes."""
    if reuses:
        return Copies(buffers)
    return None if reuses is False else Lent(is_of_parts=True)


class Copies:
    """Gives chunks copies of their arrays, in memory that is quick to copy to devices."""

    def __init__(self, buffers: _core.HostBuffers | None) -> None:
        self._buffers = buffers

    def asked(self) -> None:
        """The source is about to work."""

    def lend(self, chunk: Chunk) -> None:
        """Gives the chunk its copies."""
        for name, array in list(chunk.items()):
            if not isinstance(array, np.ndarray):
                continue
            if type(array) is np.ndarray and not array.dtype.hasobject:
                copy = empty_of(self._buffers, array.shape, array.dtype)
                copy[...] = array
            else:  # what a subclass knows besides its elements goes along
                copy = array.copy(order="K")
            chunk.update({name: copy})

    def give_back(self) -> None:
        """The source has ended."""


class _Place(NamedTuple):
    """Memory of a field that can be written past its array."""

    span: range
    chunk: str
    field: str
    array: Array


def _start_of(place: _Place) -> int:
    return place.span.start


class _Known:
    """Memory of invariant 3."""

    __slots__ = ("chunk", "chunks", "content", "field", "owner", "turn")

    def __init__(self, owner: weakref.ref[Any]) -> None:
        self.owner = owner  # which has gone if a body has replaced the field
        self.chunks: set[int] = set()  # in progress, that have it, by their turn

    def note(self, turn: int, chunk: str, field: str, array: Array) -> None:
        """Some chunk has it, with this content."""
        self.turn, self.chunk, self.field = turn, chunk, field
        self.chunks.add(turn)
        self.content = sample(array, turn)


class Lent:
    """The arrays of one source.

    The thread that asks the source calls all but `_give_back`, which any thread may.
    """

    def __init__(self, is_checked: bool = True, is_of_parts: bool = False) -> None:
        self._is_checked = is_checked
        self._is_of_parts = is_of_parts
        self._turn = 0  # of the next chunk
        self._arrays: dict[int, list[Array]] = {}  # by turn of their chunk
        self._open: dict[int, list[_Place]] = {}  # the same, of invariant 2
        self._places: list[_Place] = []  # all of these, by their start
        self._longest = 0
        self._known: dict[Any, _Known] = {}  # memory of invariant 3, by its key
        self._keys: dict[int, list[Any]] = {}  # of each chunk
        self._gone: collections.deque[int] = collections.deque()  # chunks

    def asked(self) -> None:
        """The source is about to work: what has gone by now can't be changed by it any more."""
        while self._gone:
            turn = self._gone.popleft()
            for each in self._open.pop(turn, ()):
                at = bisect.bisect_left(self._places, each.span.start, key=_start_of)
                while self._places[at] is not each:
                    at += 1
                del self._places[at]
            for key in self._keys.pop(turn, ()):
                known = self._known.get(key)
                if known is not None:
                    known.chunks.discard(turn)
                    if not known.chunks:
                        del self._known[key]

    def lend(self, chunk: Chunk) -> None:
        """Makes the chunk's arrays read-only to the source; the chunk gets views."""
        turn, self._turn = self._turn, self._turn + 1
        arrays = {n: each for n, each in chunk.arrays().items() if type(each) is np.ndarray}
        fields = []
        if self._is_checked:
            is_open = {n: self._is_open(each) for n, each in arrays.items()}
            fields = [self._checked(chunk, n, arrays[n]) for n in arrays if is_open[n]]
            keys = [self._compared(turn, chunk, n, arrays[n]) for n in arrays if not is_open[n]]
            if keys:
                self._keys[turn] = keys
        lent = []
        for name, array in arrays.items():
            if array.flags.writeable and not self._is_of_parts:
                chunk.update({name: array.view()})
                array.flags.writeable = False
                lent.append(array)
        for place in fields:
            bisect.insort(self._places, place, key=_start_of)
            self._longest = max(self._longest, len(place.span))
        if fields:
            self._open[turn] = fields
        if lent:
            self._arrays[turn] = lent
        if lent or fields or turn in self._keys:
            weakref.finalize(chunk, self._give_back, turn).atexit = False

    def give_back(self) -> None:
        """The source has ended."""
        self._places = []
        self._known = {}
        self._keys = {}
        for turn in list(self._arrays):
            self._give_back(turn)

    def _give_back(self, turn: int) -> None:
        self._gone.append(turn)
        for array in self._arrays.pop(turn, ()):
            with contextlib.suppress(ValueError):  # what it is a view of can't be written any more
                array.flags.writeable = True

    def _is_open(self, array: Array) -> bool:
        """Whether it is of invariant 2. What was of 3 stays so, though chunks have views of it."""
        if self._is_of_parts:
            return False
        known = self._known.get(_key_of(array))
        is_known = known is not None and known.owner() is _owner_of(array)
        return not is_known and _is_open(array)

    def _checked(self, chunk: Chunk, name: str, array: Array) -> _Place:
        span = span_of(array)
        assert span is not None
        first = bisect.bisect_left(self._places, span.start - self._longest, key=_start_of)
        for other in self._places[first:]:
            if other.span.start >= span.stop:
                break
            if span.start < other.span.stop and meet(array, other.array):
                raise self._refusal(chunk, name, other, "may have changed it")
        return _Place(span, chunk.label, name, array.view())

    def _compared(self, turn: int, chunk: Chunk, name: str, array: Array) -> Any:
        owner, key = _owner_of(array), _key_of(array)
        if owner is not array and _is_fixed(array):
            return None
        known = self._known.get(key)
        if known is None or known.owner() is not owner:
            try:
                known = self._known[key] = _Known(weakref.ref(owner))
            except TypeError:  # nothing that the program holds, as a capsule
                return None
        elif sample(array, known.turn) != known.content:
            self.asked()  # chunks may have gone while the source worked, which may wait for them
            if known.chunks:
                raise self._refusal(chunk, name, known, "or something else has changed it")
            self._known[key] = known
        known.note(turn, chunk.label, name, array)
        return key

    def _refusal(
        self, chunk: Chunk, name: str, other: _Place | _Known, what: str
    ) -> InvalidArgument:
        who = "flat_map" if self._is_of_parts else "source"
        return InvalidArgument(
            f"field {name!r} of chunk {chunk.label} lies in memory of field {other.field!r} of "
            f"chunk {other.chunk}, which was in progress when the {who} was asked: the {who} "
            f"{what}. Expected memory of its own for each chunk; or {who}(..., reuses=True), "
            f"which copies them, or reuses=False if the {who} never writes to what it has yielded"
        )


def sample(array: Array, phase: int) -> bytes:
    """All elements of an array of fewer than 256, else 128 or more, evenly spaced."""
    step = max(1, array.size // 128)
    if array.flags.c_contiguous:
        return array.reshape(-1)[phase % step :: step].tobytes()
    flat = array.T.reshape(-1) if array.flags.f_contiguous else array.flat
    return flat[phase % step :: step].tobytes()


def _owner_of(array: Array) -> Any:
    return array if array.base is None else array.base


def _key_of(array: Array) -> Any:
    if array.base is None:
        return id(array)  # quicker than its address
    return (id(array.base), array.ctypes.data, array.nbytes)


def _is_open(array: Array) -> bool:
    """Whether its memory can be written past this array."""
    base = array.base
    while isinstance(base, np.ndarray):
        # Results of a pipeline are views of arrays that nobody else holds.
        if base.flags.writeable and sys.getrefcount(base) > _HELD_BY_ONE_VIEW:
            return True
        base = base.base
    if base is None:
        return False
    try:
        return not memoryview(base).readonly
    except TypeError:  # memory that nobody else can name
        return False


def _is_fixed(array: Array) -> bool:
    """Whether it lies in bytes, or a file that is mapped to be read, whose pages may be far."""
    base = array.base
    while isinstance(base, np.ndarray):
        base = base.base
    if base is None:
        return False
    try:
        return memoryview(base).readonly
    except TypeError:
        return False


def explain(error: BaseException) -> None:
    """Adds a note to a source's error that may come of such an array."""
    if isinstance(error, ValueError) and "read-only" in str(error):
        error.add_note(
            "Arrays that a source has yielded are read-only to it while their chunks exist; "
            "yield an array of its own for each chunk, for example a copy, or say "
            "source(..., reuses=True), which copies them."
        )
