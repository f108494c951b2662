# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/failures.py: what bodies raised, until a wait of the engine's raises it.
"""The engine names a failed task by its number; here is the exception that it stands for.

It names the first failure since it was asked last, and forgets the others then, so that the first
ones and the newest ones are enough: those that it may name next are among them. Those that it has
named to a thread which hasn't asked for the exception yet are kept whatever comes: such a thread
may wait long for the GIL while bodies fail every few microseconds.
"""

from __future__ import annotations

import threading
from itertools import islice
from typing import Protocol

_MOST_FIRST = 64  # since a failure was taken; more waiters at once there won't be
_MOST_NEWEST = 256


class Telling(Protocol):
    """The part of an engine's core that is used here."""

    def told(self) -> list[int]: ...
    def heard(self) -> None: ...


class Failures:
    """Exceptions by the number of their task. Any thread may call anything."""

    def __init__(self, core: Telling) -> None:
        self._core = core
        self._lock = threading.Lock()
        # Guarded by the lock; in the order in which bodies failed.
        self._first: dict[int, BaseException] = {}
        self._followed: dict[int, BaseException] = {}  # the one that was taken last
        self._newest: dict[int, BaseException] = {}

    def note(self, number: int, exception: BaseException) -> None:
        """A body failed."""
        with self._lock:
            if len(self._first) < _MOST_FIRST:
                self._first[number] = exception
            self._newest[number] = exception
            if len(self._newest) <= _MOST_NEWEST:
                return
            told = self._core.told()
            for each in list(islice(self._newest, len(self._newest) - _MOST_NEWEST)):
                if each not in told:
                    del self._newest[each]

    def take(self, number: int) -> BaseException | None:
        """What the task failed with that the engine named; those before it are forgotten."""
        with self._lock:
            found = self._find(number)
            early = {**self._followed, **self._first}
            if number in early:
                after = islice(early.items(), list(early).index(number) + 1, None)
                early = dict(islice(after, _MOST_FIRST))
            self._newest.pop(number, None)
            self._core.heard()
            for each in self._core.told():
                if each not in early and (kept := self._find(each)) is not None:
                    self._newest[each] = kept
            self._followed, self._first = early, {}
            return found

    def take_next(self) -> BaseException | None:
        """The first that came after the one that was taken and that nobody asked for."""
        with self._lock:
            following = list({**self._followed, **self._first}.items())
        for number, exception in following:
            if not getattr(exception, "asked", False):
                return self.take(number)
        return None

    def forget(self, last: int) -> None:
        """The engine names no task any more that was submitted before the last one, or is it."""
        with self._lock:
            for known in (self._first, self._followed, self._newest):
                for number in [each for each in known if each <= last]:
                    del known[number]

    def _find(self, number: int) -> BaseException | None:
        for known in (self._first, self._followed, self._newest):
            if number in known:
                return known[number]
        return None
