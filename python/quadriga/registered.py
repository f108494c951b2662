# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/registered.py: the engines that may know an array's memory.
"""Orders reads and writes of arrays on the host after the tasks that access their memory."""

from __future__ import annotations

import os
import weakref
from typing import Any, Protocol

import numpy as np

from .foreign import DeviceArray


class Settling(Protocol):
    """The part of an engine that is used here."""

    def _settle(self, address: int, size: int, writes: bool) -> None: ...


_engines: dict[int, weakref.ref[Settling]] = {}  # by id; any thread's steps on it are atomic
# A child's memory is its own, and its parent's tasks don't touch it.
os.register_at_fork(after_in_child=_engines.clear)


def note(engine: Settling) -> None:
    """Add an engine, which has registered arrays from now on."""
    key = id(engine)

    def forget(reference: weakref.ref[Settling]) -> None:
        if _engines.get(key) is reference:
            del _engines[key]

    _engines[key] = weakref.ref(engine, forget)


def settle(array: Any, writes: bool = False) -> None:
    """Wait until tasks that were submitted on an array's memory have ended and it is current.

    Parameters
    ----------
    array : ndarray or DeviceArray
    writes : bool
        Whether it is to be written: then tasks that read it have ended, too.
    """
    if not _engines or array.size == 0:
        return
    if isinstance(array, np.ndarray):
        begin = end = array.ctypes.data
        for length, stride in zip(array.shape, array.strides, strict=True):
            if stride < 0:
                begin += (length - 1) * stride
            else:
                end += (length - 1) * stride
        end += array.itemsize
    elif isinstance(array, DeviceArray):
        begin = array.address
        end = begin + array.size * array.itemsize
    else:
        return
    for reference in list(_engines.values()):
        engine = reference()
        if engine is not None:
            engine._settle(begin, end - begin, writes)
