# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/fields.py: arrays of chunks as kernels get them.
"""Kernels get plain arrays, as tasks do, whatever class the source's are of."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import InvalidArgument
from ..layout import layout_of
from ..place import Place
from .chunk import Chunk


class _Nowhere:
    """Takes places without references, and drops them: the run removes its data itself."""

    def append(self, _: object) -> None:
        return


NOWHERE: Any = _Nowhere()


def is_array(value: Any) -> bool:
    """Whether a field is one that kernels can use."""
    return isinstance(value, np.ndarray)


def place_of(chunk: Chunk, name: str, array: np.ndarray[Any, Any]) -> Place:
    """As kernels refer to a chunk's array; made once."""
    known: Place | None = chunk.places.get(name)
    if known is None or (known.array is not array and known.given is not array):
        refuse_masked(f"field {name!r} of chunk {chunk.label}", array)
        plain = array if type(array) is np.ndarray else np.asarray(array)
        known = Place(None, layout_of(plain), plain, NOWHERE, array)  # type: ignore[arg-type]
        chunk.places[name] = known
    return known


def refuse_masked(what: str, array: Any) -> None:
    """Raise `InvalidArgument` for a masked array: tasks would see the values without the mask."""
    if isinstance(array, np.ma.MaskedArray):
        raise InvalidArgument(
            f"{what} is a masked array; expected its values, a.data or a.filled()"
        )


def own(held: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The array alone in a list, which leaves it: a copy if others refer to it or its memory."""
    array = held.pop()
    is_own = sys.getrefcount(array) <= 2  # this name, and the argument
    base = array.base
    while is_own and isinstance(base, np.ndarray):
        is_own = sys.getrefcount(base) <= 3  # the array before it as well
        base = base.base
    return array if is_own and base is None else array.copy(order="K")
