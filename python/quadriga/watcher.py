# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/watcher.py: a thread that calls back when tasks have ended.
"""Callbacks of futures.

One thread of the process polls the watched futures, at least every millisecond. It ends when none
has been watched for a while.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

_logger = logging.getLogger("quadriga")
_SHORTEST, _LONGEST = 50e-6, 1e-3  # seconds between two looks
_MOST_IDLE = 5.0


class Watched(Protocol):
    """What can be watched."""

    def done(self) -> bool: ...


_Future = TypeVar("_Future", bound=Watched)


class _Watcher:
    def __init__(self) -> None:
        self.owner = os.getpid()
        self._changed = threading.Condition()
        # Guarded by the condition.
        self._watched: list[tuple[Any, Callable[[Any], object]]] = []
        self._thread: threading.Thread | None = None
        self._stopped = False

    def add(self, future: Any, callback: Callable[[Any], object]) -> None:
        with self._changed:
            if self._thread is None and not self._stopped:
                thread = threading.Thread(target=self._run, name="quadriga callbacks", daemon=True)
                thread.start()
                self._thread = thread
            self._watched.append((future, callback))
            self._changed.notify()

    def stop(self) -> None:
        """Ends the thread before Python does; what hasn't ended is not called for."""
        with self._changed:
            self._stopped = True
            thread = self._thread
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(1.0)  # a callback that runs may take as long as it likes

    def _run(self) -> None:
        pause = _SHORTEST
        while self._wait():
            pause = _SHORTEST if self._call_ended() else min(2 * pause, _LONGEST)
            with self._changed:
                if not self._stopped:
                    self._changed.wait(pause)

    def _wait(self) -> bool:
        """Until something is watched; false if the thread is to end."""
        with self._changed:
            while not self._watched and not self._stopped:
                if not self._changed.wait(_MOST_IDLE) and not self._watched:
                    break
            if self._watched and not self._stopped:
                return True
            self._thread = None
            return False

    def _call_ended(self) -> bool:
        """Whether any had ended; holds none of them afterwards."""
        with self._changed:
            states = [(each, each[0].done()) for each in self._watched]
            self._watched = [each for each, done in states if not done]
        ended = [each for each, done in states if done]
        for future, callback in ended:
            try:
                call(future, callback)
            except BaseException:  # SystemExit, too: others wait for their calls
                _logger.exception("a callback of %r failed", future)
        return bool(ended)


_watcher = _Watcher()


def call(future: _Future, callback: Callable[[_Future], object]) -> None:
    """Call back; what that raises is logged."""
    try:
        callback(future)
    except Exception:
        _logger.exception("a callback of %r failed", future)


def watch(future: _Future, callback: Callable[[_Future], object]) -> None:
    """Call a function with a future when that is done; at once if it is."""
    global _watcher
    if future.done():
        call(future, callback)
        return
    if _watcher.owner != os.getpid():  # threads don't come along to a child
        _watcher = _Watcher()
    _watcher.add(future, callback)


@atexit.register
def _stop() -> None:
    if _watcher.owner == os.getpid():
        _watcher.stop()
