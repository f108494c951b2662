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
    if not isinstance(array, np.ndarray):
        if not hasattr(array, "__array_interface__") and not hasattr(array, "__buffer__"):
            try:
                memoryview(array)
            except TypeError:
                raise InvalidType(
                    f"{caller}: {type(array).__name__} is no array; messages carry arrays only"
                ) from None
        if writes and isinstance(array, bytes):
            # NumPy would make a copy of it, which nobody sees.
            raise InvalidType("recv: bytes can't be written; expected a bytearray or an array")
        array = np.asarray(array)
    if writes and not array.flags.writeable:
        raise InvalidArgument(f"{caller}: the array can't be written")
    if layout is None:
        return address_of(array), Layout.of(array).core, array
    if not isinstance(layout, Layout):
        raise InvalidType(f"{caller}: layout is {type(layout).__name__}; expected a Layout")
    return layout.address_in(array, caller), layout.core, array
