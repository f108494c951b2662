# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/ending.py: how an engine ends: closed, dropped, left, or with Python.
"""The end of engines.

What an engine keeps for its tasks may refer to the engine; only the engine itself holds it, so that
the garbage collector finds an engine that is no longer used. Weak references to all engines allow
them to end before Python does.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import signal
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from . import _core
from .codelets import Codelet
from .errors import Error
from .place import Retired
from .residence import Lending
from .tasks import Tasks

_living: dict[int, weakref.ref[Any]] = {}  # engines, in the order in which they were made
_numbers = itertools.count()
_left: list[object] = []  # engines whose end was interrupted, and what their tasks may still touch


class Ending:
    """Ends an engine once, and then releases what its tasks used."""

    def __init__(
        self,
        engine: object,
        core: _core.Engine,
        tasks: Tasks,
        retired: Retired,
        codelets: set[Codelet],
    ) -> None:
        self.is_due = True
        self._process = os.getpid()
        self._number = next(_numbers)
        self._core = core
        self._tasks = tasks
        self._retired = retired
        self._codelets = codelets
        self.lending = Lending()
        _living[self._number] = weakref.ref(engine)

    def end(self) -> Error | None:
        """Cancels what has not started, waits for what runs, and brings home what tasks wrote.

        Returns what kept some of that from coming home.
        """
        if self.is_due and os.getpid() == self._process and self._core.inside_own_body():
            with contextlib.suppress(Error):
                self._tasks.end()  # how tasks ended that have
            self.leave()  # what running tasks use, that body's among them, lasts until they end
            return None
        if not self._take():
            return None
        failure = None
        try:
            if os.getpid() == self._process:  # a child process has nothing to wait for
                try:
                    self._core.end()
                except Error as error:
                    failure = error
                with contextlib.suppress(Error):
                    self._tasks.end()
        except BaseException:
            _left.append((self._core, self._tasks, list(self._retired), self._codelets))
            raise
        self._tasks.closed = True
        self._core.close()
        self.lending.give_back()
        self._tasks.pending.clear()
        self._retired.clear()
        self._codelets.clear()
        return failure

    def end_warning(self) -> None:
        """The same where nobody could catch an error, or another one is on its way."""
        failure = self.end()
        if failure is not None:
            warnings.warn(f"an engine was closed: {failure}", RuntimeWarning, stacklevel=3)

    @contextlib.contextmanager
    def ends_behind(self, close: Callable[[], None]) -> Iterator[None]:
        """Ends if the block raises; an interrupted wait isn't waited for."""
        try:
            yield
        except BaseException as failure:
            self.behind(close, failure, leaves=isinstance(failure, KeyboardInterrupt))
            raise

    def behind(self, close: Callable[[], None], raised: BaseException | None, leaves: bool) -> None:
        """Ends while an exception is on its way, which stays the one that is raised.

        A failure with its words has its cause, and is no news.
        """
        if leaves:
            self.leave()
            return
        try:
            close()
        except Error as failure:
            if str(failure) != str(raised):
                warnings.warn(f"an engine was closed: {failure}", RuntimeWarning, stacklevel=3)

    def leave(self) -> None:
        """The same without waiting; it ends in the background."""
        if self._take():
            self._tasks.closed = True
            self._core.close_later([self._tasks, self._retired, self._codelets])
            self.lending.give_back()

    def _take(self) -> bool:
        if self.is_due:
            self.is_due = False
            _living.pop(self._number, None)
            return True
        return False


@atexit.register
def _end() -> None:
    """Before Python ends: bodies that still run end first, for they need it; none starts."""
    _core.refuse_for_good()
    try:
        for _, found in sorted(_living.copy().items(), reverse=True):
            engine = found()
            if engine is not None:
                engine._ending.end_warning()
        _core.close_gate()
    except KeyboardInterrupt:
        # Who asks twice doesn't want to wait, and Python can't end below a running body.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + signal.SIGINT)
