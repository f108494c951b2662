# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/mapped.py: arrays in mapped files, which others may truncate meanwhile.
"""Files that became shorter while tasks used them: an error names them, and the program goes on."""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy as np

from . import _core
from .errors import IoError

_watched: set[int] = set()  # by address


def watch(array: Any) -> None:
    """From here on `failure` tells of an array's mapped file if that is truncated."""
    file = None
    while array is not None and not isinstance(array, mmap.mmap):
        if isinstance(array, np.memmap):
            file = array.filename
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)
    if array is None or array.closed or len(array) == 0:
        return
    address = np.frombuffer(array, np.uint8).ctypes.data
    if address in _watched:
        return
    _watched.add(address)
    _core.note_truncation(address, len(array), "a mapped file" if file is None else str(file))
    weakref.finalize(array, _forget, address).atexit = False


def failure() -> IoError | None:
    """Names a watched file that became shorter: what was read there were zeros."""
    if not _watched or not (file := _core.truncated_mapping()):
        return None
    return IoError(
        f"{file}: the file became shorter while it was used; results of what it held are wrong"
    )


def check() -> None:
    """Raises that."""
    error = failure()
    if error is not None:
        raise error


def _forget(address: int) -> None:
    _watched.discard(address)
    _core.forget_mapping(address)
