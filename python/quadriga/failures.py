# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/failures.py: what bodies raised, until a wait of the engine's raises it.
"""The engine names a failed task by its number; here is the exception that it stands for.

An exception is kept for as long as its task can be named: by the engine, which knows its newest few
thousand failures, or by an error on its way to a thread that looks the exception up. Such a thread
may wait long for the GIL, while bodies fail every few microseconds and others wait for the engine.
"""

from __future__ import annotations

import contextlib
import threading
from typing import NoReturn

from . import _core
from .errors import Cancelled


class Failures:
    """Exceptions by the number of their task. Any thread may call anything."""

    def __init__(self) -> None:
        self.named = _core.NamedTasks()  # C++ holds a number in it while that can be named
        self._lock = threading.Lock()
        # Guarded by the lock; in the order in which bodies failed.
        self._known: dict[int, BaseException] = {}
        self._following: dict[int, BaseException] = {}  # those after the one that was taken last

    def note(self, number: int, exception: BaseException) -> None:
        """A body failed; to be called before its number is held."""
        with self._lock:
            unnamed = self._remove(self.named.take_unnamed())
            self._known[number] = self._following[number] = exception
        del unnamed  # without the lock, as this may call anything

    def take(self, number: int) -> BaseException | None:
        """What the task failed with that the engine named; take_next() gives those after it."""
        with self._lock:
            if number in self._following:
                for each in list(self._following):
                    del self._following[each]
                    if each == number:
                        break
            return self._known.get(number)

    def take_next(self) -> BaseException | None:
        """The first that came after the one that was taken and that nobody asked for."""
        with self._lock:
            following = list(self._following.items())
        for number, exception in following:
            if not is_asked(exception):
                return self.take(number)
        return None

    def forget(self, last: int) -> None:
        """No thread looks up a task that was submitted before the last one, or is it."""
        with self._lock:
            forgotten = self._remove([each for each in self._known if each <= last])
        del forgotten

    def _remove(self, numbers: list[int]) -> list[BaseException | None]:
        """Removes what is known of some numbers; the caller lets it go without the lock."""
        for number in numbers:
            self._following.pop(number, None)
        return [self._known.pop(number, None) for number in numbers]


def is_asked(error: BaseException | None) -> bool:
    """Whether it says no more than that a program cancelled the task, and knows."""
    return isinstance(error, Cancelled) and error.asked


def raise_kept(error: BaseException) -> NoReturn:
    """Raise a body's exception as it was raised there: its causes stay those of the body."""
    cause, context, hides = error.__cause__, error.__context__, error.__suppress_context__
    try:
        raise error
    finally:
        set_member(error, "__cause__", cause)
        set_member(error, "__context__", context)
        set_member(error, "__suppress_context__", hides)


def set_member(error: BaseException, name: str, value: object) -> None:
    """Set what every exception has, whatever its class allows."""
    BaseException.__dict__[name].__set__(error, value)


def add_note(error: BaseException, note: str) -> None:
    """Add a note once, if the exception takes notes."""
    with contextlib.suppress(Exception):
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
