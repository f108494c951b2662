# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/ready.py: arrays that a call is about to read, by themselves or in lists.
"""NumPy makes a list of arrays into one by copying them, whatever tasks are about to write them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from . import mapped
from .errors import InvalidType
from .foreign import DeviceArray, seen
from .given import Promised
from .registered import settle

_NUMBERS = frozenset({bool, int, float, complex})
_DEEPEST = 8  # lists in lists; matrices have two


def ready(value: Any, depth: int = 0) -> Any:
    """Returns the value, once tasks have written its memory, or that of the arrays it holds.

    Their mapped files are watched from then on.
    """
    if isinstance(value, (list, tuple)):
        # Most lists are of numbers, which needn't be looked at one by one.
        if depth < _DEEPEST and not _NUMBERS.issuperset(map(type, value)):
            for each in value:
                ready(each, depth + 1)
        return value
    if isinstance(value, Promised):
        raise InvalidType(
            "a Future was given, and an array is expected: give its result(), or the Data that its "
            "task writes"
        )
    found = _array_of(value)
    if isinstance(found, np.ndarray):
        mapped.watch(found)
    if isinstance(found, (np.ndarray, DeviceArray)):
        settle(found)
    return value


def _array_of(value: Any) -> Any:
    """An array of the same memory, if there is one."""
    if isinstance(value, memoryview):
        with suppress(ValueError):  # whose format NumPy doesn't know
            return np.asarray(value)
        return None
    return seen(value)
