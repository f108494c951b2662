# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/residence.py: resident arrays, which the program can't write beside their devices.
"""Makes arrays read-only that an engine has as resident, and writeable again.

Devices keep replicas of these, which later tasks read: what the program writes into its own array
would be lost. Views that it made before stay writeable; so do arrays that couldn't be made
writeable again, as those of libraries that lend their memory by means of their own.

Invariants
  1. `_mutex` guards `_locks`, what locks hold, and the flags that are set here. It is taken again
     by a thread that has it, in which the garbage collector may free a `Lent`.
  2. An array in `_locks` has somebody in `holders`, and is writeable while `writers` isn't 0.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.ma  # now: a child forked while a thread imports it would wait for ever
import numpy.typing as npt

Array = npt.NDArray[Any]


class _Lock:
    """An array that was writeable, and is read-only now."""

    __slots__ = ("array", "holders", "writers")

    def __init__(self, array: Array) -> None:
        self.array = array
        self.holders = 0
        self.writers = 0


_mutex = threading.RLock()
_locks: dict[int, _Lock] = {}  # by the array's id


class Lent:
    """Keeps an array read-only until it is given back, or freed."""

    __slots__ = ("__weakref__", "_lock", "_writers")

    def __init__(self, array: Array) -> None:
        self._writers = 0
        self._lock: _Lock | None = None
        with _mutex:
            lock = _locks.get(id(array))
            if lock is None:
                if not array.flags.writeable or not _can_be_given_back(array):
                    return
                lock = _locks[id(array)] = _Lock(array)
                array.flags.writeable = False
            lock.holders += 1
            self._lock = lock

    @property
    def is_due(self) -> bool:
        """Whether there is something to give back: the array wasn't read-only anyhow."""
        return self._lock is not None

    def open(self) -> None:
        """The program may write it, as often as this is called more than `close`."""
        with _mutex:
            lock = self._lock
            if lock is None:
                return
            self._writers += 1
            lock.writers += 1
            if lock.writers == 1:
                _make_writeable(lock.array)

    def close(self) -> None:
        """The program may not write it any more."""
        with _mutex:
            lock = self._lock
            if lock is None:
                return
            self._writers -= 1
            lock.writers -= 1
            if lock.writers == 0:
                lock.array.setflags(write=False)

    def give_back(self) -> None:
        """The array is the program's again, if no other engine has it."""
        with _mutex:
            while self._writers > 0:
                self.close()
            lock, self._lock = self._lock, None
            if lock is None or _locks.get(id(lock.array)) is not lock:
                return
            lock.holders -= 1
            if lock.holders == 0:
                del _locks[id(lock.array)]
                _make_writeable(lock.array)

    def __del__(self) -> None:
        self.give_back()


class HasDevices(Protocol):
    """The part of a `Machine` that is used here."""

    @property
    def devices(self) -> Iterable[Any]: ...


class Registered(Protocol):
    """The part of a `Place` that is used here."""

    array: Array | None
    given: Any
    resident: bool
    lent: Lent | None


class Lending:
    """What an engine has as resident."""

    def __init__(self) -> None:
        self._lent: weakref.WeakSet[Lent] = weakref.WeakSet()
        self._has_replicas: bool | None = None

    def lend(self, place: Registered, machine: HasDevices) -> None:
        """Makes the array read-only if the place is resident and devices have replicas."""
        given = place.given
        if not place.resident or not isinstance(given, np.ndarray):
            return
        if self._has_replicas is None:
            self._has_replicas = any(each.memory_bytes for each in machine.devices)
        if self._has_replicas and place.array is not None:
            view = place.array.view()  # which stays writeable, for tasks
            lent = Lent(given)
            if lent.is_due:
                place.array, place.lent = view, lent
                self._lent.add(lent)

    @contextlib.contextmanager
    def leaves(self, retired: Iterable[tuple[Any, Any, Lent | None]]) -> Iterator[None]:
        """What nobody holds any more is given back once the block has removed it."""
        going = [each[2] for each in _all_of(retired)] if self._lent else []
        yield
        for each in going:
            if each is not None:
                each.give_back()

    def give_back(self) -> None:
        """The engine has ended."""
        for each in list(self._lent):
            each.give_back()


def _all_of(found: Iterable[Any]) -> list[Any]:
    """Of a deque to which others may append."""
    while True:
        with contextlib.suppress(RuntimeError):
            return [*found]


def is_lent(array: Any) -> bool:
    """Whether an array is read-only because it, or what it is a view of, is lent."""
    if not _locks or not isinstance(array, np.ndarray) or array.flags.writeable:
        return False
    each: Any = array
    while isinstance(each, np.ndarray):
        if id(each) in _locks:
            return True
        each = each.base
    return False


def opened(array: Any) -> Any:
    """A writeable view of an array that is lent, for who orders its writes; others as they are."""
    if not is_lent(array):
        return array
    with _mutex:
        view = array.view()
        _make_writeable(view)
    return view


def _can_be_given_back(array: Array) -> bool:
    """Whether NumPy will let it be made writeable: something that it is a view of is so."""
    each: Any = array
    while not each.flags.owndata:
        if not isinstance(each.base, np.ndarray):
            try:
                return not memoryview(each.base).readonly
            except (TypeError, ValueError):
                return False
        each = each.base
        if each.flags.writeable or id(each) in _locks:
            return True
    return each is array


def _make_writeable(array: Array) -> None:
    """What it is a view of may be lent itself; no other thread sees it writeable for longer."""
    if array.base is None:
        array.setflags(write=True)
        return
    closed = []
    each: Any = array.base
    while isinstance(each, np.ndarray):
        if not each.flags.writeable and id(each) in _locks:
            closed.append(each)
        each = each.base
    with contextlib.suppress(ValueError):  # the program made read-only what it is a view of
        for base in (*reversed(closed), array):
            base.flags.writeable = True
    for base in closed:
        base.flags.writeable = False


def _give_all_back() -> None:
    """A child's memory is its own, which its parent's devices don't touch."""
    global _mutex
    _mutex = threading.RLock()
    while _locks:
        lock = _locks.popitem()[1]
        _make_writeable(lock.array)


os.register_at_fork(after_in_child=_give_all_back)
