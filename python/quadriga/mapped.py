# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/mapped.py: arrays in mapped files, which others may truncate meanwhile.
"""Files that became shorter while tasks used them: an error names them, and the program goes on."""

from __future__ import annotations

import mmap
import shutil
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .errors import Error, IoError

_watched: dict[int, tuple[weakref.ref[mmap.mmap], str]] = {}  # by address; with the file's name
_claims: weakref.WeakSet[Files] = weakref.WeakSet()
_told: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()  # errors have named them


class _Here(threading.local):
    """What a thread's call was given, if it is in one."""

    files: Files | None = None


_here = _Here()


class Files:
    """The mapped files that a call or an engine was given: it tells of those that become shorter.

    A file that was given to none of them any more is told by whoever looks first.
    """

    __slots__ = ("__weakref__", "_maps")

    def __init__(self) -> None:
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        _claims.add(self)

    def watch(self, given: Any) -> Any:
        """Returns the array; from here on its mapped file is among these."""
        if (found := _watched_map(given)) is not None:
            self._maps.add(found)
        return given

    def add(self, others: Files) -> None:
        """Takes in those of others."""
        self._maps |= others._maps

    def failure(self) -> IoError | None:
        """Names one of them that became shorter: what was read there were zeros."""
        for found, name in _truncated():
            if found in self._maps:
                return _failure_of(name, found)
        return unclaimed()

    def check(self) -> None:
        """Raises that."""
        if (error := self.failure()) is not None:
            raise error

    def _failure_since(self, before: list[mmap.mmap]) -> IoError | None:
        """The same, or names a file that was truncated since some had been; or one of these that
        ends within the last page that was read, where nothing tells of it: a call to the system
        for each.
        """
        for found, name in _truncated():
            if found in self._maps or not any(found is known for known in before):
                return _failure_of(name, found)
        for reference, name in list(_watched.values()):
            each = reference()
            with suppress(ValueError, OSError):  # closed, or without its file
                if each is not None and each in self._maps and each.size() < len(each):
                    return _failure_of(name, each)
        return None


def watch(given: Any) -> Any:
    """Returns the array; from here on errors tell of its mapped file if that is truncated, as one
    of those that this thread's call was given.
    """
    found = _watched_map(given)
    if found is not None and _here.files is not None:
        _here.files._maps.add(found)
    return given


def is_used() -> bool:
    """Whether there are maps that are watched."""
    return bool(_watched)


def _map_of(given: Any) -> tuple[mmap.mmap | None, Any]:
    """The map that an array lies in, and the name of its file if the array knows it."""
    array, file = given, None
    while isinstance(array, (np.ndarray, memoryview)):
        if isinstance(array, np.memmap):
            file = array.filename
        array = array.obj if isinstance(array, memoryview) else array.base
    return (array if isinstance(array, mmap.mmap) else None), file


def _watched_map(given: Any) -> mmap.mmap | None:
    found, file = _map_of(given)
    if found is None or found.closed or len(found) == 0:
        return None
    address = np.frombuffer(found, np.uint8).ctypes.data
    if address not in _watched:
        name = str(file or _file_at(address))
        _watched[address] = weakref.ref(found), name
        _core.note_truncation(address, len(found))
        weakref.finalize(found, _forget, address).atexit = False
    return found


def _truncated() -> Iterator[tuple[mmap.mmap, str]]:
    """Maps that were touched where their files had become shorter, with the files' names."""
    for address in _core.truncated_mappings() if _watched else ():
        reference, name = _watched.get(address, (None, ""))
        if reference is not None and (found := reference()) is not None:
            yield found, name


def failure() -> IoError | None:
    """Names a watched file that became shorter, whoever was given it."""
    for found, name in _truncated():
        return _failure_of(name, found)
    return None


def failure_of(given: Iterable[Any]) -> IoError | None:
    """The same of the files that some arrays lie in."""
    truncated = dict(_truncated())
    for each in given if truncated else ():
        found, _ = _map_of(each)
        if found in truncated:
            return _failure_of(truncated[found], found)
    return None


def unclaimed() -> IoError | None:
    """The same of those that no call and no engine would tell of, once for each."""
    for found, name in _truncated():
        if found not in _told and not any(found in each._maps for each in list(_claims)):
            return _failure_of(name, found)
    return None


def _failure_of(file: str, found: mmap.mmap) -> IoError:
    _told.add(found)
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


def check() -> None:
    """Raises what `failure` tells."""
    error = failure()
    if error is not None:
        raise error


@contextmanager
def checks() -> Iterator[None]:
    """Raises it after a call that reads what it was given meanwhile, also instead of what was made
    of zeros there.
    """
    files = Files()
    before = [found for found, _ in _truncated()]
    raised: Exception | None = None
    try:
        with given_to(files):
            yield
    except (Error, np.linalg.LinAlgError) as other:
        raised = other
    if _here.files is not None:
        _here.files.add(files)
    error = files._failure_since(before) if _watched else None
    if error is not None:
        raise error from raised
    if raised is not None:
        raise raised


@contextmanager
def given_to(files: Files | None) -> Iterator[None]:
    """What is watched by this thread meanwhile is among some files."""
    outer, _here.files = _here.files, files
    try:
        yield
    finally:
        _here.files = outer


def files_here() -> Files | None:
    """Those of the call that this thread is in."""
    return _here.files


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
