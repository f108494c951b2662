# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/changed.py: the memory of fields that kernels change, chunk by chunk.
"""Refuses a chunk whose fields share memory with another's while a kernel changes them: chunks run
at the same time, and in any order.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..results import span_of
from .chunk import Chunk

_MOST_WORK = 10_000  # of telling whether strides meet, before they are taken to


class ChangedFields:
    """Those of the chunks that still exist."""

    def __init__(self) -> None:
        self._fields: list[tuple[weakref.ref[Chunk], str, range, weakref.ref[Any]]] = []

    def add(self, chunk: Chunk, name: str, array: np.ndarray[Any, Any]) -> None:
        """Raises if a field of another chunk, or another one of this, has some of its memory."""
        span = span_of(array)
        assert span is not None
        left = []
        for each in self._fields:
            other, field, theirs, lent = each[0](), each[1], each[2], each[3]()
            if other is None or lent is None or (other is chunk and field == name):
                continue
            left.append(each)
            if span.start < theirs.stop and theirs.start < span.stop and meet(array, lent):
                raise InvalidArgument(
                    f"field {name!r} of chunk {chunk.label} shares memory with field {field!r} of "
                    f"chunk {other.label}, and a kernel changes them; expected an array of its own "
                    "for each chunk that is in progress"
                )
        left.append((weakref.ref(chunk), name, span, weakref.ref(array)))
        self._fields = left


def meet(array: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have memory in common, or it takes too long to tell."""
    try:
        return np.shares_memory(array, other, max_work=_MOST_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
