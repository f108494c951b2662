# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/mapped.py: arrays in mapped files, which others may truncate meanwhile.
"""Files that became shorter while tasks used them: an error names them, and the program goes on."""

from __future__ import annotations

import mmap
import shutil
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .errors import Error, IoError

_watched: dict[int, tuple[weakref.ref[mmap.mmap], str]] = {}  # by address; with the file's name


def watch(given: Any) -> Any:
    """Returns the array; from here on `failure` tells of its mapped file if that is truncated."""
    array, file = given, None
    while isinstance(array, (np.ndarray, memoryview)):
        if isinstance(array, np.memmap):
            file = array.filename
        array = array.obj if isinstance(array, memoryview) else array.base
    if not isinstance(array, mmap.mmap) or array.closed or len(array) == 0:
        return given
    address = np.frombuffer(array, np.uint8).ctypes.data
    if address in _watched:
        return given
    name = str(file or _file_at(address))
    _watched[address] = weakref.ref(array), name
    _core.note_truncation(address, len(array), name)
    weakref.finalize(array, _forget, address).atexit = False
    return given


def failure() -> IoError | None:
    """Names a watched file that became shorter: what was read there were zeros."""
    if not _watched or not (file := _core.truncated_mapping()):
        return None
    return _failure_of(file)


def _failure_of(file: str) -> IoError:
    if not _is_shorter(file):
        state = "is full" if shutil.disk_usage(file).free < mmap.PAGESIZE else "failed"
        return IoError(f"{file}: its disk {state}; what was written to the mapped file is lost")
    return IoError(
        f"{file}: the file became shorter while it was used; results of what it held are wrong"
    )


def _is_shorter(file: str) -> bool:
    """Whether a file ends before what is mapped of it; also if that can't be known."""
    for found, name in list(_watched.values()):
        array = found()
        with suppress(ValueError, OSError):  # closed, or without its file
            if name == file and array is not None and array.size() >= len(array):
                return False
    return True


def _shorter() -> IoError | None:
    """The same of a file that ends within the last page that was read, where nothing tells of it:
    a call to the system for each file.
    """
    for found, file in list(_watched.values()):
        array = found()
        with suppress(ValueError, OSError):  # closed, or without its file
            if array is not None and array.size() < len(array):
                return _failure_of(file)
    return None


def check() -> None:
    """Raises that."""
    error = failure()
    if error is not None:
        raise error


@contextmanager
def checks() -> Iterator[None]:
    """Raises it after a call that reads what it was given, also instead of what was made of zeros
    there.
    """
    raised: Error | None = None
    try:
        yield
    except Error as other:
        raised = other
    error = (failure() or _shorter()) if _watched else None
    if error is not None:
        raise error from raised
    if raised is not None:
        raise raised


def _file_at(address: int) -> str:
    """The file that is mapped there, as the system knows it."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        places, _, _, _, _, *name = line.split(maxsplit=5)
        begin, end = (int(each, 16) for each in places.split("-"))
        if name and begin <= address < end:
            return name[0]
    return "a mapped file"


def _forget(address: int) -> None:
    _watched.pop(address, None)
    _core.forget_mapping(address)
