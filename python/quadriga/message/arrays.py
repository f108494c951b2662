# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/message/arrays.py: arrays that calls make or divide, where their arguments are.
"""New arrays on the host or a device, like others, and what can be cut into rows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import InvalidArgument, InvalidType
from ..foreign import kind_of
from .devices import DeviceBuffer

Array = Any


def is_on_device(array: Array) -> bool:
    """Whether its elements are in a device's memory."""
    if isinstance(array, np.ndarray | list | tuple):
        return False
    if isinstance(array, DeviceBuffer):
        return True
    kind = kind_of(array)
    return kind is not None and kind.on_device


def rows_of(array: Array) -> Array:
    """An array with a first axis, of which slices are views; what is on the host as NumPy's."""
    whole = array if is_on_device(array) else np.asarray(array)
    if len(whole.shape) == 0:
        raise InvalidArgument("an array that is divided needs an axis")
    return whole


def shape_of(array: Array) -> tuple[int, ...]:
    """The lengths of its axes."""
    return tuple(array.shape) if is_on_device(array) else np.shape(array)


def empty(like: Array, shape: tuple[int, ...], zeros: bool = False) -> Array:
    """A new array of another one's type, where that is."""
    if not is_on_device(like):
        make = np.zeros if zeros else np.empty
        return make(shape, np.asarray(like).dtype)
    if isinstance(like, DeviceBuffer):
        made = like.devices.empty(shape, like.dtype, like.device)
        if zeros:
            made.set(np.zeros(shape, like.dtype))
        return made
    kind = kind_of(like)
    assert kind is not None
    if kind.library == "torch":
        create = sys.modules["torch"].zeros if zeros else sys.modules["torch"].empty
        return create(shape, dtype=like.dtype, device=like.device)
    if kind.library == "cupy":
        with kind.current():
            create = sys.modules["cupy"].zeros if zeros else sys.modules["cupy"].empty
            return create(shape, like.dtype)
    raise InvalidType(
        f"results can't be made like a {type(like).__name__}: pass the array that they go to"
    )


def empty_like(array: Array) -> Array:
    """A new array of the same shape and type, where the given one is."""
    return empty(array, shape_of(array)) if is_on_device(array) else np.empty_like(array)
