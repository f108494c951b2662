# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/registered.py: the engines that may know an array's memory.
"""Orders reads and writes of arrays on the host after the tasks that access their memory."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from . import _core
from .foreign import DeviceArray


class Tasks(Protocol):
    """Waits for the tasks that touch some memory, which is current afterwards.

    `pending` has their records by number.
    """

    core: _core.Engine
    is_driven_by_waits: bool
    pending: dict[int, Any]

    def settle(
        self,
        address: int,
        size: int,
        writes: bool,
        look: Callable[[object], None] | None = None,
    ) -> bool: ...

    def wait(self, seconds: float) -> None: ...

    def ended(self, record: Any) -> bool: ...

    def settle_for_task(self, address: int, size: int) -> tuple[int, str] | None: ...


class Ending(Protocol):
    """Knows whether an engine is still to be closed."""

    is_due: bool


class Settling(Protocol):
    """The part of an engine that is used here."""

    @property
    def _ending(self) -> Ending: ...
    @property
    def _tasks(self) -> Tasks: ...


class Access(Protocol):
    """The host's access to an array, in an `on_host` block."""

    @property
    def array(self) -> Any: ...


class _Held(threading.local):
    """Accesses of a thread that haven't ended."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []


class ContentLost(Exception):
    """A task failed that should have written what a later one is given by name."""

    def __init__(self, core: _core.Engine, task: int, why: str) -> None:
        super().__init__(why)
        self.core = core
        self.task = task


engines: dict[int, weakref.ref[Settling]] = {}  # by id; any thread's steps on it are atomic
_held = _Held()
# A child's memory is its own, and its parent's tasks don't touch it.
os.register_at_fork(after_in_child=engines.clear)


def note(engine: Settling) -> None:
    """Add an engine, which has registered arrays from now on."""
    key = id(engine)

    def forget(reference: weakref.ref[Settling]) -> None:
        if engines.get(key) is reference:
            del engines[key]

    engines[key] = weakref.ref(engine, forget)


def is_used() -> bool:
    """Whether an engine has registered arrays."""
    return bool(engines)


def held_here() -> list[Access]:
    """The accesses of this thread that haven't ended, in a list that stays the same."""
    return _held.accesses


def settle(array: Any, writes: bool = False) -> None:
    """Wait until tasks that were submitted on an array's memory have ended and it is current.

    Parameters
    ----------
    array : ndarray or DeviceArray
    writes : bool
        Whether it is to be written: then tasks that read it have ended, too.
    """
    if not engines:
        return
    begin, size = memory_of(array)
    for tasks in settling(size):
        tasks.settle(begin, size, writes)


def settle_for_task(array: Any) -> None:
    """Wait until tasks have written an array which a later one is to read.

    Raises
    ------
    ContentLost
        If one of them failed.
    """
    if not engines:
        return
    begin, size = memory_of(array)
    for tasks in settling(size):
        if (lost := tasks.settle_for_task(begin, size)) is not None:
            raise ContentLost(tasks.core, *lost)


def settling(size: int) -> Iterator[Tasks]:
    """The tasks of all engines that may know some bytes; of none, if there are none of these."""
    for reference in list(engines.values()) if size > 0 else ():
        engine = reference()
        if engine is not None and engine._ending.is_due:
            yield engine._tasks


def memory_of(array: Any) -> tuple[int, int]:
    """Where an array's memory begins, and its bytes; 0 of them if nothing is known of it."""
    if array.size == 0:
        return 0, 0
    if isinstance(array, np.ndarray):
        begin = end = array.ctypes.data
        for length, stride in zip(array.shape, array.strides, strict=True):
            if stride < 0:
                begin += (length - 1) * stride
            else:
                end += (length - 1) * stride
        return begin, end + array.itemsize - begin
    if isinstance(array, DeviceArray):
        return array.address, array.size * array.itemsize
    return 0, 0
