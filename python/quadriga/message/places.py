# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/places.py: places of arrays that the buffer protocol doesn't describe.
"""Where the elements of an array are, for the extension module."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import MessageLayout
from ..errors import InvalidArgument, InvalidType
from .elements import address_of
from .layout import Layout


def described(
    array: Any, layout: Layout | None, writes: bool
) -> tuple[int, MessageLayout, np.ndarray[Any, Any]]:
    """The address, the layout and the array that must live as long as the message."""
    caller = "recv" if writes else "send"
    if writes and isinstance(array, np.generic):
        raise InvalidType(f"recv: {type(array).__name__} can't be written; expected an array")
    if writes and isinstance(array, bytes):
        # NumPy would make a copy of it, which nobody sees.
        raise InvalidType("recv: bytes can't be written; expected a bytearray or an array")
    if not isinstance(array, np.ndarray):
        array = _as_array(array, caller)
    if writes and not array.flags.writeable:
        raise InvalidArgument(f"{caller}: the array can't be written")
    if layout is None:
        return address_of(array), Layout.of(array).core, array
    if not isinstance(layout, Layout):
        raise InvalidType(f"{caller}: layout is {type(layout).__name__}; expected a Layout")
    return layout.address_in(array, caller), layout.core, array


def _as_array(given: Any, caller: str) -> np.ndarray[Any, Any]:
    """The same memory as an array of NumPy."""
    if not hasattr(given, "__array_interface__") and not hasattr(given, "__buffer__"):
        try:
            memoryview(given)
        except TypeError:
            return _from_dlpack(given, caller)
    return np.asarray(given)


def _from_dlpack(given: Any, caller: str) -> np.ndarray[Any, Any]:
    """Of tensors on the host; NumPy and their library say what else can't be used."""
    name = type(given).__name__
    if not hasattr(given, "__dlpack__"):
        raise InvalidType(f"{caller}: {name} is no array; messages carry arrays only")
    try:
        return np.from_dlpack(given)
    except (BufferError, RuntimeError, TypeError) as error:
        raise InvalidType(f"{caller}: {name} is no array on the host: {error}") from error
