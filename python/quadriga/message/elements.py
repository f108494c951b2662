# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/elements.py: element types and NumPy's, and what an array may reach.
"""What the elements of NumPy's types are in a message."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._core import MessageLayout
from ..errors import InvalidArgument

_NUMBERS = {
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
}


def element_of(dtype: npt.DTypeLike) -> MessageLayout:
    """The layout of one element of a type, with its fields if it has some."""
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise InvalidArgument(f"layout: {kind} holds Python objects; they can't travel as bytes")
    if kind.subdtype is not None:
        base, shape = kind.subdtype
        return MessageLayout.contiguous(int(np.prod(shape)), element_of(base))
    if kind.fields is not None:
        return _structure(kind)
    if not kind.isnative:
        raise InvalidArgument(f"layout: {kind.str} has another byte order than this machine")
    if kind.kind == "b":
        return MessageLayout.element("boolean")
    if kind.name in _NUMBERS:
        return MessageLayout.element(kind.name)
    if kind.kind in "mM":
        return MessageLayout.element("int64")
    # Texts, opaque bytes, and what has no name in a message.
    return MessageLayout.contiguous(kind.itemsize, MessageLayout.element("bytes"))


def _structure(kind: np.dtype[Any]) -> MessageLayout:
    fields = [(at, element_of(of)) for of, at in sorted(_fields(kind), key=lambda each: each[1])]
    offsets = [offset for offset, _ in fields]
    layout = MessageLayout.structure([1] * len(fields), offsets, [of for _, of in fields])
    return MessageLayout.resized(layout, 0, kind.itemsize)


def _fields(kind: np.dtype[Any]) -> list[tuple[np.dtype[Any], int]]:
    assert kind.names is not None and kind.fields is not None
    return [(kind.fields[name][0], kind.fields[name][1]) for name in kind.names]


def dtype_of(name: str) -> np.dtype[Any]:
    """NumPy's type of an element type; bytes for those that it hasn't."""
    if name == "boolean":
        return np.dtype(np.bool_)
    return np.dtype(np.uint8 if name in ("", "bytes", "bfloat16") else name)


def address_of(array: npt.NDArray[Any]) -> int:
    """Where an array's first element is."""
    return int(array.__array_interface__["data"][0])


def reach_of(array: npt.NDArray[Any]) -> tuple[int, int]:
    """The first address of the memory that an array is a view of, and the one after the last."""
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    low, high = np.lib.array_utils.byte_bounds(owner)
    own_low, own_high = np.lib.array_utils.byte_bounds(array)
    return min(low, own_low), max(high, own_high)
